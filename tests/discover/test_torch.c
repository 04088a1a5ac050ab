/* Discovery in a process that has PyTorch and MuJoCo loaded: how complete, how fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/discover/discover.h"

#define PROGRAM                                                                                    \
	"import sys, torch, mujoco\n"                                                              \
	"print('ready', flush=True)\n"                                                             \
	"sys.stdin.read()\n"

/* Of the oldest PyTorch that is tested with, Debian's 1.13; later ones have more. */
#define FILE_METHODS 363
#define LIVE_METHODS 1863
#define BUDGET_NS 1000000000ULL

static struct child child;
static struct rls_process_image *image;
static uint64_t cpu_ns;

static uint64_t now_ns(void)
{
	struct timespec now;

	/* Of this process, so that a busy machine does not fail the test. */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

static const struct rls_library *find_library(const char *part)
{
	for (size_t i = 0; i < image->library_count; i++)
		if (strstr(image->libraries[i]->path, part))
			return image->libraries[i];
	fail_msg("no %s", part);
	return NULL;
}

static size_t count_sources(const struct rls_library *library, unsigned int source)
{
	size_t count = 0;

	for (size_t i = 0; i < library->function_count; i++)
		count += (library->functions[i].sources & source) != 0;
	return count;
}

static const struct rls_boundary_function *named(const struct rls_library *library,
						 const char *name)
{
	for (size_t i = 0; i < library->function_count; i++)
		if (!strncmp(library->functions[i].name, name, strlen(name)))
			return &library->functions[i];
	return NULL;
}

static void finds_pytorchs_methods(void **state)
{
	const struct rls_library *library = find_library("libtorch_python");

	assert_int_equal(library->role, RLS_ROLE_BACKEND);
	assert_true(library->may_throw);
	assert_true(count_sources(library, RLS_SOURCE_METHOD_FILE) >= FILE_METHODS);
	assert_true(count_sources(library, RLS_SOURCE_METHOD_LIVE) >= LIVE_METHODS);
	assert_true(count_sources(library, RLS_SOURCE_GETTER) > 50);
	assert_true(count_sources(library, RLS_SOURCE_SLOT) > 20);
	assert_true(count_sources(library, RLS_SOURCE_CALLBACK) > 100);
	assert_non_null(named(library, "torch._C._VariableFunctionsClass.matmul"));
	assert_non_null(named(library, "torch._C._nn.linear"));
}

static void leaves_out_what_nodes_keep(void **state)
{
	const struct rls_library *library = find_library("libtorch_python");
	bool others = false;

	for (size_t i = 0; i < library->function_count; i++) {
		const char *name = library->functions[i].name;

		assert_null(strstr(name, "._saved_"));
		assert_null(strstr(name, "._raw_saved_"));
		others |= strstr(name, "TensorBase.grad_fn") != NULL;
	}
	assert_true(others);
}

static void finds_mujocos_dispatchers_and_outer_functions(void **state)
{
	const struct rls_library *binding = find_library("mujoco/_functions");
	const struct rls_library *library = find_library("libmujoco.so");

	assert_int_equal(binding->role, RLS_ROLE_SIMULATOR);
	assert_true(count_sources(binding, RLS_SOURCE_METHOD_LIVE) >= 1);
	assert_non_null(named(library, "mj_step"));
	assert_null(named(library, "mju_"));
}

static void what_is_behind_the_binding_has_no_functions(void **state)
{
	assert_int_equal(find_library("libtorch_cpu")->function_count, 0);
}

static void takes_less_than_a_second(void **state)
{
	print_message("%.0f ms of CPU time\n", cpu_ns / 1e6);
	assert_true(cpu_ns < BUDGET_NS);
}

static void nothing_new_is_cheap(void **state)
{
	struct rls_roles *roles;
	uint64_t start;
	size_t first_new;

	assert_int_equal(rls_roles_new(&roles), 0);
	start = now_ns();
	assert_int_equal(rls_discover_new_libraries(image, roles, &first_new), 0);
	start = now_ns() - start;
	print_message("%.2f ms of CPU time\n", start / 1e6);
	assert_int_equal(first_new, image->library_count);
	assert_true(start < 20000000);
	rls_roles_free(roles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_pytorchs_methods),
		cmocka_unit_test(leaves_out_what_nodes_keep),
		cmocka_unit_test(finds_mujocos_dispatchers_and_outer_functions),
		cmocka_unit_test(what_is_behind_the_binding_has_no_functions),
		cmocka_unit_test(takes_less_than_a_second),
		cmocka_unit_test(nothing_new_is_cheap),
	};
	struct rls_roles *roles;
	uint64_t start;
	int failures;

	if (access(TORCH_PYTHON, X_OK) || !child_start(&child, TORCH_PYTHON, "/", PROGRAM)) {
		printf("skipped: %s has no torch and mujoco\n", TORCH_PYTHON);
		return 77;
	}
	start = now_ns();
	if (rls_roles_new(&roles) || rls_discover_process(child.pid, roles, &image)) {
		printf("discovery failed\n");
		return 1;
	}
	cpu_ns = now_ns() - start;
	failures = cmocka_run_group_tests(tests, NULL, NULL);
	rls_process_image_free(image);
	rls_roles_free(roles);
	child_stop(&child);
	return failures;
}
