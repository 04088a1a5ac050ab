/* truthplain: a library without a role that runs code of its own, where samples find it. */
#include "truth.h"

static PyObject *meth_work(PyObject *self, PyObject *arg)
{
	unsigned long rounds = PyLong_AsUnsignedLong(arg);
	uint32_t state = 1;

	if (PyErr_Occurred())
		return NULL;
	for (unsigned long i = 0; i < rounds; i++)
		state = state * 1664525u + 1013904223u;
	return PyLong_FromUnsignedLong(state);
}

static PyMethodDef methods[] = {
	{"work", meth_work, METH_O, "so many steps of a random number generator"},
	{NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "truthplain",
	.m_size = -1,
	.m_methods = methods,
};

TRUTH_INIT PyInit_truthplain(void);

TRUTH_INIT PyInit_truthplain(void)
{
	return PyModule_Create(&definition);
}
