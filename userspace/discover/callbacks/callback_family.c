/* Which functions of libpython run Python code: see callbacks.h. */
#include "userspace/discover/callbacks/callbacks.h"

#include <string.h>

#define NAME_BYTES_MAX 127 /* libpython has none that is half as long */

struct pattern {
	const char *text; /* a trailing * matches any rest */
	unsigned int family; /* 0: in none, against a wider pattern below */
};

/* The first match decides. */
static const struct pattern patterns[] = {
	{"PyObject_Calloc", 0},
	{"PyObject_CallFinalizer*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Call*", RLS_CALLBACKS_CALLING},
	{"_PyObject_Call*", RLS_CALLBACKS_CALLING},
	{"PyObject_Vectorcall*", RLS_CALLBACKS_CALLING},
	{"_PyObject_Vectorcall*", RLS_CALLBACKS_CALLING},
	{"_PyObject_FastCall*", RLS_CALLBACKS_CALLING},
	{"_PyObject_MakeTpCall", RLS_CALLBACKS_PROTOCOL},
	{"PyVectorcall_Call", RLS_CALLBACKS_CALLING},
	{"_PyFunction_Vectorcall", RLS_CALLBACKS_CALLING},
	{"PyMethod_Vectorcall", RLS_CALLBACKS_CALLING},
	{"PyEval_Call*", RLS_CALLBACKS_CALLING},
	{"PyEval_EvalCode*", RLS_CALLBACKS_CALLING},
	{"PyEval_EvalFrame*", RLS_CALLBACKS_CALLING},
	{"_PyEval_EvalCode*", RLS_CALLBACKS_CALLING},
	{"_PyEval_EvalFrame*", RLS_CALLBACKS_CALLING},
	{"PyRun_*", RLS_CALLBACKS_CALLING},
	{"PyImport_Import*", RLS_CALLBACKS_CALLING},
	{"PyImport_ExecCode*", RLS_CALLBACKS_CALLING},
	{"PyImport_ReloadModule", RLS_CALLBACKS_CALLING},
	{"PyIter_Check", 0},
	{"PyIter_Next*", RLS_CALLBACKS_CALLING},
	{"PyIter_Send", RLS_CALLBACKS_CALLING},

	{"PyObject_GetAttr*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_GetOptionalAttr*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_HasAttr*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_SetAttr*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_DelAttr*", RLS_CALLBACKS_PROTOCOL},
	{"_PyObject_GetAttr*", RLS_CALLBACKS_PROTOCOL},
	{"_PyObject_LookupAttr*", RLS_CALLBACKS_PROTOCOL},
	{"_PyObject_SetAttr*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_GetItem", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_SetItem", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_DelItem*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_GetIter", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_SelfIter", 0},
	{"PyObject_RichCompare*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Str", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Repr", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_ASCII", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Bytes", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Format", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Hash", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_IsTrue", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Not", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_IsInstance", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_IsSubclass", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Size", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Length*", RLS_CALLBACKS_PROTOCOL},
	{"PyObject_Dir", RLS_CALLBACKS_PROTOCOL},
	{"PyNumber_Check", 0},
	{"PyNumber_*", RLS_CALLBACKS_PROTOCOL},
	{"PySequence_Check", 0},
	{"PySequence_*", RLS_CALLBACKS_PROTOCOL},
	{"PyMapping_Check", 0},
	{"PyMapping_*", RLS_CALLBACKS_PROTOCOL},
};

static bool matches(const char *symbol, const char *pattern)
{
	size_t length = strlen(pattern);

	if (pattern[length - 1] == '*')
		return strncmp(symbol, pattern, length - 1) == 0;
	return strcmp(symbol, pattern) == 0;
}

unsigned int rls_callback_families(const char *symbol)
{
	/* A file may say anything, and the name is kept for each call there is. */
	if (strnlen(symbol, NAME_BYTES_MAX + 1) > NAME_BYTES_MAX)
		return 0;
	if (strncmp(symbol, "Py", 2) != 0 && strncmp(symbol, "_Py", 3) != 0)
		return 0;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		if (matches(symbol, patterns[i].text))
			return patterns[i].family;
	return 0;
}
