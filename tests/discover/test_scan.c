/* The scanner and the harvest on memory made by hand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/discover/roles/function_set.h"
#include "userspace/discover/scan.h"
#include "userspace/python/cpython_layout.h"
#include "userspace/python/interpreter.h"

/* A library at 0x10000: data in its first half, code in its second; and a heap. */
#define LIBRARY 0x10000UL
#define CODE 0x18000UL
#define LIBRARY_END 0x20000UL
#define HEAP 0x40000UL
#define HEAP_BYTES 0x4000UL

static const struct rls_scan_target target = {
	.begin = LIBRARY, .end = LIBRARY_END, .code_begin = CODE, .code_end = LIBRARY_END};

static struct rls_mapping entries[] = {
	{.start = LIBRARY, .end = CODE, .readable = true, .writable = true, .path = "/lib.so"},
	{.start = CODE,
	 .end = LIBRARY_END,
	 .readable = true,
	 .executable = true,
	 .path = "/lib.so"},
	{.start = HEAP, .end = HEAP + HEAP_BYTES, .readable = true, .writable = true, .path = ""},
};
static const struct rls_mappings mappings = {.entries = entries, .count = 3};

static uint8_t heap[HEAP_BYTES];

static void put(uint64_t address, uint64_t word)
{
	memcpy(heap + (address - HEAP), &word, sizeof(word));
}

static void put_method(uint64_t at, uint64_t name, uint64_t function, uint32_t flags, uint64_t doc)
{
	put(at + METHOD_NAME, name);
	put(at + METHOD_FUNCTION, function);
	put(at + METHOD_FLAGS, flags);
	put(at + METHOD_DOC, doc);
}

static struct rls_scan scan_heap(void)
{
	struct rls_scan scan;

	rls_scan_init(&scan, &target, 1);
	scan.mappings = &mappings;
	scan.objects = true;
	rls_scan_block(&scan, HEAP, heap, sizeof(heap));
	assert_int_equal(rls_scan_finish(&scan), 0);
	return scan;
}

static int clear_heap(void **state)
{
	memset(heap, 0, sizeof(heap));
	return 0;
}

static void finds_a_method(void **state)
{
	struct rls_scan scan;

	put_method(HEAP + 64, LIBRARY + 8, CODE + 16, METHOD_VARARGS | METHOD_KEYWORDS, 0);
	scan = scan_heap();
	assert_int_equal(scan.methods.count, 1);
	assert_int_equal(scan.methods.items[0].address, HEAP + 64);
	assert_int_equal(scan.methods.items[0].function, CODE + 16);
	assert_int_equal(scan.methods.items[0].name, LIBRARY + 8);
	rls_scan_release(&scan);
}

static size_t methods_found(void)
{
	struct rls_scan scan = scan_heap();
	size_t count = scan.methods.count;

	rls_scan_release(&scan);
	return count;
}

static void what_only_resembles_a_method_is_none(void **state)
{
	put_method(HEAP + 64, LIBRARY + 8, CODE + 16, 0, 0);
	assert_int_equal(methods_found(), 0);
	put_method(HEAP + 64, LIBRARY + 8, CODE + 16, METHOD_KEYWORDS, 0);
	assert_int_equal(methods_found(), 0);
	put_method(HEAP + 64, LIBRARY + 8, CODE + 16, METHOD_NOARGS, 0x99999999);
	assert_int_equal(methods_found(), 0);
	put_method(HEAP + 64, 0x99999999, CODE + 16, METHOD_NOARGS, 0);
	assert_int_equal(methods_found(), 0);
	/* A name that is code; a function that is data. */
	put_method(HEAP + 64, CODE + 8, CODE + 16, METHOD_NOARGS, 0);
	assert_int_equal(methods_found(), 0);
	put_method(HEAP + 64, LIBRARY + 8, LIBRARY + 16, METHOD_NOARGS, 0);
	assert_int_equal(methods_found(), 0);
	put_method(HEAP + 64, LIBRARY + 8, CODE + 16, METHOD_NOARGS, 0);
	assert_int_equal(methods_found(), 1);
}

/* At the edges there is less than a whole record on either side. */
static void records_cut_by_the_block_are_not_read(void **state)
{
	put(HEAP, CODE + 16);
	put(HEAP + 8, METHOD_NOARGS);
	put(HEAP + HEAP_BYTES - 16, LIBRARY + 8);
	put(HEAP + HEAP_BYTES - 8, CODE + 16);
	assert_int_equal(methods_found(), 0);
}

static void method_flags_are_those_cpython_accepts(void **state)
{
	static const uint32_t valid[] = {0x1, 0x3, 0x4, 0x8, 0x80, 0x82, 0x282, 0x11, 0x28, 0x44};
	static const uint32_t invalid[] = {0x0,  0x2,  0x5,   0xc,   0x10,
					   0x31, 0x81, 0x200, 0x202, 0x1000};

	for (size_t i = 0; i < sizeof(valid) / sizeof(*valid); i++)
		assert_true(rls_scan_method_flags_valid(valid[i]));
	for (size_t i = 0; i < sizeof(invalid) / sizeof(*invalid); i++)
		assert_false(rls_scan_method_flags_valid(invalid[i]));
}

static void put_ready_type(uint64_t at)
{
	put(at + OBJECT_TYPE, HEAP + 8);
	put(at + TYPE_NAME, LIBRARY + 8);
	put(at + TYPE_BASIC_SIZE, 64);
	put(at + TYPE_DEALLOC, CODE + 32);
	put(at + TYPE_GETATTRO, CODE + 48);
	put(at + TYPE_FREE, CODE + 64);
	put(at + TYPE_BASES, HEAP + 16);
	put(at + TYPE_MRO, HEAP + 16);
	put(at + TYPE_FLAGS, TYPE_FLAG_READY | 0x400);
}

static size_t types_found(bool *related)
{
	struct rls_scan scan = scan_heap();
	size_t count = scan.types.count;

	if (count)
		*related = scan.types.items[0].related;
	rls_scan_release(&scan);
	return count;
}

static void finds_a_readied_type(void **state)
{
	bool related = false;

	put_ready_type(HEAP + 0x200);
	assert_int_equal(types_found(&related), 1);
	assert_true(related);
	put(HEAP + 0x200 + TYPE_MRO, 0);
	assert_int_equal(types_found(&related), 0);
	put(HEAP + 0x200 + TYPE_MRO, HEAP + 16);
	put(HEAP + 0x200 + TYPE_CALL, HEAP + 16); /* a slot that is no code */
	assert_int_equal(types_found(&related), 0);
	put(HEAP + 0x200 + TYPE_CALL, 0);
	put(HEAP + 0x200 + TYPE_BASIC_SIZE, 8); /* less than an object's head */
	assert_int_equal(types_found(&related), 0);
}

static void a_type_cut_by_the_block_is_not_read(void **state)
{
	bool related;

	put_ready_type(HEAP + 0x200);
	memmove(heap, heap + 0x208, 0x400); /* its first word is outside */
	assert_int_equal(types_found(&related), 0);
}

static void one_function_in_many_objects_is_noted_a_few_times(void **state)
{
	struct rls_scan scan;

	for (uint64_t at = 0x400; at < HEAP_BYTES; at += 16)
		put(HEAP + at, CODE + 16 + (at & 0x10));
	scan = scan_heap();
	assert_in_range(scan.callables.count, 1, 32);
	assert_int_equal(scan.callables.items[0].function, CODE + 16);
	rls_scan_release(&scan);
}

/* Any memory at all: nothing but bounds and sanitizers to fail on. */
static void survives_random_memory(void **state)
{
	srandom(7);
	for (int round = 0; round < 200; round++) {
		struct rls_scan scan;

		for (uint64_t at = 0; at < HEAP_BYTES; at += 8) {
			uint64_t word = random() % 0x3000;

			if (random() % 4)
				word = LIBRARY + random() % 0x10000;
			put(HEAP + at, word);
		}
		scan = scan_heap();
		rls_scan_release(&scan);
		rls_scan_init(&scan, &target, 1);
		scan.objects = true;
		rls_scan_block(&scan, HEAP + random() % 16, heap, random() % HEAP_BYTES);
		assert_int_equal(rls_scan_finish(&scan), 0);
		rls_scan_release(&scan);
	}
}

/* --- merging ------------------------------------------------------------------------------ */

static void add(struct rls_function_set *set, uint64_t vaddr, const char *name,
		enum rls_name_rank rank, unsigned int sources)
{
	assert_int_equal(rls_function_set_add(set,
					      &(struct rls_find){
						      .vaddr = vaddr,
						      .name = (char *)name,
						      .rank = rank,
						      .sources = sources,
						      .kind = rank == RLS_NAME_SYMBOL
								      ? RLS_BOUNDARY_EXPORTED
								      : RLS_BOUNDARY_PYTHON_CALLS,
					      }),
			 0);
}

static void free_functions(struct rls_boundary_function *functions, size_t count)
{
	for (size_t i = 0; i < count; i++)
		free(functions[i].name);
	free(functions);
}

static void one_address_is_one_function(void **state)
{
	struct rls_function_set set = {0};
	struct rls_boundary_function *functions;
	size_t count;

	add(&set, 0x200, "b", RLS_NAME_METHOD, RLS_SOURCE_METHOD_LIVE);
	add(&set, 0x100, "exported", RLS_NAME_SYMBOL, RLS_SOURCE_SYMBOL);
	add(&set, 0x100, "add", RLS_NAME_METHOD, RLS_SOURCE_METHOD_FILE);
	add(&set, 0x100, "m.T.add", RLS_NAME_QUALIFIED, RLS_SOURCE_METHOD_LIVE);
	add(&set, 0x200, "b", RLS_NAME_METHOD, RLS_SOURCE_METHOD_FILE);
	assert_int_equal(rls_function_set_finish(&set, &functions, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(functions[0].vaddr, 0x100);
	assert_string_equal(functions[0].name, "m.T.add");
	assert_int_equal(functions[0].sources,
			 RLS_SOURCE_SYMBOL | RLS_SOURCE_METHOD_FILE | RLS_SOURCE_METHOD_LIVE);
	assert_int_equal(functions[0].kind, RLS_BOUNDARY_PYTHON_CALLS);
	assert_string_equal(functions[1].name, "b");
	free_functions(functions, count);
}

static void a_dispatcher_is_named_after_one_and_counts_the_rest(void **state)
{
	struct rls_function_set set = {0};
	struct rls_boundary_function *functions;
	size_t count;

	add(&set, 0x100, "step", RLS_NAME_METHOD, RLS_SOURCE_METHOD_LIVE);
	add(&set, 0x100, "forward", RLS_NAME_METHOD, RLS_SOURCE_METHOD_LIVE);
	add(&set, 0x100, "reset", RLS_NAME_METHOD, RLS_SOURCE_METHOD_LIVE);
	add(&set, 0x100, "step", RLS_NAME_METHOD, RLS_SOURCE_METHOD_LIVE);
	assert_int_equal(rls_function_set_finish(&set, &functions, &count), 0);
	assert_int_equal(count, 1);
	assert_string_equal(functions[0].name, "step and 2 more");
	free_functions(functions, count);
}

static void nothing_found_is_an_empty_list(void **state)
{
	struct rls_function_set set = {0};
	struct rls_boundary_function *functions;
	size_t count;

	assert_int_equal(rls_function_set_finish(&set, &functions, &count), 0);
	assert_int_equal(count, 0);
	free(functions);
}

/* --- versions ----------------------------------------------------------------------------- */

static bool version_in(const char *text, size_t length, char *version)
{
	return rls_python_version_in((const uint8_t *)text, length, version, 32);
}

#define version_in_literal(text, version) version_in(text, sizeof(text), version)

static void reads_versions_out_of_memory(void **state)
{
	char version[32];

	assert_true(version_in_literal("\0\0x (y)\0003.9.18 (main, Jan  1 2024) [GCC]", version));
	assert_string_equal(version, "3.9.18");
	assert_true(version_in_literal("3.13.0rc2+ (heads/main", version));
	assert_string_equal(version, "3.13.0rc2+");
	assert_true(version_in_literal("2.7.18 (default, ", version));
	assert_string_equal(version, "2.7.18");
	assert_false(version_in_literal("3.9 (main, ", version));
	assert_false(version_in_literal("v3.9.18 (main, ", version));
	assert_false(version_in_literal("13.9.18 (main, ", version));
	assert_false(version_in_literal(" (", version));
	assert_false(version_in_literal("3.9.18", version));
	assert_false(version_in("", 0, version));
}

#define on_clear_heap(test) cmocka_unit_test_setup(test, clear_heap)

int main(void)
{
	const struct CMUnitTest tests[] = {
		on_clear_heap(finds_a_method),
		on_clear_heap(what_only_resembles_a_method_is_none),
		on_clear_heap(records_cut_by_the_block_are_not_read),
		cmocka_unit_test(method_flags_are_those_cpython_accepts),
		on_clear_heap(finds_a_readied_type),
		on_clear_heap(a_type_cut_by_the_block_is_not_read),
		on_clear_heap(one_function_in_many_objects_is_noted_a_few_times),
		on_clear_heap(survives_random_memory),
		cmocka_unit_test(one_address_is_one_function),
		cmocka_unit_test(a_dispatcher_is_named_after_one_and_counts_the_rest),
		cmocka_unit_test(nothing_found_is_an_empty_list),
		cmocka_unit_test(reads_versions_out_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
