/* Where interpreters evaluate: one that does nothing else is in its evaluation loop most times
 * that it is stopped. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/record/samples/code_map.h"

#define STOPS 300

static const char *const interpreters[] = {INTERPRETERS};

/* Locals are distinguished: nothing that the loop lets others do. */
static const char program[] = "def spin(a, b):\n"
			      "    print('ready', flush=True)\n"
			      "    while True:\n"
			      "        if a is b: b = None\n"
			      "        else: b = a\n"
			      "spin(1, 1)\n";

/* Where the process is. */
static uint64_t instruction_of(pid_t pid)
{
	struct user_regs_struct registers;

	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &registers), 0);
	assert_int_equal(ptrace(PTRACE_CONT, pid, NULL, NULL), 0);
	return registers.rip;
}

static void check(const char *interpreter)
{
	struct rls_code_map *map;
	unsigned int evaluates = 0;
	struct child child;

	assert_true(child_start(&child, interpreter, ".", program));
	assert_int_equal(rls_code_map_new(NULL, &map), 0);
	if (ptrace(PTRACE_SEIZE, child.pid, NULL, NULL)) {
		print_message("nobody may be stopped here: %s\n", strerror(errno));
		child_stop(&child);
		skip();
	}
	usleep(20000); /* what it begins with is over */
	for (int stop = 0; stop < STOPS; stop++) {
		struct rls_code_place place = {0};
		struct rls_native_file *file;
		uint64_t address, vaddr;

		usleep(100);
		address = instruction_of(child.pid);
		assert_int_equal(rls_code_map_find(map, child.pid, 1, address, true, &place), 0);
		file = rls_code_map_native(map, child.pid, &place, &vaddr);
		assert_non_null(file);
		assert_false(rls_native_file_hides_evaluation(file));
		evaluates += rls_native_file_is_interpreter(file) &&
			     rls_native_file_evaluates(file, vaddr);
	}
	rls_code_map_free(map);
	child_stop(&child);
	print_message("%s: %u of %u stops\n", interpreter, evaluates, STOPS);
	assert_true(evaluates > STOPS * 9 / 10);
}

static void interpreters_evaluate_in_their_loop(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(interpreters[0]); i++)
		check(interpreters[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreters_evaluate_in_their_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
