// truthload: C++ built without a PLT, which calls Python by loaded addresses and translates what is raised
// into an exception and back, as bindings do.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <stdexcept>
#include <string>

namespace {
using call_t = PyObject *(*)(PyObject *, PyObject *);
volatile unsigned turn;

struct python_error : std::runtime_error {
	using std::runtime_error::runtime_error;
};

// One of two, and an exception through this frame when it fails.
__attribute__((noinline)) long call_either(PyObject *function, std::string trace)
{
	call_t objargs = reinterpret_cast<call_t>(reinterpret_cast<void *>(PyObject_CallFunctionObjArgs));
	PyObject *result = (turn++ & 1 ? PyObject_CallObject : objargs)(function, nullptr);

	if (!result)
		throw python_error(trace);
	Py_DECREF(result);
	return 1;
}

// Three calls of one function: its address is loaded once, maybe.
__attribute__((noinline)) long call_thrice(PyObject *function)
{
	long done = 0;

	for (int i = 0; i < 3; i++) {
		PyObject *result = PyObject_CallObject(function, nullptr);

		if (!result)
			throw python_error("thrice");
		Py_DECREF(result);
		done += call_either(function, std::string(40, 'x'));
	}
	return done;
}

PyObject *thrice(PyObject *, PyObject *function)
{
	try {
		return PyLong_FromLong(call_thrice(function));
	} catch (const python_error &) {
		return nullptr;
	}
}

// Catches each and goes on: six calls, all of which fail.
PyObject *failing(PyObject *, PyObject *function)
{
	long caught = 0;

	for (int i = 0; i < 6; i++) {
		try {
			call_either(function, std::string(40, 'y'));
		} catch (const python_error &) {
			PyErr_Clear();
			caught++;
		}
	}
	return PyLong_FromLong(caught);
}

PyMethodDef methods[] = {
	{"thrice", thrice, METH_O, nullptr},
	{"failing", failing, METH_O, nullptr},
	{nullptr, nullptr, 0, nullptr},
};

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "truthload", nullptr, -1, methods,
			  nullptr, nullptr, nullptr, nullptr};
} // namespace

extern "C" __attribute__((visibility("default"))) PyObject *PyInit_truthload()
{
	return PyModule_Create(&definition);
}
