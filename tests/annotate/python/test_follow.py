"""Operations of `with` blocks around await and yield, by what they leave in the thread's record."""

import asyncio
import contextlib
import sys
import threading
import unittest

import records
import rlscope
from records import DISORDER, POP, PUSH, RESUMED

FOLLOWS = hasattr(sys, "monitoring")


def open_now():
    return records.stack()


def entries(since):
    """Names that were entered, and not gone on with."""
    return [name for kind, name, _, flags in records.flagged_edges(since)
            if kind == PUSH and not flags & RESUMED]


def disorders(since):
    return sum(bool(flags & DISORDER) for _, _, _, flags in records.flagged_edges(since))


class Base(unittest.TestCase):
    def setUp(self):
        self.before = records.head()

    def tearDown(self):
        self.assertEqual(open_now(), [])

    def run_async(self, coroutine):
        return asyncio.run(coroutine)


@unittest.skipUnless(FOLLOWS, "needs sys.monitoring")
class Followed(Base):
    async def work(self, *expected, times=3):
        for _ in range(times):
            self.assertEqual(open_now(), list(expected))
            await asyncio.sleep(0)
            self.assertEqual(open_now(), list(expected))

    async def agent(self, name):
        with rlscope.operation(name):
            await self.work(name)

    def test_tasks_take_turns(self):
        async def main():
            await asyncio.gather(self.agent("a"), self.agent("b"), self.work())
        self.run_async(main())
        self.assertEqual(sorted(entries(self.before)), ["a", "b"])
        self.assertEqual(disorders(self.before), 0)

    def test_nested_operations_of_tasks(self):
        async def deep(name):
            with rlscope.operation(name):
                with rlscope.operation(name + "2"):
                    await self.inner(name)
                await self.work(name)
        async def main():
            await asyncio.gather(deep("a"), deep("b"))
        self.run_async(main())
        self.assertEqual(sorted(entries(self.before)), ["a", "a2", "a3", "b", "b2", "b3"])

    async def inner(self, name):
        with rlscope.operation(name + "3"):
            await self.work(name, name + "2", name + "3")

    def test_a_task_group(self):
        async def main():
            with rlscope.operation("rollout"):
                async with asyncio.TaskGroup() as group:
                    group.create_task(self.agent("a"))
                    group.create_task(self.agent("b"))
                self.assertEqual(open_now(), ["rollout"])
        self.run_async(main())
        self.assertEqual(sorted(entries(self.before)), ["a", "b", "rollout"])

    def test_a_generator(self):
        def produce():
            with rlscope.operation("produce"):
                for i in range(3):
                    self.assertEqual(open_now()[-1], "produce")
                    yield i
        with rlscope.operation("consume"):
            for _ in produce():
                self.assertEqual(open_now(), ["consume"])
        self.assertEqual(entries(self.before), ["consume", "produce"])

    def test_generators_take_turns(self):
        def produce(name):
            with rlscope.operation(name):
                for _ in range(3):
                    self.assertEqual(open_now(), [name])
                    yield
        for _ in zip(produce("a"), produce("b")):
            self.assertEqual(open_now(), [])
        self.assertEqual(disorders(self.before), 0)

    def test_yield_from(self):
        def inner():
            with rlscope.operation("inner"):
                yield open_now()
        def outer():
            with rlscope.operation("outer"):
                yield from inner()
                yield open_now()
        seen = []
        for stack in outer():
            seen.append(stack)
            self.assertEqual(open_now(), [])
        self.assertEqual(seen, [["outer", "inner"], ["outer"]])

    def test_an_asynchronous_generator(self):
        async def produce():
            with rlscope.operation("produce"):
                for i in range(3):
                    await self.work("produce", times=1)
                    yield i
        async def consume():
            async for _ in produce():
                await self.work(times=1)
        async def main():
            await asyncio.gather(consume(), self.work())
        self.run_async(main())
        self.assertEqual(entries(self.before), ["produce"])

    def test_cancellation(self):
        async def agent():
            with rlscope.operation("agent"):
                try:
                    await asyncio.sleep(60)
                finally:
                    self.assertEqual(open_now(), ["agent"])
        async def main():
            task = asyncio.create_task(agent())
            await self.work(times=1)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(open_now(), [])
        self.run_async(main())
        self.assertEqual(disorders(self.before), 0)

    def test_an_exception_passes(self):
        async def fails():
            with rlscope.operation("fails"):
                await asyncio.sleep(0)
                raise KeyError
        async def main():
            with rlscope.operation("main"):
                with self.assertRaises(KeyError):
                    await fails()
                self.assertEqual(open_now(), ["main"])
        self.run_async(main())

    def test_a_timeout(self):
        async def main():
            with rlscope.operation("waits"):
                with self.assertRaises(asyncio.TimeoutError):
                    await asyncio.wait_for(asyncio.sleep(60), 0.001)
                self.assertEqual(open_now(), ["waits"])
        self.run_async(main())

    def test_a_closed_generator(self):
        def produce():
            with rlscope.operation("produce"):
                yield
        generator = produce()
        next(generator)
        self.assertEqual(open_now(), [])
        generator.close()
        abandoned = produce()
        next(abandoned)
        del abandoned
        self.assertEqual(disorders(self.before), 0)

    def test_a_generator_goes_on_in_another_thread(self):
        def produce():
            with rlscope.operation("produce"):
                yield open_now()
                yield open_now()
        generator, seen = produce(), []
        seen.append(next(generator))
        def run():
            seen.append(next(generator))
            seen.append(open_now())
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertEqual(seen, [["produce"], ["produce"], []])
        generator.close()

    def test_threads_of_an_executor(self):
        def blocking():
            with rlscope.operation("blocking"):
                return open_now()
        async def main():
            with rlscope.operation("waits"):
                self.assertEqual(await asyncio.to_thread(blocking), ["blocking"])
                loop = asyncio.get_running_loop()
                self.assertEqual(await loop.run_in_executor(None, blocking), ["blocking"])
                self.assertEqual(open_now(), ["waits"])
        self.run_async(main())

    def test_an_exit_stack(self):
        async def agent(name):
            with contextlib.ExitStack() as stack:
                stack.enter_context(rlscope.operation(name))
                await self.work(name)
        async def main():
            await asyncio.gather(agent("a"), agent("b"))
        self.run_async(main())

    def test_one_object_for_all(self):
        shared = rlscope.operation("shared")
        async def agent():
            with shared:
                await self.work("shared")
        async def main():
            await asyncio.gather(*[agent() for _ in range(10)])
            self.assertEqual(open_now(), [])
        self.run_async(main())
        self.assertEqual(entries(self.before), ["shared"] * 10)

    def test_a_switcher_of_its_own(self):
        """As trio and curio drive coroutines: by send and throw."""
        import types

        @types.coroutine
        def switch():
            yield

        async def agent(name):
            with rlscope.operation(name):
                for _ in range(3):
                    self.assertEqual(open_now(), [name])
                    await switch()
        ready = [agent("a"), agent("b")]
        while ready:
            coroutine = ready.pop(0)
            try:
                coroutine.send(None)
                ready.append(coroutine)
            except StopIteration:
                pass
            self.assertEqual(open_now(), [])


class Managers(Base):
    """A generator as a context manager is for its user's block."""

    @contextlib.contextmanager
    def phase(self, name):
        with rlscope.operation(name):
            yield

    def test_a_context_manager(self):
        with self.phase("block"):
            self.assertEqual(open_now(), ["block"])
        self.assertEqual(entries(self.before), ["block"])

    @unittest.skipUnless(FOLLOWS, "needs sys.monitoring")
    def test_context_managers_of_tasks(self):
        @contextlib.asynccontextmanager
        async def asynchronous(name):
            with rlscope.operation(name):
                await asyncio.sleep(0)
                yield
        async def agent(name):
            with self.phase(name):
                async with asynchronous(name + "2"):
                    for _ in range(3):
                        self.assertEqual(open_now(), [name, name + "2"])
                        await asyncio.sleep(0)
        async def main():
            await asyncio.gather(agent("a"), agent("b"))
        self.run_async(main())


class Disorder(Base):
    """With every version: what ends is what was begun, and it shows if it was not the innermost."""

    def test_ends_across(self):
        first, second = rlscope.operation("first"), rlscope.operation("second")
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        self.assertEqual(open_now(), ["second"])
        second.__exit__(None, None, None)
        self.assertEqual(disorders(self.before), 1)
        self.assertEqual(entries(self.before), ["first", "second"])

    def test_an_end_of_nothing(self):
        rlscope.operation("never").__exit__(None, None, None)
        self.assertEqual(disorders(self.before), 1)

    def test_an_end_on_another_thread(self):
        operation, seen = rlscope.operation("moved"), []
        operation.__enter__()
        def run():
            since = records.head()
            operation.__exit__(None, None, None)
            seen.append(disorders(since))
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        self.assertEqual(seen, [1])
        operation.__exit__(None, None, None)

    def test_too_deep_a_stack(self):
        with contextlib.ExitStack() as stack:
            for i in range(70):
                stack.enter_context(rlscope.operation("deep %d" % i))
            self.assertEqual(records.record().depth, 70)
        self.assertEqual(disorders(self.before), 0)


class Decorated(Base):
    def test_going_on_is_no_entry(self):
        @rlscope.operation("steps")
        def steps():
            for i in range(3):
                yield i

        @rlscope.operation("asteps")
        async def asteps():
            for i in range(3):
                await asyncio.sleep(0)
                yield i
        self.assertEqual(list(steps()), [0, 1, 2])
        async def main():
            return [i async for i in asteps()]
        self.assertEqual(self.run_async(main()), [0, 1, 2])
        self.assertEqual(entries(self.before), ["steps", "asteps"])
        self.assertEqual(disorders(self.before), 0)


if __name__ == "__main__":
    unittest.main()
