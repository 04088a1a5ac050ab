"""rlscope.operation, phase and process name, by what they leave in the thread's record."""

import asyncio
import inspect
import os
import threading
import unittest

import records
import rlscope
from records import PHASE, POP, PROCESS_NAME, PUSH


class Operations(unittest.TestCase):
    def setUp(self):
        self.before = records.head()

    def tearDown(self):
        self.assertEqual(records.stack(), [])

    def assert_edges(self, *expected):
        self.assertEqual(records.edges(self.before), list(expected))

    def test_the_extension_is_in_use(self):
        self.assertEqual(rlscope.operation.__module__, "rlscope")
        self.assertNotEqual(rlscope.__version__, "0")

    def test_blocks_nest(self):
        with rlscope.operation("step"):
            with rlscope.operation("inference") as entered:
                self.assertIsInstance(entered, rlscope.operation)
        self.assert_edges((PUSH, "step", 1), (PUSH, "inference", 2), (POP, "step", 1), (POP, "", 0))

    def test_a_name_nests_in_itself(self):
        expand = rlscope.operation("expand")
        with expand, expand:
            self.assertEqual(records.stack(), ["expand", "expand"])

    def test_an_exception_closes_and_passes(self):
        with self.assertRaises(KeyError):
            with rlscope.operation("fails"):
                raise KeyError
        self.assert_edges((PUSH, "fails", 1), (POP, "", 0))

    def test_names_of_all_kinds(self):
        for name, kept in (("größe→", "größe→"), (u"\ud800x", "\\ud800x"), ("a" * 200, "a" * 127),
                           ("", ""), (type("Sub", (str,), {})("sub"), "sub")):
            with rlscope.operation(name):
                self.assertEqual(records.stack(), [kept])
        with rlscope.operation(name="keyword"):
            self.assertEqual(records.stack(), ["keyword"])

    def test_wrong_arguments(self):
        for arguments in ((), (1,), (b"bytes",), (None,), ("a", "b")):
            with self.assertRaises(TypeError):
                rlscope.operation(*arguments)
        with self.assertRaises(TypeError):
            rlscope.operation(title="x")
        with self.assertRaises(TypeError):
            rlscope.set_phase(3)

    def test_repr(self):
        self.assertEqual(repr(rlscope.operation("x")), "rlscope.operation('x')")

    def test_phases(self):
        rlscope.set_process_name("trainer")
        rlscope.set_phase("outer")
        with rlscope.phase("inner") as entered, rlscope.operation("step"):
            self.assertEqual(entered.name, "inner")
            self.assertEqual(rlscope.get_phase(), "inner")
        self.assertEqual(rlscope.get_phase(), "outer")
        rlscope.set_phase("")
        self.assertEqual(rlscope.get_phase(), "")
        self.assert_edges((PROCESS_NAME, "trainer", 0), (PHASE, "outer", 0), (PHASE, "inner", 0),
                          (PUSH, "step", 1), (POP, "", 0), (PHASE, "outer", 0), (PHASE, "", 0))

    def test_threads_are_independent(self):
        seen = []

        def work():
            with rlscope.operation("worker"):
                seen.append(records.stack())

        with rlscope.operation("main"):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
            self.assertEqual(records.stack(), ["main"])
        self.assertEqual(seen, [["worker"]])

    def test_a_forked_child_goes_on(self):
        with rlscope.operation("parent"):
            child = os.fork()
            if not child:
                good = records.stack() == ["parent"] and records.record().tid == os.getpid()
                os._exit(0 if good else 1)
            self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_objects_come_and_go(self):
        for number in range(10000):
            with rlscope.operation("many"):
                pass
        self.assertEqual(records.head() - self.before, 20000)


class Decorated(unittest.TestCase):
    def tearDown(self):
        self.assertEqual(records.stack(), [])

    def test_function(self):
        @rlscope.operation("simulation")
        def step(action, *, scale=1):
            """Steps."""
            return action * scale, records.stack()

        self.assertEqual(step(2, scale=3), (6, ["simulation"]))
        self.assertEqual((step.__name__, step.__doc__), ("step", "Steps."))

    def test_methods(self):
        class Env:
            @rlscope.operation("method")
            def step(self):
                return records.stack()

            @rlscope.operation("static")
            @staticmethod
            def make():
                return records.stack()

            @classmethod
            @rlscope.operation("class")
            def name(cls):
                return cls.__name__, records.stack()

        self.assertEqual(Env().step(), ["method"])
        self.assertEqual(Env.make(), ["static"])
        self.assertEqual(Env.name(), ("Env", ["class"]))

    def test_exception(self):
        @rlscope.operation("fails")
        def fail():
            raise ValueError(records.stack())

        with self.assertRaisesRegex(ValueError, "fails"):
            fail()

    def test_what_is_no_function(self):
        for thing in (3, "x", int, type("C", (), {})):
            with self.assertRaises(TypeError):
                rlscope.operation("x")(thing)

    def test_generator_is_inside_while_it_runs(self):
        @rlscope.operation("loader")
        def batches(count):
            got = yield records.stack()
            for _ in range(count):
                got = yield got, records.stack()
            return "done"

        self.assertTrue(inspect.isgeneratorfunction(batches))
        generator = batches(2)
        self.assertEqual(next(generator), ["loader"])
        self.assertEqual(records.stack(), [])
        self.assertEqual(generator.send("a"), ("a", ["loader"]))
        self.assertEqual(generator.send("b"), ("b", ["loader"]))
        with self.assertRaises(StopIteration) as stop:
            next(generator)
        self.assertEqual(stop.exception.value, "done")

    def test_generator_sees_throw_and_close(self):
        seen = []

        @rlscope.operation("loader")
        def patient():
            try:
                while True:
                    try:
                        yield
                    except KeyError:
                        seen.append(("KeyError", records.stack()))
            finally:
                seen.append(("closed", records.stack()))

        generator = patient()
        next(generator)
        generator.throw(KeyError())
        generator.close()
        self.assertEqual(seen, [("KeyError", ["loader"]), ("closed", ["loader"])])

    def test_coroutines_do_not_mix(self):
        seen = []

        def task(name):
            @rlscope.operation(name)
            async def run():
                for _ in range(3):
                    seen.append((name, records.stack()))
                    await asyncio.sleep(0)
                return name

            return run

        async def both():
            return await asyncio.gather(task("a")(), task("b")())

        self.assertTrue(inspect.iscoroutinefunction(task("x")))
        self.assertEqual(asyncio.run(both()), ["a", "b"])
        self.assertEqual(seen, [("a", ["a"]), ("b", ["b"])] * 3)

    def test_cancelled_coroutine(self):
        seen = []

        @rlscope.operation("waits")
        async def wait():
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                seen.append(records.stack())
                raise

        async def cancel():
            task = asyncio.ensure_future(wait())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        asyncio.run(cancel())
        self.assertEqual(seen, [["waits"]])

    def test_async_generator(self):
        @rlscope.operation("stream")
        async def numbers():
            for number in range(3):
                await asyncio.sleep(0)
                yield number, records.stack()

        async def collect():
            found = []
            async for number, inside in numbers():
                found.append((number, inside, records.stack()))
            return found

        self.assertEqual(asyncio.run(collect()), [(n, ["stream"], []) for n in range(3)])


if __name__ == "__main__":
    unittest.main()
