#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/targets/new_processes.h"

struct finding {
	struct rls_new_processes *new_processes;
	size_t found;
	pid_t maps_meanwhile; /* 0: nobody does */
};

static void on_found(void *context, pid_t pid)
{
	struct finding *finding = context;

	(void)pid;
	finding->found++;
	if (finding->maps_meanwhile)
		rls_new_processes_mapped(finding->new_processes, finding->maps_meanwhile);
	finding->maps_meanwhile = 0;
}

/* To follow one takes a while. Another one, looked at just before, may map its library then. */
static void who_maps_while_another_is_followed_is_looked_at_again(void **state)
{
	struct rls_selection selection = {0};
	struct rls_targets followed = {0};
	struct rls_new_processes new_processes = {
		.selection = &selection, .followed = &followed, .sweep_ns = UINT64_MAX};
	struct finding finding = {.new_processes = &new_processes};
	pid_t child = fork();

	(void)state;
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	assert_int_equal(rls_selection_add(&selection, RLS_SELECT_NAME, "test_new_process*"), 0);
	finding.maps_meanwhile = child;
	rls_new_processes_mapped(&new_processes, child);
	rls_new_processes_find(&new_processes, 0, on_found, &finding);
	assert_int_equal(finding.found, 1);
	rls_new_processes_find(&new_processes, 0, on_found, &finding);
	assert_int_equal(finding.found, 2);
	rls_new_processes_find(&new_processes, 0, on_found, &finding);
	assert_int_equal(finding.found, 2);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	rls_new_processes_clear(&new_processes);
	rls_selection_clear(&selection);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_maps_while_another_is_followed_is_looked_at_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
