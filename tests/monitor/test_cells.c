/* Sweeps over a kernel side that is made up. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "userspace/monitor/cells.h"

#define CELLS 8

static struct {
	struct rls_wire_cell_key key[CELLS];
	struct rls_wire_cell cell[CELLS];
	size_t count;
	bool tracked;
} kernel;

static struct rls_cells cells;
static struct rls_jobs jobs;
static struct rls_names names;

int __wrap_rls_kernel_read_cells(struct rls_kernel *unused,
				 int (*visit)(void *context, const struct rls_wire_cell_key *key,
					      const struct rls_wire_cell *cell),
				 void *context);
int __wrap_rls_kernel_read_cells(struct rls_kernel *unused,
				 int (*visit)(void *context, const struct rls_wire_cell_key *key,
					      const struct rls_wire_cell *cell),
				 void *context)
{
	for (size_t i = 0; i < kernel.count; i++)
		assert_int_equal(visit(context, &kernel.key[i], &kernel.cell[i]), 0);
	return 0;
}

int __wrap_rls_kernel_drop_cell(struct rls_kernel *unused, const struct rls_wire_cell_key *key);
int __wrap_rls_kernel_drop_cell(struct rls_kernel *unused, const struct rls_wire_cell_key *key)
{
	for (size_t i = 0; i < kernel.count; i++) {
		if (memcmp(&kernel.key[i], key, sizeof(*key)))
			continue;
		kernel.count--;
		kernel.key[i] = kernel.key[kernel.count];
		kernel.cell[i] = kernel.cell[kernel.count];
		return 0;
	}
	return -ENOENT;
}

bool __wrap_rls_kernel_is_tracked(const struct rls_kernel *unused, pid_t pid);
bool __wrap_rls_kernel_is_tracked(const struct rls_kernel *unused, pid_t pid)
{
	return kernel.tracked;
}

static void identify(pid_t pid, struct rls_job_identity *out)
{
	*out = (struct rls_job_identity){.name = "train"};
}

static struct rls_job *begin(uint32_t pid)
{
	struct rls_job *job;

	assert_int_equal(rls_jobs_begin(&jobs, pid, 1, 1, identify, &job), 0);
	return job;
}

static struct rls_wire_cell *cell_of(uint32_t pid, uint32_t operation, uint32_t category)
{
	kernel.key[kernel.count] = (struct rls_wire_cell_key){pid, operation, 0, category};
	kernel.cell[kernel.count] = (struct rls_wire_cell){0};
	return &kernel.cell[kernel.count++];
}

static void sweep(void)
{
	assert_int_equal(rls_cells_sweep(&cells, NULL, &jobs, &names), 0);
}

static uint64_t all_ns(struct rls_job *job)
{
	uint64_t ns = 0;

	assert_int_equal(rls_ledger_show(&job->ledger), 0);
	for (size_t i = 0; i < job->ledger.row_count; i++)
		ns += job->ledger.rows[i].wall_ns;
	return ns;
}

static int clear(void **state)
{
	rls_cells_clear(&cells);
	rls_jobs_clear(&jobs);
	rls_names_clear(&names);
	memset(&kernel, 0, sizeof(kernel));
	return 0;
}

static void growth_is_added_once(void **state)
{
	struct rls_job *job = begin(7);
	struct rls_wire_cell *cell = cell_of(7, 0, RLS_CATEGORY_PYTHON);

	cell->ns = 100;
	sweep();
	sweep();
	assert_int_equal(all_ns(job), 100);
	cell->ns = 250;
	cell->to[RLS_CATEGORY_BACKEND] = 4;
	sweep();
	assert_int_equal(all_ns(job), 250);
	assert_int_equal(job->ledger.transitions[0].count, 4);
}

static void cells_wait_for_their_process_and_name(void **state)
{
	struct rls_wire_name name = {.header.pid = 7, .id = 5, .length = 4, .text = "step"};
	struct rls_job *job;

	cell_of(7, 5, RLS_CATEGORY_PYTHON)->ns = 100;
	sweep();
	job = begin(7);
	sweep();
	assert_int_equal(all_ns(job), 0);
	assert_int_equal(rls_names_add(&names, &name), 0);
	sweep();
	assert_int_equal(all_ns(job), 100);
	assert_string_equal(job->ledger.rows[0].operation, "step");
}

static void a_name_that_never_comes_is_other(void **state)
{
	struct rls_job *job = begin(7);

	cell_of(7, 5, RLS_CATEGORY_PYTHON)->ns = 100;
	for (int i = 0; i < 10; i++)
		sweep();
	assert_int_equal(all_ns(job), 100);
	assert_string_equal(job->ledger.rows[0].operation, RLS_LEDGER_OTHER);
}

static void ended_processes_are_folded_and_forgotten(void **state)
{
	struct rls_job *job = begin(7);

	assert_int_equal(rls_jobs_begin(&jobs, 8, 7, 1, identify, &job), 0);
	cell_of(7, 0, RLS_CATEGORY_PYTHON)->ns = 100;
	cell_of(8, 0, RLS_CATEGORY_PYTHON)->ns = 30;
	sweep();
	rls_jobs_end(&jobs, 8, 50);
	kernel.cell[1].ns = 40; /* what it added as it ended */
	sweep();
	rls_cells_forget(&cells, NULL, &jobs, 50);
	assert_int_equal(kernel.count, 2); /* not yet */
	rls_cells_forget(&cells, NULL, &jobs, 51);
	rls_jobs_forget(&jobs, 51);
	assert_int_equal(kernel.count, 1);
	assert_int_equal(cells.map.count, 1);
	sweep();
	assert_int_equal(all_ns(job), 140);
	assert_int_equal(cells.unplaced, 0);
}

static void cells_of_nobody_are_a_loss(void **state)
{
	cell_of(99, 0, RLS_CATEGORY_PYTHON)->ns = 100;
	kernel.tracked = true;
	for (int i = 0; i < 10; i++)
		sweep();
	rls_cells_forget(&cells, NULL, &jobs, 1000);
	assert_int_equal(kernel.count, 1); /* it may still be reported */
	kernel.tracked = false;
	rls_cells_forget(&cells, NULL, &jobs, 1000);
	assert_int_equal(kernel.count, 0);
	assert_int_equal(cells.map.count, 0);
	assert_int_equal(cells.unplaced, 1);
}

#define TEST(test) cmocka_unit_test_teardown(test, clear)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(growth_is_added_once),
		TEST(cells_wait_for_their_process_and_name),
		TEST(a_name_that_never_comes_is_other),
		TEST(ended_processes_are_folded_and_forgotten),
		TEST(cells_of_nobody_are_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
