/* Whole plans of a library whose sites are known by labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/discover/callbacks/callbacks.h"
#include "userspace/plan/planner.h"

static struct rls_elf *samples;

static uint64_t address(const char *label)
{
	struct rls_elf_symbol symbol;

	print_message("%s\n", label);
	assert_int_equal(rls_elf_find_symbol(samples, label, &symbol), 0);
	return symbol.vaddr;
}

static struct rls_plan plan(struct rls_boundary_function *functions, size_t count, bool may_throw)
{
	struct rls_library library = {
		.role = RLS_ROLE_SIMULATOR,
		.may_throw = may_throw,
		.functions = functions,
		.function_count = count,
	};
	struct rls_plan got;

	assert_int_equal(rls_plan_library(&library, samples, &got), 0);
	for (size_t i = 1; i < got.count; i++)
		assert_true(got.sites[i - 1].file_offset < got.sites[i].file_offset);
	return got;
}

static struct rls_plan plan_one(const char *name, enum rls_boundary_kind kind, bool may_throw)
{
	struct rls_boundary_function function = {
		.vaddr = address(name), .name = (char *)name, .kind = kind};

	return plan(&function, 1, may_throw);
}

static const struct rls_site *site_at(const struct rls_plan *got, const char *label)
{
	uint64_t vaddr = address(label), offset;

	for (size_t i = 0; i < got->count; i++) {
		if (got->sites[i].vaddr != vaddr)
			continue;
		assert_int_equal(rls_elf_file_offset(samples, vaddr, &offset), 0);
		assert_int_equal(got->sites[i].file_offset, offset);
		return &got->sites[i];
	}
	fail_msg("no site at %s", label);
	return NULL;
}

static void assert_no_site(const struct rls_plan *got, const char *label)
{
	for (size_t i = 0; i < got->count; i++)
		assert_int_not_equal(got->sites[i].vaddr, address(label));
}

static void assert_enter(const struct rls_plan *got, const char *label, enum rls_site_exit exit)
{
	const struct rls_site *site = site_at(got, label);

	assert_int_equal(site->kind, RLS_SITE_ENTER);
	assert_int_equal(site->exit, exit);
	assert_int_equal(site->category, RLS_CATEGORY_SIMULATOR);
}

static void assert_leave_as(const struct rls_plan *got, const char *label,
			    enum rls_site_class site_class, uint32_t slot_bytes)
{
	const struct rls_site *site = site_at(got, label);

	assert_int_equal(site->kind, RLS_SITE_LEAVE_RET);
	assert_int_equal(site->exit, RLS_EXIT_NONE);
	assert_int_equal(site->site_class, site_class);
	assert_int_equal(site->slot_bytes, slot_bytes);
}

static void assert_leave(const struct rls_plan *got, const char *label)
{
	assert_leave_as(got, label, RLS_SITE_SINGLE_STEP, 0);
}

static void assert_leave_at_check(const struct rls_plan *got, const char *label,
				  uint32_t slot_bytes)
{
	assert_leave_as(got, label, RLS_SITE_EMULATED, slot_bytes);
}

static void uses_a_return_probe_where_nothing_is_thrown(void **state)
{
	struct rls_plan got = plan_one("two_rets", RLS_BOUNDARY_EXPORTED, false);

	assert_int_equal(got.count, 1);
	assert_enter(&got, "two_rets_site", RLS_EXIT_RETURN_PROBE);
	assert_false(got.sites[0].from_python);
	assert_int_equal(got.class_counts[RLS_SITE_EMULATED], 1);
	rls_plan_clear(&got);

	got = plan_one("two_rets", RLS_BOUNDARY_PYTHON_CALLS, true);
	assert_int_equal(got.count, 1);
	assert_enter(&got, "two_rets_site", RLS_EXIT_RETURN_PROBE);
	assert_true(got.sites[0].from_python);
	rls_plan_clear(&got);
	assert_null(got.sites);
}

static void probes_every_ret_of_what_may_throw(void **state)
{
	struct rls_plan got = plan_one("two_rets", RLS_BOUNDARY_EXPORTED, true);

	assert_int_equal(got.count, 3);
	assert_enter(&got, "two_rets_site", RLS_EXIT_SITES);
	assert_leave(&got, "two_rets_first");
	assert_leave(&got, "two_rets_second");
	assert_int_equal(got.unseen_exits, 0);
	rls_plan_clear(&got);
}

static void sees_ends_at_the_stack_protectors_check(void **state)
{
	struct rls_plan got = plan_one("guarded", RLS_BOUNDARY_EXPORTED, true);

	assert_int_equal(got.count, 2);
	assert_enter(&got, "guarded", RLS_EXIT_SITES);
	assert_leave_at_check(&got, "guarded_check", 0x418 + 16);
	assert_int_equal(got.class_counts[RLS_SITE_SINGLE_STEP], 0);
	rls_plan_clear(&got);

	got = plan_one("guarded_by_sub", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 2);
	assert_leave_at_check(&got, "guarded_by_sub_check", 0x18);
	rls_plan_clear(&got);
}

static void keeps_to_the_ret_where_the_check_shows_nothing(void **state)
{
	static const char *const functions[][2] = {
		{"guard_passed_by", "guard_passed_by_ret"},
		{"guard_in_frame", "guard_in_frame_ret"},
		{"guard_too_deep", "guard_too_deep_ret"},
		{"guards_nothing", "guards_nothing_ret"},
		{"guards_nothing", "guards_nothing_either_ret"},
	};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct rls_plan got = plan_one(functions[i][0], RLS_BOUNDARY_EXPORTED, true);

		assert_leave(&got, functions[i][1]);
		rls_plan_clear(&got);
	}
}

static void sees_brief_functions_from_within(void **state)
{
	for (int kind = 0; kind < 2; kind++) {
		struct rls_plan got = plan_one(
			"brief", kind ? RLS_BOUNDARY_EXPORTED : RLS_BOUNDARY_PYTHON_CALLS, true);

		assert_int_equal(got.count, 2);
		assert_enter(&got, "brief_call", RLS_EXIT_SITES);
		assert_int_equal(site_at(&got, "brief_call")->site_class, RLS_SITE_EMULATED);
		assert_int_equal(site_at(&got, "brief_call")->slot_bytes,
				 RLS_SITE_ENTER_SLOT_BYTES);
		assert_int_equal(site_at(&got, "brief_call")->from_python, !kind);
		assert_leave_at_check(&got, "brief_je", 8);
		rls_plan_clear(&got);
	}
}

static void keeps_brief_functions_and_callbacks_apart(void **state)
{
	struct rls_boundary_function functions[] = {
		{.vaddr = address("brief_calls_back"),
		 .name = "brief",
		 .kind = RLS_BOUNDARY_PYTHON_CALLS},
		{.vaddr = address("brief_back_call"),
		 .name = "back",
		 .kind = RLS_BOUNDARY_CALLBACK_CALL},
	};
	struct rls_plan got = plan(functions, 2, true);

	assert_int_equal(got.count, 3);
	assert_enter(&got, "brief_calls_back", RLS_EXIT_RETURN_PROBE);
	assert_int_equal(site_at(&got, "brief_calls_back")->slot_bytes, 0);
	assert_int_equal(site_at(&got, "brief_back_call")->kind, RLS_SITE_ENTER_CALL);
	assert_int_equal(site_at(&got, "brief_back_after")->kind, RLS_SITE_LEAVE_AFTER);
	rls_plan_clear(&got);
}

static void follows_jumps_out(void **state)
{
	struct rls_plan got = plan_one("conditional_tail", RLS_BOUNDARY_EXPORTED, true);

	assert_int_equal(got.count, 3);
	assert_enter(&got, "conditional_tail", RLS_EXIT_SITES);
	assert_leave(&got, "conditional_tail_ret");
	assert_leave(&got, "tail_callee_ret");
	rls_plan_clear(&got);

	got = plan_one("self_tail", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 2);
	assert_enter(&got, "self_tail", RLS_EXIT_SITES);
	assert_leave(&got, "self_tail_ret");
	rls_plan_clear(&got);

	got = plan_one("split", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 3);
	assert_enter(&got, "split", RLS_EXIT_SITES);
	assert_leave(&got, "split_ret");
	assert_leave(&got, "split_cold_ret");
	rls_plan_clear(&got);
}

static void says_which_exits_it_does_not_see(void **state)
{
	struct rls_plan got = plan_one("plt_tail", RLS_BOUNDARY_EXPORTED, true);

	assert_int_equal(got.count, 2);
	assert_enter(&got, "plt_tail", RLS_EXIT_UNSEEN);
	assert_leave(&got, "plt_tail_ret");
	assert_int_equal(got.unseen_exits, 1);
	rls_plan_clear(&got);

	got = plan_one("pointer_tail", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 1);
	assert_enter(&got, "pointer_tail", RLS_EXIT_UNSEEN);
	rls_plan_clear(&got);

	got = plan_one("only_ret", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 1);
	assert_enter(&got, "only_ret", RLS_EXIT_UNSEEN);
	rls_plan_clear(&got);

	got = plan_one("switch_table", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 2);
	assert_enter(&got, "switch_table", RLS_EXIT_SITES);
	assert_leave(&got, "switch_table_ret");
	rls_plan_clear(&got);

	got = plan_one("never_returns", RLS_BOUNDARY_EXPORTED, true);
	assert_int_equal(got.count, 1);
	assert_enter(&got, "never_returns", RLS_EXIT_SITES);
	rls_plan_clear(&got);
}

static void assert_python(const struct rls_plan *got, const char *label, enum rls_site_kind kind,
			  enum rls_site_class site_class, enum rls_site_exit exit)
{
	const struct rls_site *site = site_at(got, label);

	assert_int_equal(site->kind, kind);
	assert_int_equal(site->category, RLS_CATEGORY_PYTHON);
	assert_int_equal(site->exit, exit);
	assert_string_equal(rls_site_class_name(site->site_class), rls_site_class_name(site_class));
}

static void assert_back(const struct rls_plan *got, const char *label,
			enum rls_site_class site_class)
{
	const struct rls_site *site = site_at(got, label);

	assert_int_equal(site->kind, RLS_SITE_LEAVE_AFTER);
	assert_int_equal(site->category, RLS_CATEGORY_SIMULATOR);
	assert_string_equal(rls_site_class_name(site->site_class), rls_site_class_name(site_class));
}

static void brackets_calls_into_python(void **state)
{
	struct rls_boundary_function *callbacks;
	struct rls_plan got;
	size_t count;

	assert_int_equal(rls_find_callbacks(samples, &callbacks, &count), 0);
	got = plan(callbacks, count, true);
	assert_python(&got, "calls_back_call", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED,
		      RLS_EXIT_SITES);
	assert_back(&got, "calls_back_after", RLS_SITE_EMULATED);
	/* Of calls in a row only the last needs an exit; each ends the one before, which has the
	 * same return slot, so that one must not pass for going on. */
	assert_python(&got, "twice_first", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED, RLS_EXIT_UNSEEN);
	assert_python(&got, "twice_second", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED,
		      RLS_EXIT_UNSEEN);
	assert_python(&got, "twice_third", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED, RLS_EXIT_SITES);
	assert_back(&got, "twice_after", RLS_SITE_SINGLE_STEP);
	assert_python(&got, "word_call", RLS_SITE_ENTER_CALL, RLS_SITE_SINGLE_STEP, RLS_EXIT_SITES);
	assert_back(&got, "word_after", RLS_SITE_SINGLE_STEP);
	assert_python(&got, "jumps_back_jump", RLS_SITE_ENTER, RLS_SITE_EMULATED,
		      RLS_EXIT_RETURN_PROBE);
	assert_python(&got, "word_jump", RLS_SITE_ENTER, RLS_SITE_SINGLE_STEP,
		      RLS_EXIT_RETURN_PROBE);
	assert_python(&got, "is_a_jump_back", RLS_SITE_ENTER, RLS_SITE_EMULATED,
		      RLS_EXIT_RETURN_PROBE);
	assert_python(&got, "plt_got_call", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED, RLS_EXIT_SITES);
	assert_back(&got, "plt_got_after", RLS_SITE_SINGLE_STEP);
	assert_python(&got, "brief_back_call", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED,
		      RLS_EXIT_SITES);
	assert_back(&got, "brief_back_after", RLS_SITE_EMULATED);
	assert_python(&got, "register_call", RLS_SITE_ENTER_CALL, RLS_SITE_SINGLE_STEP,
		      RLS_EXIT_SITES);
	assert_python(&got, "cmov_jump", RLS_SITE_ENTER, RLS_SITE_SINGLE_STEP,
		      RLS_EXIT_RETURN_PROBE);
	/* 28 ways into Python, and behind each call that no other call ends. */
	assert_int_equal(count, 28);
	assert_int_equal(got.count, 49);
	rls_plan_clear(&got);
	rls_callbacks_free(callbacks, count);
}

static void sees_calls_coming_where_that_is_cheaper(void **state)
{
	static const char *const at_call[] = {"mixed_call", "deeper_call", "leaving_call",
					      "cmov_word_call"};
	struct rls_boundary_function *callbacks;
	struct rls_plan got;
	size_t count;

	assert_int_equal(rls_find_callbacks(samples, &callbacks, &count), 0);
	got = plan(callbacks, count, true);
	assert_python(&got, "branch_site", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED, RLS_EXIT_SITES);
	assert_no_site(&got, "branch_call");
	assert_python(&got, "again_site", RLS_SITE_ENTER_CALL, RLS_SITE_EMULATED, RLS_EXIT_SITES);
	assert_no_site(&got, "again_call");
	for (size_t i = 0; i < sizeof(at_call) / sizeof(at_call[0]); i++)
		assert_python(&got, at_call[i], RLS_SITE_ENTER_CALL, RLS_SITE_SINGLE_STEP,
			      RLS_EXIT_SITES);
	rls_plan_clear(&got);
	rls_callbacks_free(callbacks, count);
}

/* A function that goes straight on into Python is entered before the jump; one that is
 * but the jump has no time of its own and only the jump's site. */
static void keeps_entry_and_callback_apart(void **state)
{
	struct rls_boundary_function functions[] = {
		{.vaddr = address("jumps_back"), .name = "jumps_back"},
		{.vaddr = address("jumps_back_jump"),
		 .name = "PyObject_CallObject",
		 .kind = RLS_BOUNDARY_CALLBACK_JUMP},
	};
	struct rls_boundary_function only[] = {
		{.vaddr = address("is_a_jump_back"), .name = "is_a_jump_back"},
		{.vaddr = address("is_a_jump_back"),
		 .name = "PyObject_CallObject",
		 .kind = RLS_BOUNDARY_CALLBACK_JUMP},
	};
	struct rls_plan got = plan(functions, 2, false);

	assert_int_equal(got.count, 2);
	assert_enter(&got, "jumps_back", RLS_EXIT_RETURN_PROBE);
	assert_python(&got, "jumps_back_jump", RLS_SITE_ENTER, RLS_SITE_EMULATED,
		      RLS_EXIT_RETURN_PROBE);
	rls_plan_clear(&got);

	got = plan(only, 2, false);
	assert_int_equal(got.count, 1);
	assert_python(&got, "is_a_jump_back", RLS_SITE_ENTER, RLS_SITE_EMULATED,
		      RLS_EXIT_RETURN_PROBE);
	rls_plan_clear(&got);
}

static void shares_sites_and_counts_what_it_skips(void **state)
{
	struct rls_boundary_function functions[] = {
		{.vaddr = 0x10, .name = "header"},
		{.vaddr = address("tail_callee"), .name = "a", .kind = RLS_BOUNDARY_EXPORTED},
		{.vaddr = address("tail_callee"), .name = "alias", .kind = RLS_BOUNDARY_EXPORTED},
		{.vaddr = address("tail_caller"), .name = "b", .kind = RLS_BOUNDARY_EXPORTED},
		{.vaddr = UINT64_MAX - 1, .name = "nowhere"},
	};
	struct rls_plan got = plan(functions, 5, true);

	assert_int_equal(got.count, 3);
	assert_enter(&got, "tail_callee", RLS_EXIT_SITES);
	assert_enter(&got, "tail_caller", RLS_EXIT_SITES);
	assert_leave(&got, "tail_callee_ret");
	assert_int_equal(got.skipped[RLS_PLAN_NOT_CODE], 2);
	assert_int_equal(got.skipped[RLS_PLAN_NOT_PROBEABLE], 0);
	rls_plan_clear(&got);
}

/* Exceptions of a function that a C library calls, and the ends of threads, pass through it. */
static void has_no_return_probe_where_something_may_unwind(void **state)
{
	struct rls_plan got = plan_one("calls_pointer", RLS_BOUNDARY_EXPORTED, false);

	assert_int_equal(got.count, 2);
	assert_enter(&got, "calls_pointer", RLS_EXIT_SITES);
	assert_leave(&got, "calls_pointer_ret");
	rls_plan_clear(&got);

	/* Its last way out is through the PLT. */
	got = plan_one("calls_then_tail", RLS_BOUNDARY_EXPORTED, false);
	assert_enter(&got, "calls_then_tail", RLS_EXIT_RETURN_PROBE);
	rls_plan_clear(&got);
	got = plan_one("calls_then_tail", RLS_BOUNDARY_EXPORTED, true);
	assert_enter(&got, "calls_then_tail", RLS_EXIT_UNSEEN);
	rls_plan_clear(&got);
}

static void knows_what_is_jumped_to(void **state)
{
	struct rls_boundary_function functions[] = {
		{.vaddr = address("tail_callee"), .name = "callee", .kind = RLS_BOUNDARY_EXPORTED},
		{.vaddr = address("tail_caller"), .name = "caller", .kind = RLS_BOUNDARY_EXPORTED},
		{.vaddr = address("self_tail"), .name = "self", .kind = RLS_BOUNDARY_EXPORTED},
	};
	struct rls_plan got = plan(functions, 3, true);

	assert_true(site_at(&got, "tail_callee")->jumped_to);
	assert_false(site_at(&got, "tail_caller")->jumped_to);
	assert_true(site_at(&got, "self_tail")->jumped_to);
	rls_plan_clear(&got);
	got = plan(functions, 1, true);
	assert_false(site_at(&got, "tail_callee")->jumped_to);
	rls_plan_clear(&got);
}

static void plans_an_empty_library(void **state)
{
	struct rls_plan got = plan(NULL, 0, true);

	assert_int_equal(got.count, 0);
	rls_plan_clear(&got);
}

static int open_samples(void **state)
{
	return rls_elf_open(SAMPLES_LIBRARY, &samples);
}

static int close_samples(void **state)
{
	rls_elf_close(samples);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uses_a_return_probe_where_nothing_is_thrown),
		cmocka_unit_test(probes_every_ret_of_what_may_throw),
		cmocka_unit_test(sees_ends_at_the_stack_protectors_check),
		cmocka_unit_test(keeps_to_the_ret_where_the_check_shows_nothing),
		cmocka_unit_test(sees_brief_functions_from_within),
		cmocka_unit_test(keeps_brief_functions_and_callbacks_apart),
		cmocka_unit_test(follows_jumps_out),
		cmocka_unit_test(says_which_exits_it_does_not_see),
		cmocka_unit_test(brackets_calls_into_python),
		cmocka_unit_test(sees_calls_coming_where_that_is_cheaper),
		cmocka_unit_test(keeps_entry_and_callback_apart),
		cmocka_unit_test(shares_sites_and_counts_what_it_skips),
		cmocka_unit_test(has_no_return_probe_where_something_may_unwind),
		cmocka_unit_test(knows_what_is_jumped_to),
		cmocka_unit_test(plans_an_empty_library),
	};

	return cmocka_run_group_tests(tests, open_samples, close_samples);
}
