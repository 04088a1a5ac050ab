"""What rlscope._annotate offers, doing nothing: for when it cannot be loaded.

Silent on purpose. An annotated script is not to be bothered, and not to be slowed, where
nobody profiles it.
"""

version = "0"

_phase = ""


def _check(name):
    if not isinstance(name, str):
        raise TypeError("a name must be a str")


class operation:
    __slots__ = ("_name",)

    def __init__(self, name):
        _check(name)
        self._name = name

    def __repr__(self):
        return "rlscope.operation({!r})".format(self._name)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return None

    def __call__(self, function):
        if not callable(function):
            raise TypeError("operation decorates functions, not {!r}".format(function))
        return function


def set_phase(name):
    global _phase
    _check(name)
    _phase = name


def get_phase():
    return _phase


def set_process_name(name):
    _check(name)
