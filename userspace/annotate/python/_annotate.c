/* rlscope._annotate: the Python side of librlscope_annotate.so, one build for CPython 3.8
 * to 3.14 (stable ABI).
 *
 *     operation("name")          context manager and decorator, see rlscope/__init__.py
 *     set_phase(name)  get_phase()  set_process_name(name)
 *
 * A with-block is the hot path: one object, two method calls, no tuple and no dictionary.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03080000
#include <Python.h>

#include <string.h>

#include "rlscope_annotate.h"
#include "userspace/annotate/python/follow.h"

/* Both have been in every CPython since 3.7 with this value and signature, and part of the
 * stable ABI since 3.10; the headers hide them from whoever asks for less than 3.10. */
#ifndef METH_FASTCALL
#define METH_FASTCALL 0x0080
#endif
#if Py_LIMITED_API < 0x030a0000
PyAPI_FUNC(const char *) PyUnicode_AsUTF8AndSize(PyObject *text, Py_ssize_t *length);
#endif

#define METHOD(function) ((PyCFunction)(void (*)(void))(function))

struct operation {
	PyObject_HEAD rlscope_name name;
};

/* A str with lone surrogates has no UTF-8; a training script must not die of that. */
static rlscope_name intern_escaped(PyObject *text)
{
	PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
	rlscope_name name;

	if (!bytes)
		return NULL;
	name = rlscope_name_intern(PyBytes_AsString(bytes), PyBytes_Size(bytes));
	Py_DECREF(bytes);
	return name;
}

/* NULL with TypeError for what is no str. */
static rlscope_name annotate_intern(PyObject *text)
{
	Py_ssize_t length;
	const char *bytes;

	if (!PyUnicode_Check(text)) {
		PyErr_SetString(PyExc_TypeError, "a name must be a str");
		return NULL;
	}
	bytes = PyUnicode_AsUTF8AndSize(text, &length);
	if (bytes)
		return rlscope_name_intern(bytes, length);
	PyErr_Clear();
	return intern_escaped(text);
}

static PyObject *operation_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
	static char *names[] = {"name", NULL};
	PyObject *text = NULL;
	struct operation *self;
	rlscope_name name;

	if (!keywords && PyTuple_Size(args) == 1)
		text = PyTuple_GetItem(args, 0);
	else if (!PyArg_ParseTupleAndKeywords(args, keywords, "O:operation", names, &text))
		return NULL;
	name = annotate_intern(text);
	if (!name)
		return NULL;
	self = PyObject_New(struct operation, type);
	if (self)
		self->name = name;
	return (PyObject *)self;
}

static void operation_free(PyObject *self)
{
	PyTypeObject *type = Py_TYPE(self);

	PyObject_Free(self);
	Py_DECREF(type);
}

static PyObject *operation_repr(PyObject *self)
{
	return PyUnicode_FromFormat("rlscope.operation('%s')",
				    rlscope_name_text(((struct operation *)self)->name));
}

static PyObject *operation_enter(PyObject *self, PyObject *unused)
{
	const void *owner = rls_follow_owner();

	rlscope_operation_begin_owned(((struct operation *)self)->name, owner);
	if (owner && rls_follow_begin(owner) < 0)
		return NULL;
	Py_INCREF(self);
	return self;
}

static PyObject *operation_exit(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	rlscope_name name = ((struct operation *)self)->name;
	const void *owner = rls_follow_owner();

	if (rlscope_operation_end_owned(name, owner) < 0 && !rls_follow_end_suspended(owner, name))
		rlscope_operation_not_open();
	Py_INCREF(Py_None);
	return Py_None;
}

/* For the decorator, which knows by itself when its function stops and goes on. */
static PyObject *operation_go_on(PyObject *self, PyObject *begun)
{
	rlscope_name name = ((struct operation *)self)->name;

	if (begun == Py_True)
		rlscope_operation_resume(NULL, &name, 1);
	else
		rlscope_operation_begin_name(name);
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *operation_pause(PyObject *self, PyObject *unused)
{
	if (rlscope_operation_end_owned(((struct operation *)self)->name, NULL) < 0)
		rlscope_operation_not_open();
	Py_INCREF(Py_None);
	return Py_None;
}

/* As a decorator: what to wrap how (generators, coroutines) is said in Python. */
static PyObject *operation_call(PyObject *self, PyObject *args, PyObject *keywords)
{
	PyObject *module = PyImport_ImportModule("rlscope._decorate");
	PyObject *function = NULL, *wrapped = NULL;

	if (!module)
		return NULL;
	if (PyArg_ParseTuple(args, "O:operation", &function))
		wrapped = PyObject_CallMethod(module, "decorate", "OO", self, function);
	Py_DECREF(module);
	return wrapped;
}

static PyMethodDef operation_methods[] = {
	{"__enter__", operation_enter, METH_NOARGS, "Begin the operation."},
	{"__exit__", METHOD(operation_exit), METH_FASTCALL, "End the operation."},
	{"_go_on", operation_go_on, METH_O, NULL},
	{"_pause", operation_pause, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot operation_slots[] = {
	{Py_tp_doc, "operation(name): names what the thread does, as a context manager or a "
		    "decorator."},
	{Py_tp_new, operation_new},
	{Py_tp_dealloc, operation_free},
	{Py_tp_repr, operation_repr},
	{Py_tp_call, operation_call},
	{Py_tp_methods, operation_methods},
	{0, NULL},
};

static PyType_Spec operation_spec = {
	.name = "rlscope.operation",
	.basicsize = sizeof(struct operation),
	.flags = Py_TPFLAGS_DEFAULT,
	.slots = operation_slots,
};

/* The C API takes NUL-terminated text; interning first gives us that and the cut. */
static PyObject *set_with(void (*set)(const char *), PyObject *text)
{
	rlscope_name name = annotate_intern(text);

	if (!name)
		return NULL;
	set(rlscope_name_text(name));
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *set_phase(PyObject *module, PyObject *text)
{
	return set_with(rlscope_set_phase, text);
}

static PyObject *set_process_name(PyObject *module, PyObject *text)
{
	return set_with(rlscope_set_process_name, text);
}

static PyObject *get_phase(PyObject *module, PyObject *unused)
{
	const char *phase = rlscope_get_phase();

	return PyUnicode_DecodeUTF8(phase, strlen(phase), "replace");
}

static PyMethodDef module_methods[] = {
	{"set_phase", set_phase, METH_O,
	 "set_phase(name): the phase of the whole process from here on; \"\" for none."},
	{"get_phase", get_phase, METH_NOARGS, "get_phase(): the phase now, \"\" for none."},
	{"set_process_name", set_process_name, METH_O,
	 "set_process_name(name): what to call this process in reports."},
	{"_learn", METHOD(rls_follow_learn), METH_FASTCALL, NULL},
	{"_on_yield", METHOD(rls_follow_on_yield), METH_FASTCALL, NULL},
	{"_on_resume", METHOD(rls_follow_on_resume), METH_FASTCALL, NULL},
	{NULL, NULL, 0, NULL},
};

static int annotate_fill(PyObject *module)
{
	PyObject *type = PyType_FromSpec(&operation_spec);

	if (!type)
		return -1;
	if (PyModule_AddObject(module, "operation", type) < 0) {
		Py_DECREF(type);
		return -1;
	}
	return PyModule_AddStringConstant(module, "version", rlscope_annotate_version());
}

static PyModuleDef_Slot module_slots[] = {
	{Py_mod_exec, annotate_fill},
	{0, NULL},
};

static struct PyModuleDef module_definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "rlscope._annotate",
	.m_doc = "Annotations kept where rlscope-bpf reads them.",
	.m_methods = module_methods,
	.m_slots = module_slots,
};

PyMODINIT_FUNC PyInit__annotate(void);

PyMODINIT_FUNC PyInit__annotate(void)
{
	return PyModuleDef_Init(&module_definition);
}
