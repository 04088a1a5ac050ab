/* Which sites' probes go on and off with a window, with links that only keep account. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/attach/groups.h"

#define FIRST 100
#define SITES 40 /* three links: 16, 16, 8 */

struct made {
	uint32_t ids[SITES];
	size_t count;
};

static int live[FIRST + SITES], returning[FIRST + SITES];
static bool windowed[FIRST + SITES];
static size_t attached_links, detached_links;
static int refuse;

int __wrap_rls_links_attach(struct rls_links *links, const struct rls_link_request *request,
			    size_t *attached);
int __wrap_rls_links_attach(struct rls_links *links, const struct rls_link_request *request,
			    size_t *attached)
{
	struct made *made = calloc(1, sizeof(*made));

	if (refuse) {
		free(made);
		return refuse;
	}
	assert_non_null(made);
	assert_true(request->multi);
	for (size_t i = 0; i < request->count; i++) {
		uint32_t id = request->ids[i];

		assert_in_range(id, FIRST, FIRST + SITES - 1);
		assert_int_equal(request->sites[i].file_offset, 10 * id);
		made->ids[made->count++] = id;
		live[id]++;
		returning[id] = request->sites[i].exit == RLS_EXIT_RETURN_PROBE;
		windowed[id] = request->windowed;
	}
	assert_int_equal(rls_links_add(links, (struct bpf_link *)made), 0);
	*attached = made->count;
	attached_links++;
	return 0;
}

void __wrap_rls_links_clear(struct rls_links *links, size_t first);
void __wrap_rls_links_clear(struct rls_links *links, size_t first)
{
	assert_int_equal(first, 0);
	for (size_t i = 0; i < links->count; i++) {
		struct made *made = (struct made *)links->items[i].link;

		for (size_t k = 0; k < made->count; k++)
			live[made->ids[k]]--;
		free(made);
		detached_links++;
	}
	free(links->items);
	*links = (struct rls_links){0};
}

int __wrap_rls_links_drop_returns(struct rls_links *links, uint32_t first_id);
int __wrap_rls_links_drop_returns(struct rls_links *links, uint32_t first_id)
{
	assert_int_equal(first_id, FIRST);
	return 0;
}

static struct rls_links more;

static const struct rls_hit_costs costs = {
	.ns = {[RLS_SITE_EMULATED] = {500, 300}, [RLS_SITE_SINGLE_STEP] = {15000, 300}},
};

static void begin(struct rls_groups *groups, const char *path)
{
	struct rls_site sites[SITES];
	struct rls_link_request request = {.multi = true,
					   .path = path,
					   .sites = sites,
					   .count = SITES,
					   .first_id = FIRST,
					   .costs = &costs};
	size_t attached = 0;

	memset(live, 0, sizeof(live));
	attached_links = detached_links = 0;
	refuse = 0;
	*groups = (struct rls_groups){0};
	for (uint32_t i = 0; i < SITES; i++)
		sites[i] = (struct rls_site){.file_offset = 10 * (FIRST + i),
					     .site_class = RLS_SITE_EMULATED,
					     .exit = RLS_EXIT_RETURN_PROBE};
	sites[1].site_class = RLS_SITE_SINGLE_STEP;
	sites[2].exit = RLS_EXIT_SITES;
	assert_int_equal(rls_groups_add(groups, &request, &attached), 0);
	assert_int_equal(attached, SITES);
}

static void assert_live(uint32_t first, uint32_t end, int expected)
{
	for (uint32_t i = first; i < end; i++)
		assert_int_equal(live[FIRST + i], expected);
}

static void all_are_on_at_first(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_live(0, SITES, 1);
	assert_int_equal(attached_links, 3);
	/* Nothing has another duty: a window changes nothing. */
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_int_equal(rls_groups_open(&groups, &costs), 0);
	rls_groups_close(&groups, &more);
	assert_live(0, SITES, 1);
	assert_int_equal(detached_links, 0);
	rls_groups_clear(&groups);
	assert_live(0, SITES, 0);
}

static void windowed_sites_go_on_and_off_alone(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_int_equal(rls_groups_set_duty(&groups, FIRST + 3, RLS_DUTY_WINDOWS), 0);
	assert_int_equal(rls_groups_set_duty(&groups, FIRST + 33, RLS_DUTY_WINDOWS), 0);
	assert_int_equal(rls_groups_set_duty(&groups, FIRST + 34, RLS_DUTY_NEVER), 0);
	assert_live(0, SITES, 1); /* not before they are regrouped */
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_int_equal(detached_links, 2); /* the second link has none of them */
	for (int round = 0; round < 2; round++) {
		assert_live(0, 3, 1);
		assert_live(3, 4, 0);
		assert_live(4, 33, 1);
		assert_live(33, 35, 0);
		assert_live(35, SITES, 1);
		assert_int_equal(rls_groups_open(&groups, &costs), 0);
		assert_live(0, 34, 1);
		assert_live(34, 35, 0);
		assert_true(windowed[FIRST + 3] && windowed[FIRST + 33]);
		assert_false(windowed[FIRST + 4]);
		rls_groups_close(&groups, &more);
	}
	rls_groups_clear(&groups);
	assert_live(0, SITES, 0);
}

static void what_else_goes_off_goes_with_them(void **state)
{
	struct rls_groups groups;
	struct made *first = calloc(1, sizeof(*first)), *second = calloc(1, sizeof(*second));

	begin(&groups, "/proc/self/exe");
	assert_true(first && second);
	assert_int_equal(rls_links_add(&more, (struct bpf_link *)first), 0);
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_int_equal(more.count, 0);
	assert_int_equal(detached_links, 1);
	assert_int_equal(rls_links_add(&more, (struct bpf_link *)second), 0);
	rls_groups_close(&groups, &more);
	assert_int_equal(more.count, 0);
	assert_int_equal(detached_links, 2);
	assert_live(0, SITES, 1);
	rls_groups_clear(&groups);
}

static void a_site_may_be_put_on_again(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_int_equal(rls_groups_set_duty(&groups, FIRST, RLS_DUTY_WINDOWS), 0);
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_int_equal(rls_groups_open(&groups, &costs), 0);
	assert_int_equal(rls_groups_set_duty(&groups, FIRST, RLS_DUTY_ALWAYS), 0);
	/* What is windowed is off after a regroup, and no site is on twice. */
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_live(0, SITES, 1);
	assert_false(windowed[FIRST]);
	rls_groups_clear(&groups);
}

static void sites_that_nobody_has_are_ignored(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_int_equal(rls_groups_set_duty(&groups, 0, RLS_DUTY_NEVER), 0);
	assert_int_equal(rls_groups_set_duty(&groups, FIRST + SITES, RLS_DUTY_NEVER), 0);
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_live(0, SITES, 1);
	assert_int_equal(rls_groups_cost_ns(&groups, FIRST - 1, &costs), 0);
	assert_int_equal(rls_groups_cost_ns(&groups, FIRST + SITES, &costs), 0);
	rls_groups_clear(&groups);
}

/* One hit in two is the return's, where there is a return probe. */
static void what_a_hit_costs(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_int_equal(rls_groups_cost_ns(&groups, FIRST, &costs), 400);
	assert_int_equal(rls_groups_cost_ns(&groups, FIRST + 1, &costs), 7650);
	assert_int_equal(rls_groups_cost_ns(&groups, FIRST + 2, &costs), 500);
	rls_groups_clear(&groups);
}

/* A library that switches stacks: its return probes stay off whatever is put on later. */
static void return_probes_that_were_dropped_do_not_come_back(void **state)
{
	struct rls_groups groups;

	begin(&groups, "/proc/self/exe");
	assert_true(returning[FIRST]);
	assert_int_equal(rls_groups_drop_returns(&groups, FIRST), 0);
	assert_int_equal(rls_groups_set_duty(&groups, FIRST, RLS_DUTY_WINDOWS), 0);
	assert_int_equal(rls_groups_regroup(&groups, &costs, &more), 0);
	assert_int_equal(rls_groups_open(&groups, &costs), 0);
	assert_false(returning[FIRST]);
	assert_false(returning[FIRST + 1]); /* put on anew with its link */
	rls_groups_clear(&groups);
}

static void a_file_that_cannot_be_probed_is_refused(void **state)
{
	struct rls_groups groups = {0};
	const struct rls_site site = {.file_offset = 10 * FIRST};
	struct rls_link_request request = {.multi = true,
					   .path = "/nowhere/at/all",
					   .sites = &site,
					   .count = 1,
					   .first_id = FIRST,
					   .costs = &costs};
	size_t attached = 7;

	assert_int_equal(rls_groups_add(&groups, &request, &attached), -ENOENT);
	request.path = "/proc/self/exe";
	refuse = -EINVAL;
	assert_int_equal(rls_groups_add(&groups, &request, &attached), -EINVAL);
	assert_int_equal(attached, 7);
	assert_int_equal(groups.count, 0);
	rls_groups_clear(&groups);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_are_on_at_first),
		cmocka_unit_test(windowed_sites_go_on_and_off_alone),
		cmocka_unit_test(what_else_goes_off_goes_with_them),
		cmocka_unit_test(a_site_may_be_put_on_again),
		cmocka_unit_test(sites_that_nobody_has_are_ignored),
		cmocka_unit_test(what_a_hit_costs),
		cmocka_unit_test(return_probes_that_were_dropped_do_not_come_back),
		cmocka_unit_test(a_file_that_cannot_be_probed_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
