/* Out of C into Python: callback(way, target, count) goes `count` times into Python by the
 * named way. "call" ways are the calling family; "protocol" ways run Python code behind an
 * operator, an attribute or a finalizer. */
#include "truth.h"

#include <string.h>

typedef PyObject *(*truth_way)(PyObject *target);

/* Keeps `return call()` a call: control must come back into this function. */
static inline PyObject *came_back(PyObject *result)
{
	__asm__ volatile("" : "+r"(result));
	return result;
}

static PyObject *call_object(PyObject *target)
{
	return came_back(PyObject_CallObject(target, NULL));
}

/* A jump into Python that returns to the function above this one, in this library too. */
static PyObject *jump_object(PyObject *target)
{
	return PyObject_CallObject(target, NULL);
}

static PyObject *call_function(PyObject *target)
{
	return came_back(PyObject_CallFunction(target, NULL));
}

static PyObject *call_function_objargs(PyObject *target)
{
	return came_back(PyObject_CallFunctionObjArgs(target, Py_None, NULL));
}

static PyObject *call_method(PyObject *target)
{
	return came_back(PyObject_CallMethod(target, "step", NULL));
}

static PyObject *call_method_objargs(PyObject *target)
{
	static PyObject *name;

	if (!name)
		name = PyUnicode_InternFromString("step");
	return came_back(PyObject_CallMethodObjArgs(target, name, NULL));
}

static PyObject *call_keywords(PyObject *target)
{
	static PyObject *empty;

	if (!empty)
		empty = PyTuple_New(0);
	return came_back(PyObject_Call(target, empty, NULL));
}

/* 3.8 to 3.10 inline this one into the caller: it reaches Python by an indirect call. */
static PyObject *vectorcall(PyObject *target)
{
#if PY_VERSION_HEX >= 0x03090000
	return came_back(PyObject_Vectorcall(target, NULL, 0, NULL));
#else
	return came_back(_PyObject_Vectorcall(target, NULL, 0, NULL));
#endif
}

#if PY_VERSION_HEX >= 0x03090000
static PyObject *call_no_args(PyObject *target)
{
	return came_back(PyObject_CallNoArgs(target));
}

static PyObject *call_one_arg(PyObject *target)
{
	return came_back(PyObject_CallOneArg(target, Py_None));
}

static PyObject *vectorcall_method(PyObject *target)
{
	static PyObject *name;

	if (!name)
		name = PyUnicode_InternFromString("step");
	return came_back(PyObject_VectorcallMethod(name, &target, 1, NULL));
}
#endif

static PyObject *iter_next(PyObject *target)
{
	return PyIter_Next(target);
}

static PyObject *get_attr(PyObject *target)
{
	return PyObject_GetAttrString(target, "attribute");
}

static PyObject *get_item(PyObject *target)
{
	return PyObject_GetItem(target, Py_None);
}

static PyObject *number_add(PyObject *target)
{
	return PyNumber_Add(target, Py_None);
}

static PyObject *rich_compare(PyObject *target)
{
	return PyObject_RichCompare(target, Py_None, Py_LT);
}

static PyObject *object_repr(PyObject *target)
{
	return PyObject_Repr(target);
}

static PyObject *object_str(PyObject *target)
{
	return PyObject_Str(target);
}

static PyObject *object_size(PyObject *target)
{
	Py_ssize_t size = PyObject_Size(target);

	return size < 0 ? NULL : PyBool_FromLong(size != 0);
}

static PyObject *is_true(PyObject *target)
{
	int answer = PyObject_IsTrue(target);

	return answer < 0 ? NULL : PyBool_FromLong(answer);
}

static PyObject *set_attr(PyObject *target)
{
	if (PyObject_SetAttrString(target, "attribute", Py_None))
		return NULL;
	return PyBool_FromLong(1);
}

/* target is a list of objects with a __del__; dropping one runs it. */
static PyObject *drop_last(PyObject *target)
{
	Py_ssize_t last = PyList_GET_SIZE(target) - 1;
	PyObject *object = PyList_GET_ITEM(target, last);

	Py_INCREF(object);
	PyList_SetSlice(target, last, last + 1, NULL);
	Py_DECREF(object);
	return PyBool_FromLong(1);
}

static const struct {
	const char *name;
	truth_way way;
} ways[] = {
	{"call_object", call_object},
	{"jump_object", jump_object},
	{"call_function", call_function},
	{"call_function_objargs", call_function_objargs},
	{"call_method", call_method},
	{"call_method_objargs", call_method_objargs},
	{"call_keywords", call_keywords},
	{"vectorcall", vectorcall},
#if PY_VERSION_HEX >= 0x03090000
	{"call_no_args", call_no_args},
	{"call_one_arg", call_one_arg},
	{"vectorcall_method", vectorcall_method},
#endif
	{"loaded_either", truth_loaded_either},
	{"loaded_picked", truth_loaded_picked},
	{"loaded_either_jump", truth_loaded_either_jump},
	{"loaded_kept", truth_loaded_kept},
	{"loaded_frame", truth_loaded_frame},
	{"loaded_variable", truth_loaded_variable},
	{"loaded_structure", truth_loaded_structure},
	{"loaded_table", truth_loaded_table},
	{"loaded_perhaps", truth_loaded_perhaps},
	{"iter_next", iter_next},
	{"get_attr", get_attr},
	{"get_item", get_item},
	{"number_add", number_add},
	{"rich_compare", rich_compare},
	{"object_repr", object_repr},
	{"object_str", object_str},
	{"object_size", object_size},
	{"is_true", is_true},
	{"set_attr", set_attr},
	{"drop_last", drop_last},
};

static truth_way way_find(const char *name)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
		if (!strcmp(ways[i].name, name))
			return ways[i].way;
	PyErr_Format(PyExc_KeyError, "no way named %s", name);
	return NULL;
}

static PyObject *meth_callback(PyObject *self, PyObject *args)
{
	const char *name;
	PyObject *target;
	truth_way way;
	long count;

	truth_enter();
	if (!PyArg_ParseTuple(args, "sOl", &name, &target, &count))
		return NULL;
	way = way_find(name);
	if (!way)
		return NULL;
	for (long i = 0; i < count; i++) {
		PyObject *result;

		truth_leave();
		result = way(target);
		if (!result)
			return NULL;
		Py_DECREF(result);
	}
	return PyLong_FromLong(count);
}

/* recurse(function, depth): calls function(depth) and passes its answer on. */
static PyObject *meth_recurse(PyObject *self, PyObject *args)
{
	PyObject *function, *result;
	long depth;

	truth_enter();
	if (!PyArg_ParseTuple(args, "Ol", &function, &depth))
		return NULL;
	truth_leave();
	result = PyObject_CallFunction(function, "l", depth);
	if (result && !PyLong_Check(result)) {
		Py_DECREF(result);
		PyErr_SetString(PyExc_TypeError, "function gave no int");
		return NULL;
	}
	return result;
}

/* tail(function): a jump into Python, so control never comes back here. */
static PyObject *meth_tail(PyObject *self, PyObject *function)
{
	truth_enter();
	truth_leave();
	return PyObject_CallObject(function, NULL);
}

static long (*backend_step)(long);

/* bind(capsule): the exported function of truthback that cross() calls. */
static PyObject *meth_bind(PyObject *self, PyObject *capsule)
{
	truth_enter();
	backend_step = (long (*)(long))PyCapsule_GetPointer(capsule, "truthback._step");
	if (!backend_step)
		return NULL;
	Py_RETURN_NONE;
}

static PyObject *meth_cross(PyObject *self, PyObject *arg)
{
	long count, sum = 0;

	truth_enter();
	count = PyLong_AsLong(arg);
	if (PyErr_Occurred())
		return NULL;
	if (!backend_step) {
		PyErr_SetString(PyExc_RuntimeError, "bind() first");
		return NULL;
	}
	for (long i = 0; i < count; i++) {
		truth_counts.crossings++;
		sum += backend_step(i);
	}
	return PyLong_FromLong(sum);
}

static PyMethodDef callback_methods[] = {
	{"callback", meth_callback, METH_VARARGS, NULL},
	{"recurse", meth_recurse, METH_VARARGS, NULL},
	{"tail", meth_tail, METH_O, NULL},
	{"bind", meth_bind, METH_O, NULL},
	{"cross", meth_cross, METH_O, NULL},
	{NULL, NULL, 0, NULL},
};

int truth_callbacks_add(PyObject *module)
{
	return PyModule_AddFunctions(module, callback_methods);
}
