/* A child whose first thread has left, while another lives on. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/process/living_thread.h"
#include "userspace/process/mappings.h"
#include "userspace/process/space.h"
#include "userspace/process/target_file.h"

static const char mark[] = "living";

static void *live_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static void leave(void)
{
	pthread_t thread;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, live_on, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
}

static char state_of(pid_t pid)
{
	char path[64], text[512] = "", *end;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	if (!file)
		return 0;
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	end = strrchr(text, ')');
	return end ? end[2] : '\0';
}

static int set_up(void **state)
{
	pid_t pid = fork();

	if (!pid)
		leave();
	while (state_of(pid) != 'Z')
		usleep(1000);
	*state = (void *)(intptr_t)pid;
	return 0;
}

static int tear_down(void **state)
{
	pid_t pid = (pid_t)(intptr_t)*state;

	kill(pid, SIGKILL);
	return waitpid(pid, NULL, 0) == pid ? 0 : -1;
}

static void the_process_is_read(void **state)
{
	pid_t pid = (pid_t)(intptr_t)*state, living = rls_living_thread(pid);
	char path[RLS_PROCESS_PATH_BYTES], expected[RLS_PROCESS_PATH_BYTES], found[sizeof(mark)];
	const struct rls_mapping *mapping;
	struct rls_mappings mappings;
	char *file = NULL;
	dev_t device;
	ino_t inode;
	int fd;

	assert_true(living > 0 && living != pid);
	rls_process_path(path, pid, "maps");
	snprintf(expected, sizeof(expected), "/proc/%d/maps", living);
	assert_string_equal(path, expected);
	assert_int_equal(rls_mappings_read(pid, &mappings), 0);
	mapping = rls_mappings_at(&mappings, (uint64_t)(uintptr_t)mark);
	assert_non_null(mapping);
	assert_int_equal(rls_mapping_locate(pid, mapping, &file, &device, &inode), 0);
	assert_int_equal(access(file, R_OK), 0);
	free(file);
	rls_mappings_release(&mappings);
	assert_int_equal(rls_live_read(pid, (uint64_t)(uintptr_t)mark, found, sizeof(found)), 0);
	assert_memory_equal(found, mark, sizeof(mark));
	fd = rls_target_file_open(pid, "/proc/version");
	assert_true(fd >= 0);
	close(fd);
}

static void others_are_themselves(void **state)
{
	pid_t zombie = fork();

	if (!zombie)
		_exit(0);
	while (state_of(zombie) != 'Z')
		usleep(1000);
	assert_int_equal(rls_living_thread(getpid()), getpid());
	assert_int_equal(rls_living_thread(zombie), zombie);
	waitpid(zombie, NULL, 0);
	assert_int_equal(rls_living_thread(zombie), zombie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_process_is_read, set_up, tear_down),
		cmocka_unit_test(others_are_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
