/* Static types: Static with most slots, Seq with the sequence ones, Attr with attribute
 * access of its own, Lifetime with tp_new and tp_dealloc. */
#include "slots.h"

static PyNumberMethods static_number = {.nb_add = slot_add, .nb_bool = slot_bool};
static PySequenceMethods static_sequence = {.sq_length = slot_length, .sq_contains = slot_contains};
static PyMappingMethods static_mapping = {.mp_subscript = slot_subscript,
					  .mp_ass_subscript = slot_ass_subscript};
static PyMethodDef static_methods[] = {SLOTS_METHODS, {NULL, NULL, 0, NULL}};

static PyTypeObject static_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "truthsim.Static",
	.tp_basicsize = sizeof(struct slots_object),
	.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.tp_new = PyType_GenericNew,
	.tp_init = slot_init,
	.tp_repr = slot_repr,
	.tp_str = slot_str,
	.tp_hash = slot_hash,
	.tp_call = slot_call,
	.tp_richcompare = slot_richcompare,
	.tp_iter = slot_iter,
	.tp_iternext = slot_iternext,
	.tp_as_number = &static_number,
	.tp_as_sequence = &static_sequence,
	.tp_as_mapping = &static_mapping,
	.tp_methods = static_methods,
	.tp_getset = slots_getset,
};

static PyObject *seq_item(PyObject *self, Py_ssize_t index)
{
	truth_enter();
	return PyLong_FromSsize_t(index);
}

static int seq_ass_item(PyObject *self, Py_ssize_t index, PyObject *value)
{
	truth_enter();
	return index >= 0 ? 0 : -1;
}

static PySequenceMethods seq_sequence = {.sq_item = seq_item, .sq_ass_item = seq_ass_item};

static PyTypeObject seq_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "truthsim.Seq",
	.tp_basicsize = sizeof(struct slots_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = PyType_GenericNew,
	.tp_as_sequence = &seq_sequence,
};

/* Answers every name, so nothing is looked up in Python behind it. */
static PyObject *attr_getattro(PyObject *self, PyObject *name)
{
	truth_enter();
	Py_INCREF(name);
	return name;
}

static int attr_setattro(PyObject *self, PyObject *name, PyObject *value)
{
	truth_enter();
	return name ? 0 : -1;
}

static PyTypeObject attr_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "truthsim.Attr",
	.tp_basicsize = sizeof(struct slots_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = PyType_GenericNew,
	.tp_getattro = attr_getattro,
	.tp_setattro = attr_setattro,
};

static PyObject *lifetime_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
	truth_enter();
	return type->tp_alloc(type, 0);
}

static void lifetime_dealloc(PyObject *self)
{
	truth_enter();
	Py_TYPE(self)->tp_free(self);
}

static PyTypeObject lifetime_type = {
	PyVarObject_HEAD_INIT(NULL, 0).tp_name = "truthsim.Lifetime",
	.tp_basicsize = sizeof(struct slots_object),
	.tp_flags = Py_TPFLAGS_DEFAULT,
	.tp_new = lifetime_new,
	.tp_dealloc = lifetime_dealloc,
};

static int type_add(PyObject *module, const char *name, PyTypeObject *type)
{
	if (PyType_Ready(type))
		return -1;
	Py_INCREF(type);
	return PyModule_AddObject(module, name, (PyObject *)type);
}

int truth_static_types_add(PyObject *module)
{
	if (type_add(module, "Static", &static_type) || type_add(module, "Seq", &seq_type) ||
	    type_add(module, "Attr", &attr_type))
		return -1;
	return type_add(module, "Lifetime", &lifetime_type);
}
