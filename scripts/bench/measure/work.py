#!/usr/bin/env python3
"""A piece of fixed, seeded work, done again and again by forked children that are all alike.

    work.py NAME          serves pairs.py: a line of JSON in, a line of JSON out
    work.py --list        the names, one a line, with what each needs
    work.py NAME --times N        does it N times in this very process, and says how long that took;
                                  --torch-profiler: under PyTorch's own profiler

Everything is imported and built before the first fork, so that each child begins with the same
memory, address for address; it warms up, waits for `go`, works, and says how long it took. What
a profiler adds is then the one difference between two children.
"""

import argparse
import contextlib
import ctypes
import json
import mmap
import os
import sys
import time

import pairs

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = os.path.join(HERE, "..", "..", "..", "tests", "workloads")

# Twins take turns (trail.py): the one that is watched for so long, then the other. Long turns, so that what the one left
# in the caches is soon gone; short beside the machine's changes of speed.
TURN_NS = 150e6
TWIN_TURN_NS = 50e6
MREMAP_MAYMOVE, MREMAP_FIXED = 1, 2     # linux/mman.h

current_cpu = ctypes.CDLL(None).sched_getcpu


class Turns:
    """Of two processes at work on one CPU, which the one that is watched says, one works at a time."""

    def __init__(self, mine, others, turn_ns):
        self.mine, self.others, self.turn_ns = mine, others, turn_ns
        self.cpu, self.since_ns = None, time.monotonic_ns()

    def hold(self, cpu):
        if cpu != self.cpu:
            os.sched_setaffinity(0, {cpu})
            self.cpu = cpu

    def over(self):
        return time.monotonic_ns() - self.since_ns > self.turn_ns

    def take(self):
        token = os.read(self.mine, 1)
        if not token:
            os._exit(0)     # the other has ended
        self.hold(token[0])
        self.since_ns = time.monotonic_ns()

    def give(self):
        os.write(self.others, bytes([self.cpu]))
        self.take()


class Clock:
    """Operations that are also timed here: the truth where there is no profiler. Like the
    report's rows an operation's time is what was spent in it and in none inside it."""

    def __init__(self, rlscope):
        self.turns = None
        self.rlscope = rlscope
        self.stack, self.spent_ns, self.since_ns = [""], {}, 0
        self.trail, self.steppers = [], {}

    def spend(self, label):
        """A piece of the trail ends here; label: what to call it, None for its operation."""
        now_ns = time.monotonic_ns()
        name, took_ns = self.stack[-1], now_ns - self.since_ns
        self.spent_ns[name] = self.spent_ns.get(name, 0) + took_ns
        self.trail.append((label or name, took_ns, current_cpu()))
        self.since_ns = now_ns

    def turn(self, label=None):
        """The same; it may be the other twin's turn now."""
        self.spend(label)
        if self.turns and self.turns.over():
            with self.operation(pairs.WAITING):
                self.turns.give()

    @contextlib.contextmanager
    def operation(self, name):
        with self.rlscope.operation(name):
            self.spend(None)     # no turn ends here: that would be this operation's time to the profiler
            self.stack.append(name)
            try:
                yield
            finally:
                self.turn()
                self.stack.pop()

    def set_phase(self, name):
        self.rlscope.set_phase(name)

    def wrap(self, owner, method, name):
        """Calls of owner.method are in the operation."""
        inner = getattr(owner, method)

        def outer(*args, **kwargs):
            with self.operation(name):
                return inner(*args, **kwargs)
        setattr(owner, method, outer)

    def cut_at_steps(self, optimizers):
        """Long operations are in pieces too: up to each step of an optimizer of these classes."""
        def wrap(inner):
            def outer(optimizer, *args, **kwargs):
                result = inner(optimizer, *args, **kwargs)
                step = self.steppers.setdefault(id(optimizer), len(self.steppers))
                self.turn("%s, step %d" % (self.stack[-1], step))
                return result
            return outer
        for optimizer in optimizers:
            optimizer.step = wrap(optimizer.step)

    def measure(self, work):
        """Does it; what that took is without waiting for the other twin."""
        self.spent_ns, self.trail = {}, []
        cpu_ns = time.process_time_ns()
        self.since_ns = begin_ns = time.monotonic_ns()
        work()
        self.turn()
        waited_ns = self.spent_ns.pop(pairs.WAITING, 0)
        return {"begin_ns": begin_ns, "end_ns": self.since_ns,
                "wall_ns": self.since_ns - begin_ns - waited_ns, "waited_ns": waited_ns,
                "cpu_ns": time.process_time_ns() - cpu_ns, "operations": self.spent_ns}


# --- the pieces: NAME -> (what it needs, a function of the clock that returns warm(), work()) ---

def sb3(algorithm, environment, steps, warm_steps, environments=1, device="cpu", **settings):
    """An agent of Stable-Baselines3 as its users train it; steps is what is measured."""
    def build(clock):
        import stable_baselines3
        import torch
        from stable_baselines3.common.env_util import make_vec_env
        from stable_baselines3.common.logger import Logger
        torch.set_num_threads(1)
        vector = make_vec_env(environment, n_envs=environments, seed=0)
        model = getattr(stable_baselines3, algorithm)("MlpPolicy", vector, device=device, seed=0,
                                                      **settings)
        model.set_logger(Logger(None, []))  # as its own, which makes a folder in /tmp each time
        clock.cut_at_steps([torch.optim.Adam, torch.optim.RMSprop])
        clock.wrap(model, "train", "update")
        clock.wrap(vector, "step", "simulation")
        clock.wrap(model.policy, "forward" if algorithm in ("PPO", "A2C") else "predict", "inference")
        return (lambda: model.learn(warm_steps),
                lambda: model.learn(steps, reset_num_timesteps=False))
    return "stable_baselines3", build


def bundled(module, steps, warm_steps):
    """A workload of tests/workloads."""
    def build(clock):
        sys.path.insert(0, WORKLOADS)
        import common
        workload = __import__(module)
        arguments = argparse.Namespace(steps=None, seconds=None, seed=0, threads=1)
        random = common.seed_everything(arguments)
        common.print_ready = lambda: None
        environment = common.make_environment(0)
        sizes = environment.observation_space.shape[0], environment.action_space.shape[0]
        agent = workload.Agent(*sizes)
        replay = [workload.Replay(*sizes, random)] if hasattr(workload, "Replay") else []

        def train(count):
            arguments.steps = count
            budget = common.Budget(arguments)
            with clock.operation("training_loop"):
                workload.train(environment, agent, *replay, budget, clock, 0)

        return lambda: train(warm_steps), lambda: train(steps)
    return "gymnasium", build


def torch_loop(steps, width, batch, layers=2, device="cpu"):
    """An MLP and Adam: the most calls into PyTorch a second that a training loop makes."""
    def build(clock):
        import torch
        torch.set_num_threads(1)
        torch.manual_seed(0)
        sizes = [width] * (layers + 1)
        model = torch.nn.Sequential(*[part for a, b in zip(sizes, sizes[1:])
                                      for part in (torch.nn.Linear(a, b), torch.nn.ReLU())]).to(device)
        optimizer = torch.optim.Adam(model.parameters())
        data, target = (torch.randn(batch, width, device=device) for _ in range(2))

        def train(count):
            for _ in range(count):
                with clock.operation("forward"):
                    loss = torch.nn.functional.mse_loss(model(data), target)
                with clock.operation("backward"):
                    optimizer.zero_grad()
                    loss.backward()
                with clock.operation("step"):
                    optimizer.step()
        return lambda: train(100), lambda: train(steps)
    return "torch", build


def on_gpu(piece, **settings):
    """The same there. CUDA outlives no fork: the child builds it, when it warms up. Its work is done when the GPU's is."""
    def build(clock):
        made = []

        def warm():
            made.extend(piece(device="cuda", **settings)[1](clock))
            made[0]()

        def work():
            import torch
            made[1]()
            torch.cuda.synchronize()
        return warm, work
    return "cuda", build


PIECES = {
    "ppo-walker2d": sb3("PPO", "Walker2d-v5", 1024, 512, n_steps=512),
    "ppo-cartpole-4env": sb3("PPO", "CartPole-v1", 3072, 1024, environments=4, n_steps=256),
    "a2c-hopper": sb3("A2C", "Hopper-v5", 1250, 200),
    "a2c-cartpole": sb3("A2C", "CartPole-v1", 2000, 200),
    "sac-walker2d": sb3("SAC", "Walker2d-v5", 60, 150),
    "sac-pendulum-small": sb3("SAC", "Pendulum-v1", 200, 150, policy_kwargs={"net_arch": [64, 64]}),
    "td3-hopper": sb3("TD3", "Hopper-v5", 90, 150),
    "ddpg-pendulum": sb3("DDPG", "Pendulum-v1", 150, 150),
    "dqn-cartpole": sb3("DQN", "CartPole-v1", 2000, 300, learning_starts=100),
    "dqn-mountaincar-wide": sb3("DQN", "MountainCar-v0", 2000, 300, learning_starts=100,
                                policy_kwargs={"net_arch": [400, 300]}),
    "bundled-ppo-walker2d": bundled("onpolicy", 3072, 512),
    "bundled-td3-walker2d": bundled("offpolicy", 2000, 700),
    "torch-mlp-small": torch_loop(4000, 16, 8),
    "torch-mlp-wide": torch_loop(700, 512, 64),
    "gpu-ppo-walker2d": on_gpu(sb3, algorithm="PPO", environment="Walker2d-v5", steps=512, warm_steps=512, n_steps=512),
    "gpu-sac-walker2d": on_gpu(sb3, algorithm="SAC", environment="Walker2d-v5", steps=100, warm_steps=150),
    "gpu-mlp-small": on_gpu(torch_loop, steps=1000, width=64, batch=64),
    "gpu-mlp-wide": on_gpu(torch_loop, steps=300, width=4096, batch=1024),
}


def torch_profiler():
    from torch import profiler
    return profiler.profile(activities=[profiler.ProfilerActivity.CPU])


# --- serving ---

def read_line():
    """Unbuffered: the children read from the same pipe."""
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return None
        line += byte
    return line.decode().strip()


def say(**what):
    print(json.dumps(what), flush=True)


def move_to(cpu):
    """From there on the scheduler may move us again."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    os.sched_setaffinity(0, allowed)


def child(clock, warm, work):
    """Does it at `go`; at `trail CPU` beginning there, and tells each of its pieces."""
    warm()
    say(child=os.getpid())
    while (words := (read_line() or "").split()) and words[0] in ("go", "trail"):
        for cpu in words[1:]:
            (clock.turns.hold if clock.turns else move_to)(int(cpu))
        answer = clock.measure(work)
        say(**answer, **({"trail": clock.trail} if words[0] == "trail" else {}))


def read_through(path):
    """Has a file in memory: fault by fault it takes half a minute to get a gigabyte that is there no longer."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        while file.read(1 << 20):
            pass


def leave_files():
    """From here on our code is in memory of our own, at the addresses where files were: probes are files', and all
    processes that run these pay for a profiler's."""
    libc = ctypes.CDLL(None, use_errno=True)
    for call, arguments in ((libc.mmap, 6), (libc.mprotect, 3), (libc.mremap, 5)):
        call.argtypes, call.restype = [ctypes.c_ssize_t] * arguments, ctypes.c_ssize_t
    with open("/proc/self/maps", encoding="utf-8") as maps:
        code = [(fields[0].split("-"), fields[-1]) for fields in map(str.split, maps)
                if fields[1] == "r-xp" and fields[-1].startswith("/")]
    for path in {path for _, path in code}:
        read_through(path)
    for (first, last), _ in code:
        begin, size = int(first, 16), int(last, 16) - int(first, 16)
        copy = libc.mmap(0, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        ctypes.memmove(copy, begin, size)
        if (libc.mprotect(copy, size, mmap.PROT_READ | mmap.PROT_EXEC)
                or libc.mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, begin) != begin):
            sys.exit("work.py: the twin cannot copy its code: " + os.strerror(ctypes.get_errno()))


def twin(clock, warm, work):
    """Works whenever it is its turn, as long as there is another, and says so of each time it did the work."""
    leave_files()
    clock.turns.take()
    warm()
    while True:
        answer = clock.measure(work)
        say(**answer, twin=os.getpid(), trail=clock.trail)


def fork(run, *arguments):
    pid = os.fork()
    if not pid:
        status = 1
        try:
            run(*arguments)
            status = 0
        finally:
            os._exit(status)
    return pid


def fork_twins(clock, warm, work):
    """Both begin with the same memory."""
    def run(role, ends, turn_ns):
        mine, others = ends
        for end in {*here, *there} - {mine, others}:
            os.close(end)
        clock.turns = Turns(mine, others, turn_ns)
        clock.turns.hold(min(os.sched_getaffinity(0)))
        role(clock, warm, work)

    here, there = os.pipe(), os.pipe()
    pids = [fork(run, child, (here[0], there[1]), TURN_NS), fork(run, twin, (there[0], here[1]), TWIN_TURN_NS)]
    for end in (*here, *there):
        os.close(end)
    return pids


def serve(clock, warm, work, twins):
    """twins: whether it can have them."""
    say(ready=os.getpid(), twins=twins)
    while (word := read_line()) in ("run", "twins"):
        pids = [fork(child, clock, warm, work)] if word == "run" else fork_twins(clock, warm, work)
        for pid in pids:
            if os.waitpid(pid, 0)[1]:
                say(failed=pid)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", choices=sorted(PIECES))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--times", type=int)
    parser.add_argument("--torch-profiler", action="store_true")
    options = parser.parse_args()
    if options.list or not options.name:
        for name, (needs, _) in PIECES.items():
            print(name, needs)
        return
    try:
        import rlscope
    except ImportError:
        sys.exit("work.py: no rlscope package: set PYTHONPATH to build/python")
    clock = Clock(rlscope)
    needs, build = PIECES[options.name]
    warm, work = build(clock)
    if options.times:
        warm()
        with torch_profiler() if options.torch_profiler else contextlib.nullcontext():
            say(wall_ns=sum(clock.measure(work)["wall_ns"] for _ in range(options.times)))
    else:
        serve(clock, warm, work, twins=needs != "cuda")


if __name__ == "__main__":
    main()
