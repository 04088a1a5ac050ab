/* Calls of libpython found in a library whose calls are known by labels, linked with each
 * kind of PLT. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/discover/callbacks/callbacks.h"

static const char *const libraries[] = {SAMPLES_LIBRARIES};
static struct rls_elf *samples;

struct expected {
	const char *label, *function;
	enum rls_boundary_kind kind;
	uint64_t size_bytes;
};

static const struct rls_boundary_function *found_at(const struct rls_boundary_function *functions,
						    size_t count, const char *label)
{
	struct rls_elf_symbol symbol;

	print_message("%s\n", label);
	assert_int_equal(rls_elf_find_symbol(samples, label, &symbol), 0);
	for (size_t i = 0; i < count; i++)
		if (functions[i].vaddr == symbol.vaddr)
			return &functions[i];
	fail_msg("not found");
	return NULL;
}

static void finds_every_call_and_no_other(void **state)
{
	static const struct expected expected[] = {
		{"calls_back_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"twice_first", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"twice_second", "PyObject_CallNoArgs", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"twice_third", "PyObject_CallNoArgs", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"word_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 6},
		{"plt_got_call", "PyEval_EvalCode", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"jumps_back_jump", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_JUMP, 5},
		{"word_jump", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_JUMP, 6},
		{"is_a_jump_back", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_JUMP, 5},
		{"brief_back_call", "PyObject_CallNoArgs", RLS_BOUNDARY_CALLBACK_CALL, 5},
		{"register_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 3},
		{"branch_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"mixed_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"deeper_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"leaving_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"again_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"cmov_jump", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_JUMP, 2},
		{"cmov_word_call", "PyObject_Vectorcall", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"frame_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 4},
		{"rbp_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"pushed_jump", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_JUMP, 3},
		{"loop_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"or_null_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"switch_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 2},
		{"filled_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 6},
		{"structure_call", "PyObject_CallNoArgs", RLS_BOUNDARY_CALLBACK_CALL, 3},
		{"table_call", "PyObject_CallObject", RLS_BOUNDARY_CALLBACK_CALL, 3},
		{"kept_call", "PyObject_CallNoArgs", RLS_BOUNDARY_CALLBACK_CALL, 2},
	};
	const size_t wanted = sizeof(expected) / sizeof(expected[0]);
	struct rls_boundary_function *functions;
	size_t count;

	assert_int_equal(rls_find_callbacks(samples, &functions, &count), 0);
	for (size_t i = 0; i < wanted; i++) {
		const struct rls_boundary_function *function =
			found_at(functions, count, expected[i].label);

		assert_string_equal(function->name, expected[i].function);
		assert_int_equal(function->kind, expected[i].kind);
		assert_int_equal(function->size_bytes, expected[i].size_bytes);
		assert_int_equal(function->sources, RLS_SOURCE_CALLBACK);
	}
	assert_int_equal(count, wanted);
	for (size_t i = 1; i < count; i++)
		assert_true(functions[i - 1].vaddr < functions[i].vaddr);
	rls_callbacks_free(functions, count);
}

static void keeps_the_protocol_apart(void **state)
{
	struct rls_boundary_function *functions;
	size_t count;

	assert_int_equal(rls_find_callbacks_of(samples, RLS_CALLBACKS_PROTOCOL, &functions, &count),
			 0);
	assert_int_equal(count, 1);
	assert_string_equal(found_at(functions, count, "attribute_call")->name, "PyObject_GetAttr");
	rls_callbacks_free(functions, count);
	assert_int_equal(rls_find_callbacks_of(samples, 0, &functions, &count), 0);
	assert_int_equal(count, 0);
	rls_callbacks_free(functions, count);
}

static void sorts_libpython_into_families(void **state)
{
	static const char *const calling[] = {
		"PyObject_Call",
		"PyObject_CallMethodObjArgs",
		"_PyObject_CallFunction_SizeT",
		"PyObject_VectorcallMethod",
		"PyEval_EvalCodeEx",
		"_PyEval_EvalFrameDefault",
		"PyRun_StringFlags",
		"PyImport_ImportModule",
		"PyIter_Next",
		"PyIter_Send",
		"PyEval_CallObjectWithKeywords",
	};
	static const char *const protocol[] = {
		"PyObject_GetAttrString",   "PyObject_GetItem",
		"PyObject_RichCompareBool", "PyNumber_Add",
		"PySequence_Tuple",         "PyMapping_Keys",
		"PyObject_IsTrue",          "PyObject_CallFinalizerFromDealloc",
		"_PyObject_MakeTpCall",
	};
	static const char *const neither[] = {
		"PyIter_Check",
		"PyNumber_Check",
		"PySequence_Check",
		"_Py_Dealloc",
		"PyTuple_New",
		"PyEval_SaveThread",
		"PyEval_RestoreThread",
		"PyEval_GetBuiltins",
		"PyErr_Occurred",
		"PyImport_AddModule",
		"PyObject_Malloc",
		"PyObject_GetBuffer",
		"PyGILState_Ensure",
		"_Py_CheckFunctionResult",
		"PyObject_Calloc",
		"xPyObject_Call",
		"",
		"Py",
		"malloc",
	};

	for (size_t i = 0; i < sizeof(calling) / sizeof(calling[0]); i++)
		assert_int_equal(rls_callback_families(calling[i]), RLS_CALLBACKS_CALLING);
	for (size_t i = 0; i < sizeof(protocol) / sizeof(protocol[0]); i++)
		assert_int_equal(rls_callback_families(protocol[i]), RLS_CALLBACKS_PROTOCOL);
	for (size_t i = 0; i < sizeof(neither) / sizeof(neither[0]); i++) {
		print_message("%s\n", neither[i]);
		assert_int_equal(rls_callback_families(neither[i]), 0);
	}
}

static void knows_no_overlong_names(void **state)
{
	char name[129] = "PyObject_Call";

	memset(name + strlen(name), 'a', 127 - strlen(name));
	assert_int_equal(rls_callback_families(name), RLS_CALLBACKS_CALLING);
	name[127] = 'a';
	assert_int_equal(rls_callback_families(name), 0);
}

static void knows_that_plain_calls_are_not_inline(void **state)
{
	struct rls_boundary_function entry;

	assert_false(rls_calls_python_inline(samples));
	assert_int_equal(rls_find_eval_entry(samples, &entry), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_every_call_and_no_other),
		cmocka_unit_test(keeps_the_protocol_apart),
		cmocka_unit_test(sorts_libpython_into_families),
		cmocka_unit_test(knows_no_overlong_names),
		cmocka_unit_test(knows_that_plain_calls_are_not_inline),
	};
	int failed = 0;

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		print_message("%s\n", libraries[i]);
		if (rls_elf_open(libraries[i], &samples) < 0)
			return 1;
		failed += cmocka_run_group_tests(tests, NULL, NULL);
		rls_elf_close(samples);
	}
	return failed;
}
