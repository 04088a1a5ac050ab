/* The functions behind a type's slots. Included once by the static and once by the heap
 * type's file, so that each has functions of its own. */
#ifndef TRUTH_SLOTS_H
#define TRUTH_SLOTS_H

#include "truth.h"

struct slots_object {
	PyObject_HEAD long value;
};

static int slot_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
	truth_enter();
	((struct slots_object *)self)->value = 5;
	return 0;
}

static PyObject *slot_repr(PyObject *self)
{
	truth_enter();
	return PyUnicode_FromString("<slots>");
}

static PyObject *slot_str(PyObject *self)
{
	truth_enter();
	return PyUnicode_FromString("slots");
}

static Py_hash_t slot_hash(PyObject *self)
{
	truth_enter();
	return 42;
}

static PyObject *slot_call(PyObject *self, PyObject *args, PyObject *kwargs)
{
	truth_enter();
	return PyLong_FromSsize_t(PyTuple_GET_SIZE(args) + 1);
}

static PyObject *slot_richcompare(PyObject *self, PyObject *other, int op)
{
	truth_enter();
	return PyBool_FromLong(op == Py_EQ || op == Py_LT);
}

static PyObject *slot_iter(PyObject *self)
{
	truth_enter();
	Py_INCREF(self);
	return self;
}

/* Counts value down to 0, then ends; a value below 0 never ends. */
static PyObject *slot_iternext(PyObject *self)
{
	struct slots_object *object = (struct slots_object *)self;

	truth_enter();
	if (object->value == 0)
		return NULL;
	if (object->value > 0)
		object->value--;
	Py_INCREF(Py_None);
	return Py_None;
}

static PyObject *slot_add(PyObject *left, PyObject *right)
{
	truth_enter();
	return PyLong_FromLong(77);
}

static int slot_bool(PyObject *self)
{
	truth_enter();
	return 1;
}

static Py_ssize_t slot_length(PyObject *self)
{
	truth_enter();
	return 9;
}

static int slot_contains(PyObject *self, PyObject *item)
{
	truth_enter();
	return item == Py_None;
}

static PyObject *slot_subscript(PyObject *self, PyObject *key)
{
	truth_enter();
	Py_INCREF(key);
	return key;
}

static int slot_ass_subscript(PyObject *self, PyObject *key, PyObject *value)
{
	truth_enter();
	return key && value != Py_Ellipsis ? 0 : -1;
}

static PyObject *get_value(PyObject *self, void *closure)
{
	truth_enter();
	return PyLong_FromLong(((struct slots_object *)self)->value);
}

static int set_value(PyObject *self, PyObject *value, void *closure)
{
	long number = value ? PyLong_AsLong(value) : 0;

	truth_enter();
	if (number == -1 && PyErr_Occurred())
		return -1;
	((struct slots_object *)self)->value = number;
	return 0;
}

static PyGetSetDef slots_getset[] = {
	{"value", get_value, set_value, NULL, NULL},
	{NULL, NULL, NULL, NULL, NULL},
};

static PyObject *type_noargs(PyObject *self, PyObject *unused)
{
	truth_enter();
	return PyLong_FromLong(3);
}

static PyObject *type_o(PyObject *self, PyObject *arg)
{
	truth_enter();
	return PyBool_FromLong(arg == self);
}

static PyObject *type_fastcall(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	truth_enter();
	return PyLong_FromSsize_t(count + 30);
}

static PyObject *type_class(PyObject *type, PyObject *unused)
{
	truth_enter();
	Py_INCREF(type);
	return type;
}

static PyObject *type_static(PyObject *null, PyObject *arg)
{
	truth_enter();
	return PyLong_FromLong(null == NULL);
}

#define SLOTS_METHODS                                                                              \
	{"noargs", type_noargs, METH_NOARGS, NULL}, {"o", type_o, METH_O, NULL},                   \
		{"fastcall", (PyCFunction)(void (*)(void))type_fastcall, METH_FASTCALL, NULL},     \
		{"klass", type_class, METH_NOARGS | METH_CLASS, NULL},                             \
	{                                                                                          \
		"static", type_static, METH_O | METH_STATIC, NULL                                  \
	}

#endif
