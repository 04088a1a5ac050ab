/* Out of C into Python by an address loaded before: no stub is called. Each goes there once. */
#include "truth.h"

typedef PyObject *(*truth_call)(PyObject *target, PyObject *nothing);

/* It takes its arguments up to the null pointer: one, here. */
#define CALL_OBJARGS ((truth_call)(void *)PyObject_CallFunctionObjArgs)

static volatile unsigned int turn;

/* One of two, by a conditional move. */
PyObject *truth_loaded_either(PyObject *target)
{
	truth_call one = PyObject_CallObject, other = CALL_OBJARGS;
	PyObject *result;

	__asm__ volatile("" : "+r"(one), "+r"(other));
	result = (turn++ & 1 ? one : other)(target, NULL);
	__asm__ volatile("" : "+r"(result));
	return result;
}

/* One of two, by a branch. */
PyObject *truth_loaded_picked(PyObject *target)
{
	PyObject *result = (turn++ & 1 ? PyObject_CallObject : CALL_OBJARGS)(target, NULL);

	__asm__ volatile("" : "+r"(result));
	return result;
}

/* By a jump. */
PyObject *truth_loaded_either_jump(PyObject *target)
{
	truth_call one = PyObject_CallObject, other = CALL_OBJARGS;

	__asm__ volatile("" : "+r"(one), "+r"(other));
	return (turn++ & 1 ? one : other)(target, NULL);
}

/* Kept over another call. */
PyObject *truth_loaded_kept(PyObject *target)
{
	truth_call call = PyObject_CallObject;
	PyObject *result;

	__asm__ volatile("" : "+r"(call));
	result = PyList_New(0);
	if (!result)
		return NULL;
	Py_DECREF(result);
	result = call(target, NULL);
	__asm__ volatile("" : "+r"(result));
	return result;
}

/* As gcc saves it on the stack. */
PyObject *truth_loaded_frame(PyObject *target)
{
	truth_call volatile call = PyObject_CallObject;
	PyObject *result = call(target, NULL);

	__asm__ volatile("" : "+r"(result));
	return result;
}

/* Filled at its first use. */
PyObject *truth_loaded_variable(PyObject *target)
{
	static truth_call volatile call;
	PyObject *result;

	if (!call)
		call = PyObject_CallObject;
	result = call(target, NULL);
	__asm__ volatile("" : "+r"(result));
	return result;
}

/* Filled by the loader. The version is no flag of a method: what stands before it may be a name and a function. */
PyObject *truth_loaded_structure(PyObject *target)
{
	static struct {
		long version;
		truth_call volatile call;
	} api = {1000, PyObject_CallObject};
	PyObject *result = api.call(target, NULL);

	__asm__ volatile("" : "+r"(result));
	return result;
}

PyObject *truth_loaded_table(PyObject *target)
{
	static truth_call volatile table[] = {PyObject_CallObject, CALL_OBJARGS, NULL};
	PyObject *result = table[turn++ & 1](target, NULL);

	__asm__ volatile("" : "+r"(result));
	return result;
}

static PyObject *call_nobody(PyObject *target, PyObject *nothing)
{
	return PyBool_FromLong(1);
}

/* Python or not: nobody can tell from the code. */
PyObject *truth_loaded_perhaps(PyObject *target)
{
	truth_call one = call_nobody, other = PyObject_CallObject;
	PyObject *result;

	__asm__ volatile("" : "+r"(one), "+r"(other));
	result = (turn == UINT32_MAX ? one : other)(target, NULL);
	__asm__ volatile("" : "+r"(result));
	return result;
}
