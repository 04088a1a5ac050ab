/* The parts of CPython's objects that discovery reads, as byte offsets.
 *
 * x86-64, builds with the GIL, CPython 3.8 to 3.14: these heads have not changed in that
 * time (Include/cpython/object.h, methodobject.h, descrobject.h, moduleobject.h; checked
 * against every interpreter of tests/discover/test_live.c). Free-threaded builds have a
 * longer object header and are not read.
 */
#ifndef RLS_CPYTHON_LAYOUT_H
#define RLS_CPYTHON_LAYOUT_H

enum {
	OBJECT_TYPE = 8, /* PyObject.ob_type */

	METHOD_NAME = 0, /* PyMethodDef */
	METHOD_FUNCTION = 8,
	METHOD_FLAGS = 16,
	METHOD_DOC = 24,
	METHOD_BYTES = 32,

	GETSET_NAME = 0, /* PyGetSetDef */
	GETSET_GET = 8,
	GETSET_SET = 16,
	GETSET_BYTES = 40,

	MODULE_DEF_NAME = 40, /* PyModuleDef */
	MODULE_DEF_METHODS = 64,
	MODULE_DEF_BYTES = 104,

	FUNCTION_METHOD = 16, /* PyCFunctionObject.m_ml */
	FUNCTION_VECTORCALL = 48, /* PyCFunctionObject.vectorcall */

	TYPE_NAME = 24, /* PyTypeObject */
	TYPE_BASIC_SIZE = 32,
	TYPE_ITEM_SIZE = 40,
	TYPE_DEALLOC = 48,
	TYPE_VECTORCALL_OFFSET = 56,
	TYPE_GETATTR = 64,
	TYPE_SETATTR = 72,
	TYPE_AS_ASYNC = 80,
	TYPE_REPR = 88,
	TYPE_AS_NUMBER = 96,
	TYPE_AS_SEQUENCE = 104,
	TYPE_AS_MAPPING = 112,
	TYPE_HASH = 120,
	TYPE_CALL = 128,
	TYPE_STR = 136,
	TYPE_GETATTRO = 144,
	TYPE_SETATTRO = 152,
	TYPE_AS_BUFFER = 160,
	TYPE_FLAGS = 168,
	TYPE_DOC = 176,
	TYPE_TRAVERSE = 184,
	TYPE_CLEAR = 192,
	TYPE_RICHCOMPARE = 200,
	TYPE_WEAKLIST_OFFSET = 208,
	TYPE_ITER = 216,
	TYPE_ITERNEXT = 224,
	TYPE_METHODS = 232,
	TYPE_MEMBERS = 240,
	TYPE_GETSET = 248,
	TYPE_BASE = 256,
	TYPE_DICT = 264,
	TYPE_DESCR_GET = 272,
	TYPE_DESCR_SET = 280,
	TYPE_DICT_OFFSET = 288,
	TYPE_INIT = 296,
	TYPE_ALLOC = 304,
	TYPE_NEW = 312,
	TYPE_FREE = 320,
	TYPE_IS_GC = 328,
	TYPE_BASES = 336,
	TYPE_MRO = 344,
	TYPE_CACHE = 352,
	TYPE_SUBCLASSES = 360,
	TYPE_WEAKLIST = 368,
	TYPE_DEL = 376,
	TYPE_FINALIZE = 392,
	TYPE_VECTORCALL = 400,
	TYPE_BYTES = 408,
	HEAP_TYPE_BYTES = 856, /* with the protocol tables that follow in a heap type */
};

#define TYPE_FLAG_HEAP (1UL << 9)
#define TYPE_FLAG_VECTORCALL (1UL << 11)
#define TYPE_FLAG_READY (1UL << 12)
#define TYPE_FLAG_READYING (1UL << 13)

/* ml_flags: how the function is called, and how it is bound */
#define METHOD_VARARGS 0x1
#define METHOD_KEYWORDS 0x2
#define METHOD_NOARGS 0x4
#define METHOD_O 0x8
#define METHOD_CLASS 0x10
#define METHOD_STATIC 0x20
#define METHOD_COEXIST 0x40
#define METHOD_FASTCALL 0x80
#define METHOD_DEFINING_CLASS 0x200

#endif
