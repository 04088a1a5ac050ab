/* The same slots on a heap type, whose type object and tables CPython allocates: nothing
 * of a PyTypeObject is in the file. METH_METHOD exists for heap types only. */
#include "slots.h"

#if PY_VERSION_HEX >= 0x03090000
static PyObject *type_method(PyObject *self, PyTypeObject *definer, PyObject *const *args,
			     Py_ssize_t count, PyObject *names)
{
	truth_enter();
	return PyLong_FromSsize_t(count + (definer != NULL));
}
#endif

static PyMethodDef heap_methods[] = {
	SLOTS_METHODS,
#if PY_VERSION_HEX >= 0x03090000
	{"method", (PyCFunction)(void (*)(void))type_method,
	 METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
#endif
	{NULL, NULL, 0, NULL},
};

static PyType_Slot heap_slots[] = {
	{Py_tp_init, slot_init},
	{Py_tp_repr, slot_repr},
	{Py_tp_str, slot_str},
	{Py_tp_hash, slot_hash},
	{Py_tp_call, slot_call},
	{Py_tp_richcompare, slot_richcompare},
	{Py_tp_iter, slot_iter},
	{Py_tp_iternext, slot_iternext},
	{Py_nb_add, slot_add},
	{Py_nb_bool, slot_bool},
	{Py_sq_length, slot_length},
	{Py_sq_contains, slot_contains},
	{Py_mp_subscript, slot_subscript},
	{Py_mp_ass_subscript, slot_ass_subscript},
	{Py_tp_getset, slots_getset},
	{Py_tp_methods, heap_methods},
	{0, NULL},
};

static PyType_Spec heap_spec = {
	.name = "truthsim.Heap",
	.basicsize = sizeof(struct slots_object),
	.flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
	.slots = heap_slots,
};

int truth_heap_types_add(PyObject *module)
{
#if PY_VERSION_HEX >= 0x03090000
	PyObject *type = PyType_FromModuleAndSpec(module, &heap_spec, NULL);
#else
	PyObject *type = PyType_FromSpec(&heap_spec);
#endif

	if (!type)
		return -1;
	return PyModule_AddObject(module, "Heap", type);
}
