/* Module functions: every METH_ calling convention, once from a static table and once
 * from a table that is built on the heap at import (as torch builds its own). */
#include "spin.h"
#include "truth.h"

#include <stdlib.h>
#include <string.h>

/* Each body differs, or the compiler folds them into one function. */
static PyObject *meth_noargs(PyObject *self, PyObject *unused)
{
	truth_enter();
	return PyLong_FromLong(1);
}

static PyObject *meth_o(PyObject *self, PyObject *arg)
{
	truth_enter();
	Py_INCREF(arg);
	return arg;
}

static PyObject *meth_varargs(PyObject *self, PyObject *args)
{
	long a, b;

	truth_enter();
	if (!PyArg_ParseTuple(args, "ll", &a, &b))
		return NULL;
	return PyLong_FromLong(a + b);
}

static PyObject *meth_keywords(PyObject *self, PyObject *args, PyObject *kwargs)
{
	static char *names[] = {"a", "b", NULL};
	long a, b = 2;

	truth_enter();
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "l|l", names, &a, &b))
		return NULL;
	return PyLong_FromLong(a * b);
}

static PyObject *meth_fastcall(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	truth_enter();
	return PyLong_FromSsize_t(count);
}

static PyObject *meth_fastcall_keywords(PyObject *self, PyObject *const *args, Py_ssize_t count,
					PyObject *names)
{
	truth_enter();
	return PyLong_FromSsize_t(count + (names ? PyTuple_GET_SIZE(names) : 0) + 100);
}

static PyObject *meth_raises(PyObject *self, PyObject *unused)
{
	truth_enter();
	PyErr_SetString(PyExc_ValueError, "asked for");
	return NULL;
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

static PyObject *meth_spin_nogil(PyObject *self, PyObject *arg)
{
	unsigned long long wanted_ns, spun_ns;

	truth_enter();
	wanted_ns = PyLong_AsUnsignedLongLong(arg);
	if (PyErr_Occurred())
		return NULL;
	Py_BEGIN_ALLOW_THREADS spun_ns = truth_spin(wanted_ns);
	Py_END_ALLOW_THREADS return PyLong_FromUnsignedLongLong(spun_ns);
}

/* Whether it is true, or, of what can be called, what it returns is; with a reference to what meth_brief will
 * return. */
__attribute__((visibility("hidden"), used)) int brief_check(PyObject *arg)
{
	PyObject *called = NULL;
	int truth = arg == Py_True;

	truth_enter();
	if (PyCallable_Check(arg)) {
		truth_leave();
		called = PyObject_CallObject(arg, NULL);
		truth = called == Py_True;
		Py_XDECREF(called);
	}
	if (truth)
		Py_INCREF(Py_True);
	else
		Py_INCREF(Py_False);
	return truth;
}

/* As gcc makes torch._C._has_torch_function_unary: seen from within (plan/brief.h). */
PyObject *meth_brief(PyObject *self, PyObject *arg);
__asm__(".pushsection .text\n.p2align 4\n.hidden meth_brief\n.globl meth_brief\n"
	".type meth_brief, @function\nmeth_brief:\n.cfi_startproc\n"
	"sub $8,%rsp\n.cfi_adjust_cfa_offset 8\nmov %rsi,%rdi\nxor %esi,%esi\ncall brief_check\n"
	"test %al,%al\nje 1f\nmov _Py_TrueStruct@GOTPCREL(%rip),%rax\nadd $8,%rsp\nret\n"
	"1:\nmov _Py_FalseStruct@GOTPCREL(%rip),%rax\nadd $8,%rsp\nret\n"
	".cfi_endproc\n.size meth_brief, . - meth_brief\n.popsection");

/* (entries, callouts, crossings) of the calling thread, this call included. */
static PyObject *meth_counts(PyObject *self, PyObject *unused)
{
	truth_enter();
	return Py_BuildValue("KKK", (unsigned long long)truth_counts.entries,
			     (unsigned long long)truth_counts.callouts,
			     (unsigned long long)truth_counts.crossings);
}

static PyMethodDef static_table[] = {
	{"noargs", meth_noargs, METH_NOARGS, "one call in"},
	{"o", meth_o, METH_O, NULL},
	{"varargs", meth_varargs, METH_VARARGS, NULL},
	{"keywords", (PyCFunction)(void (*)(void))meth_keywords, METH_VARARGS | METH_KEYWORDS,
	 NULL},
	{"fastcall", (PyCFunction)(void (*)(void))meth_fastcall, METH_FASTCALL, NULL},
	{"fastcall_keywords", (PyCFunction)(void (*)(void))meth_fastcall_keywords,
	 METH_FASTCALL | METH_KEYWORDS, NULL},
	{"raises", meth_raises, METH_NOARGS, NULL},
	{"brief", meth_brief, METH_O, NULL},
	{"spin", meth_spin, METH_O, "busy-wait so many ns; returns the ns it took"},
	{"spin_nogil", meth_spin_nogil, METH_O, "the same with the GIL released"},
	{"counts", meth_counts, METH_NOARGS, "this thread's own counters"},
	{NULL, NULL, 0, NULL},
};

static PyObject *heap_noargs(PyObject *self, PyObject *unused)
{
	truth_enter();
	return PyLong_FromLong(11);
}

static PyObject *heap_o(PyObject *self, PyObject *arg)
{
	truth_enter();
	return PyBool_FromLong(arg == Py_None);
}

static PyObject *heap_varargs(PyObject *self, PyObject *args)
{
	truth_enter();
	return PyLong_FromSsize_t(PyTuple_GET_SIZE(args));
}

static PyObject *heap_fastcall(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
	truth_enter();
	return PyLong_FromSsize_t(count + 7);
}

/* The file holds no record of these four: only the live process does. */
static PyMethodDef *heap_table_new(void)
{
	const PyMethodDef entries[] = {
		{"heap_noargs", heap_noargs, METH_NOARGS, NULL},
		{"heap_o", heap_o, METH_O, NULL},
		{"heap_varargs", heap_varargs, METH_VARARGS, NULL},
		{"heap_fastcall", (PyCFunction)(void (*)(void))heap_fastcall, METH_FASTCALL, NULL},
		{NULL, NULL, 0, NULL},
	};
	PyMethodDef *table = malloc(sizeof(entries));

	if (table)
		memcpy(table, entries, sizeof(entries));
	return table;
}

int truth_methods_add(PyObject *module)
{
	PyMethodDef *heap_table = heap_table_new(); /* lives as long as the process */

	if (!heap_table) {
		PyErr_NoMemory();
		return -1;
	}
	if (PyModule_AddFunctions(module, static_table))
		return -1;
	return PyModule_AddFunctions(module, heap_table);
}
