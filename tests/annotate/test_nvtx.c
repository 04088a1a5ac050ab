/* NVTX injection, from the side of the application's copy of NVTX. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "rlscope_annotate.h"
#include "userspace/annotate/annotate_wire.h"
#include "userspace/annotate/nvtx_wire.h"

int InitializeInjectionNvtx2(nvtx_get_export_table get_table);

/* The application's slots: what its NVTX calls go through. */
static int (*push_ex)(const struct nvtx_attributes *);
static int (*push_narrow)(const char *);
static int (*push_wide)(const wchar_t *);
static int (*pop)(void);
static int (*domain_push_ex)(const void *, const struct nvtx_attributes *);
static int (*domain_pop)(const void *);
static const void *(*register_narrow)(const void *, const char *);
static const void *(*register_wide)(const void *, const wchar_t *);
static const void *(*create_narrow)(const char *);
static const void *(*create_wide)(const wchar_t *);

static nvtx_function *core[] = {
	[NVTX_CORE_RANGE_PUSH_EX] = (nvtx_function *)&push_ex,
	[NVTX_CORE_RANGE_PUSH_A] = (nvtx_function *)&push_narrow,
	[NVTX_CORE_RANGE_PUSH_W] = (nvtx_function *)&push_wide,
	[NVTX_CORE_RANGE_POP] = (nvtx_function *)&pop,
};
static nvtx_function *core2[] = {
	[NVTX_CORE2_DOMAIN_RANGE_PUSH_EX] = (nvtx_function *)&domain_push_ex,
	[NVTX_CORE2_DOMAIN_RANGE_POP] = (nvtx_function *)&domain_pop,
	[NVTX_CORE2_DOMAIN_REGISTER_STRING_A] = (nvtx_function *)&register_narrow,
	[NVTX_CORE2_DOMAIN_REGISTER_STRING_W] = (nvtx_function *)&register_wide,
	[NVTX_CORE2_DOMAIN_CREATE_A] = (nvtx_function *)&create_narrow,
	[NVTX_CORE2_DOMAIN_CREATE_W] = (nvtx_function *)&create_wide,
};
static unsigned int core_size = sizeof(core) / sizeof(core[0]);

static int get_module(int module, nvtx_function ***slots, unsigned int *size)
{
	if (module == NVTX_MODULE_CORE) {
		*slots = core;
		*size = core_size;
	} else if (module == NVTX_MODULE_CORE2) {
		*slots = core2;
		*size = sizeof(core2) / sizeof(core2[0]);
	} else {
		return 0;
	}
	return 1;
}

static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_module};

static const void *get_table(uint32_t table)
{
	return table == NVTX_TABLE_CALLBACKS ? &callbacks : NULL;
}

static const void *get_nothing(uint32_t table)
{
	return NULL;
}

static const char *innermost(void)
{
	const struct rls_thread_record *record = rlscope_annotate_thread_record();

	if (!record || !record->depth)
		return "";
	return ((const struct rls_name *)(uintptr_t)record->stack[record->depth - 1])->text;
}

static struct nvtx_attributes message(int type, const void *text)
{
	struct nvtx_attributes attributes = {
		.version = 3, .size = sizeof(attributes), .message_type = type};

	attributes.message.registered = text;
	return attributes;
}

static void test_ranges_are_operations(void **state)
{
	struct nvtx_attributes attributes = message(NVTX_MESSAGE_ASCII, "attributes");

	assert_int_equal(push_narrow("narrow"), 0);
	assert_string_equal(innermost(), "narrow");
	assert_int_equal(push_wide(L"wide \x00e9\x20ac\x1f600"), 1);
	assert_string_equal(innermost(), "wide é€😀");
	assert_int_equal(push_ex(&attributes), 2);
	assert_string_equal(innermost(), "attributes");
	assert_int_equal(pop(), 2);
	assert_int_equal(pop(), 1);
	assert_string_equal(innermost(), "narrow");
	assert_int_equal(pop(), 0);
	assert_string_equal(innermost(), "");
}

static void test_registered_strings_and_domains(void **state)
{
	const void *domain = create_narrow("mine");
	struct nvtx_attributes narrow =
		message(NVTX_MESSAGE_REGISTERED, register_narrow(domain, "registered"));
	struct nvtx_attributes wide =
		message(NVTX_MESSAGE_REGISTERED, register_wide(domain, L"r\x00e9gistered"));

	domain_push_ex(domain, &narrow);
	assert_string_equal(innermost(), "registered");
	domain_push_ex(NULL, &wide);
	assert_string_equal(innermost(), "régistered");
	domain_pop(NULL);
	domain_pop(domain);
	assert_string_equal(innermost(), "");
}

static void test_what_makes_no_sense_is_an_empty_name(void **state)
{
	struct nvtx_attributes foreign_handle = message(NVTX_MESSAGE_REGISTERED, core);
	struct nvtx_attributes unknown = message(77, "text");
	struct nvtx_attributes old = message(NVTX_MESSAGE_ASCII, "text");
	const struct nvtx_attributes *all[] = {&foreign_handle, &unknown, &old, NULL};

	old.size = 32;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		push_narrow("outer");
		push_ex(all[i]);
		assert_string_equal(innermost(), "");
		pop();
		pop();
	}
	assert_int_equal(push_narrow(NULL), 0);
	assert_int_equal(pop(), 0);
}

static void test_an_unbalanced_pop_leaves_operations_alone(void **state)
{
	rlscope_operation_begin("mine");
	assert_int_equal(pop(), NVTX_NO_LEVEL);
	push_narrow("range");
	pop();
	pop();
	assert_string_equal(innermost(), "mine");
	rlscope_operation_end();
}

static void test_ranges_of_libraries_are_not_operations(void **state)
{
	const void *domain = create_wide(L"NCCL");
	struct nvtx_attributes attributes = message(NVTX_MESSAGE_ASCII, "ncclAllReduce");

	rlscope_operation_begin("mine");
	domain_push_ex(domain, &attributes);
	assert_string_equal(innermost(), "mine");
	domain_pop(domain);
	assert_string_equal(innermost(), "mine");
	rlscope_operation_end();
}

static void test_tables_that_do_not_fit_are_refused_whole(void **state)
{
	int (*kept)(const char *) = push_narrow;

	assert_int_equal(InitializeInjectionNvtx2(NULL), 0);
	assert_int_equal(InitializeInjectionNvtx2(get_nothing), 0);
	push_narrow = NULL;
	core_size = NVTX_CORE_RANGE_POP; /* no room for pop: then no push either */
	InitializeInjectionNvtx2(get_table);
	assert_null(push_narrow);
	core_size = sizeof(core) / sizeof(core[0]);
	push_narrow = kept;
}

static int setup(void **state)
{
	return InitializeInjectionNvtx2(get_table) == 1 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranges_are_operations),
		cmocka_unit_test(test_registered_strings_and_domains),
		cmocka_unit_test(test_what_makes_no_sense_is_an_empty_name),
		cmocka_unit_test(test_an_unbalanced_pop_leaves_operations_alone),
		cmocka_unit_test(test_ranges_of_libraries_are_not_operations),
		cmocka_unit_test(test_tables_that_do_not_fit_are_refused_whole),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
