/* truthback: an extension with the role "backend", called by Python and by truthsim. */
#include "spin.h"
#include "truth.h"

__thread struct truth_counts truth_counts;

/* Exported on purpose: truthsim reaches it from C, as a simulator might call into torch. */
__attribute__((visibility("default"), noinline)) long truthback_step(long number)
{
	return number ^ 0x5a;
}

static PyObject *meth_noargs(PyObject *self, PyObject *unused)
{
	truth_enter();
	return PyLong_FromLong(2);
}

static PyObject *meth_spin(PyObject *self, PyObject *arg)
{
	unsigned long long wanted_ns;

	truth_enter();
	wanted_ns = PyLong_AsUnsignedLongLong(arg);
	if (PyErr_Occurred())
		return NULL;
	return PyLong_FromUnsignedLongLong(truth_spin(wanted_ns));
}

static PyObject *meth_call(PyObject *self, PyObject *args)
{
	PyObject *function;
	long count;

	truth_enter();
	if (!PyArg_ParseTuple(args, "Ol", &function, &count))
		return NULL;
	for (long i = 0; i < count; i++) {
		PyObject *result;

		truth_leave();
		result = PyObject_CallObject(function, NULL);
		if (!result)
			return NULL;
		Py_DECREF(result);
	}
	return PyLong_FromLong(count);
}

static PyObject *meth_counts(PyObject *self, PyObject *unused)
{
	truth_enter();
	return Py_BuildValue("KKK", (unsigned long long)truth_counts.entries,
			     (unsigned long long)truth_counts.callouts,
			     (unsigned long long)truth_counts.crossings);
}

static PyMethodDef truthback_methods[] = {
	{"noargs", meth_noargs, METH_NOARGS, NULL},
	{"spin", meth_spin, METH_O, NULL},
	{"call", meth_call, METH_VARARGS, NULL},
	{"counts", meth_counts, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef truthback_module = {
	PyModuleDef_HEAD_INIT,
	.m_name = "truthback",
	.m_size = -1,
	.m_methods = truthback_methods,
};

TRUTH_INIT PyInit_truthback(void)
{
	PyObject *module = PyModule_Create(&truthback_module);
	PyObject *capsule;

	if (!module)
		return NULL;
	capsule = PyCapsule_New((void *)truthback_step, "truthback._step", NULL);
	if (!capsule || PyModule_AddObject(module, "_step", capsule)) {
		Py_XDECREF(capsule);
		Py_DECREF(module);
		return NULL;
	}
	return module;
}
