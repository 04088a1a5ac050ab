"""`@rlscope.operation("name")` for every kind of function.

A plain function is inside the operation from call to return. A generator or a coroutine is
inside only while its own code runs: while it is suspended, the thread does something else,
and other tasks on the thread must not inherit or end an operation that is not theirs.
"""

import functools
import inspect
import types


def decorate(operation, function):
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(decorate(operation, function.__func__))
    if isinstance(function, type) or not callable(function):
        raise TypeError("operation decorates functions, not {!r}".format(function))
    if inspect.isasyncgenfunction(function):
        return _wrap_async_generator(operation, function)
    if inspect.iscoroutinefunction(function):
        return _wrap_coroutine(operation, function)
    if inspect.isgeneratorfunction(function):
        return _wrap_generator(operation, function)
    return _wrap_plain(operation, function)


def _wrap_plain(operation, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        with operation:
            return function(*args, **kwargs)

    return wrapper


def _drive(operation, inner, begun=False):
    """A generator that runs `inner` (anything with send, throw and close) inside `operation`.
    begun: the operation has been entered before, and is only gone on with."""
    step, argument = inner.send, None
    while True:
        operation._go_on(begun)
        begun = True
        try:
            item = step(argument)
        except StopIteration as stop:
            return stop.value
        finally:
            operation._pause()
        try:
            step, argument = inner.send, (yield item)
        except GeneratorExit:
            operation._go_on(True)
            try:
                inner.close()
            finally:
                operation._pause()
            raise
        except BaseException as error:
            step, argument = inner.throw, error


_await = types.coroutine(_drive)


def _wrap_generator(operation, function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return (yield from _drive(operation, function(*args, **kwargs)))

    return wrapper


def _wrap_coroutine(operation, function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        return await _await(operation, function(*args, **kwargs))

    return wrapper


def _wrap_async_generator(operation, function):
    @functools.wraps(function)
    async def wrapper(*args, **kwargs):
        inner = function(*args, **kwargs)
        step, argument, begun = inner.asend, None, False
        try:
            while True:
                try:
                    item = await _await(operation, step(argument), begun)
                except StopAsyncIteration:
                    return
                begun = True
                try:
                    step, argument = inner.asend, (yield item)
                except GeneratorExit:
                    raise
                except BaseException as error:
                    step, argument = inner.athrow, error
        finally:
            await inner.aclose()

    return wrapper
