#include <errno.h>
#include <fcntl.h>
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

#include <jansson.h>

#include <cmocka.h>

#include "analysis/base/string_pool.h"
#include "userspace/base/proc_stat.h"
#include "userspace/record/targets/cgroup.h"
#include "userspace/record/targets/process_info.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* ---- containers ---- */

static void assert_container(const char *cgroup, const char *expected)
{
	char container[80] = "untouched";

	rls_container_of_cgroup(cgroup, container, sizeof(container));
	assert_string_equal(container, expected);
}

static void containers_of_each_engine(void **state)
{
	/* Docker, cgroup v2 by systemd, v2 by cgroupfs, v1. */
	assert_container("0::/system.slice/docker-" ID ".scope\n", ID);
	assert_container("0::/docker/" ID "\n", ID);
	assert_container("12:pids:/docker/" ID "\n11:memory:/docker/" ID "\n"
			 "1:name=systemd:/docker/" ID "\n0::/system.slice/containerd.service\n",
			 ID);
	/* Kubernetes: containerd, CRI-O, Docker; by systemd and by cgroupfs. */
	assert_container("0::/kubepods.slice/kubepods-burstable.slice/"
			 "kubepods-burstable-pod1b2c3d4e_1111_2222_3333_444455556666.slice/"
			 "cri-containerd-" ID ".scope\n",
			 ID);
	assert_container(
		"0::/kubepods.slice/kubepods-pod1b2c3d4e_1111_2222_3333_444455556666.slice/"
		"crio-" ID ".scope\n",
		ID);
	assert_container(
		"4:cpu:/kubepods/besteffort/pod1b2c3d4e-1111-2222-3333-444455556666/" ID "\n", ID);
	assert_container("0::/system.slice/containerd.service/"
			 "kubepods-burstable-pod1b2c.slice:cri-containerd:" ID "\n",
			 ID);
	/* Podman, rootless too; nerdctl; a short id. */
	assert_container("0::/machine.slice/libpod-" ID ".scope/container\n", ID);
	assert_container("0::/user.slice/user-1000.slice/user@1000.service/user.slice/"
			 "libpod-" ID ".scope\n",
			 ID);
	assert_container("0::/system.slice/nerdctl-" ID ".scope\n", ID);
	assert_container("0::/system.slice/docker-0123456789ab.scope\n", "0123456789ab");
	/* systemd inside a container makes groups of its own. */
	assert_container("0::/docker/" ID "/system.slice/cron.service\n", ID);
	assert_container("0::/docker/" ID "/init.scope\n", ID);
	/* Docker in Docker: the innermost. */
	assert_container("0::/docker/ffffffffffffffff" ID "\n", "");
	assert_container("0::/system.slice/docker-aaaaaaaaaaaa.scope/docker/" ID "\n", ID);
}

static void the_host_is_no_container(void **state)
{
	assert_container("0::/\n", "");
	assert_container("0::/init.scope\n", "");
	assert_container("0::/system.slice/ssh.service\n", "");
	assert_container("0::/user.slice/user-1000.slice/session-3.scope\n", "");
	assert_container("0::/user.slice/user-1000.slice/user@1000.service/app.slice/"
			 "app-org.gnome.Terminal.slice/"
			 "vte-spawn-1b2c3d4e-1111-2222-3333-444455556666.scope\n",
			 "");
	assert_container("0::/system.slice/run-r0123456789abcdef0123456789abcdef.scope\n", "");
	assert_container("0::/system.slice/slurmstepd.scope/job_123456789012/step_0/user/task_0\n",
			 "");
	assert_container("4:cpu:/kubepods/pod1b2c3d4e-1111-2222-3333-444455556666\n", "");
	assert_container("0::/deadbeef\n", "");
	/* Ids that a host gives its own groups. */
	assert_container("4:memory:/sandbox/7dead26b900df84908e6a72637a6f2df\n0::/\n", "");
	assert_container("0::/0123456789ab\n", "");
	assert_container("0::/docker/0123456789ab\n", "");
	assert_container("0::/job-0123456789ab.scope\n", "");
	/* Podman's watcher of a container is outside it. */
	assert_container("0::/machine.slice/libpod-conmon-" ID ".scope\n", "");
}

static void hostile_cgroups_do_no_harm(void **state)
{
	char small[8];
	char *huge = malloc(65001);

	assert_container("", "");
	assert_container("\n\n\n", "");
	assert_container("////", "");
	assert_container(".scope", "");
	assert_container("0::/.scope\n", "");
	assert_container("0::/xscope\n", "");
	assert_container("0::/docker-.scope", "");
	assert_container("0::/\xff\xfe/" ID "\xff\n", "");
	assert_container(ID, ID);
	assert_container("/docker-" ID "0.scope", "");
	rls_container_of_cgroup("0::/docker/" ID "\n", small, sizeof(small));
	assert_string_equal(small, "0123456");

	assert_non_null(huge);
	memset(huge, 'a', 65000);
	huge[65000] = '\0';
	assert_container(huge, "");
	for (size_t i = 0; i < 65000; i += 65)
		huge[i] = '/';
	assert_container(huge, huge + 65000 - 64);
	free(huge);
}

static void cgroups_hold_what_is_below_them(void **state)
{
	const char *text = "4:memory:/other\n0::/jobs.slice/train.service/worker\n";

	assert_true(rls_cgroup_is_within(text, "/jobs.slice/train.service/worker"));
	assert_true(rls_cgroup_is_within(text, "/jobs.slice/train.service"));
	assert_true(rls_cgroup_is_within(text, "/jobs.slice"));
	assert_true(rls_cgroup_is_within(text, "/"));
	assert_false(rls_cgroup_is_within(text, "/jobs"));
	assert_false(rls_cgroup_is_within(text, "/jobs.slice/train"));
	assert_false(rls_cgroup_is_within(text, "/jobs.slice/train.service/worker/1"));
	assert_false(rls_cgroup_is_within(text, "/train.service"));
	assert_false(rls_cgroup_is_within(text, "/other"));
	assert_false(rls_cgroup_is_within("4:memory:/jobs\n", "/"));
	assert_false(rls_cgroup_is_within("", "/"));
	assert_true(rls_cgroup_is_within("0::/", "/"));
	assert_false(rls_cgroup_is_within("0::", "/jobs"));
}

/* ---- processes made for the purpose ---- */

/* A child that runs work and then waits to be killed. */
static pid_t spawn(void (*work)(int ready))
{
	int pipes[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipes), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(pipes[1]);
		for (;;)
			pause();
	}
	assert_true(pid > 0);
	assert_int_equal(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	close(pipes[1]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void signal_ready(int ready)
{
	if (write(ready, "x", 1) != 1)
		_exit(1);
}

static void reads_itself(void **state)
{
	struct rls_process_info info;
	char comm[17] = "";
	json_t *words;

	prctl(PR_GET_NAME, comm);
	assert_int_equal(rls_process_info_read(getpid(), &info), 0);
	assert_string_equal(info.name, comm);
	assert_int_equal(info.ppid, getppid());
	assert_true(info.ns_pid > 0);
	assert_non_null(info.container);
	words = json_loads(info.cmdline, 0, NULL);
	assert_true(json_array_size(words) >= 1);
	assert_non_null(strstr(json_string_value(json_array_get(words, 0)), "test_process_info"));
	json_decref(words);
	rls_process_info_clear(&info);
	assert_null(info.name);
	rls_process_info_clear(&info);
}

/* A name that imitates a line of /proc/PID/status. */
static void take_a_hostile_name(int ready)
{
	prctl(PR_SET_NAME, "PPid:\t1\nNSpid:");
	signal_ready(ready);
}

static void a_name_does_not_pass_for_a_line(void **state)
{
	pid_t pid = spawn(take_a_hostile_name);
	struct rls_process_info info;

	assert_int_equal(rls_process_info_read(pid, &info), 0);
	assert_string_equal(info.name, "PPid:\t1");
	assert_int_equal(info.ppid, getpid());
	assert_int_equal(info.ns_pid, pid);
	rls_process_info_clear(&info);
	end(pid);
}

/* A program with the given arguments: the NULL-terminated words. */
static pid_t spawn_program(char *const words[])
{
	int pipes[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execv("/bin/sh", words);
		_exit(1);
	}
	assert_true(pid > 0);
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &byte, 1), 0); /* closed by exec */
	close(pipes[0]);
	return pid;
}

static void command_lines_are_json_whatever_is_in_them(void **state)
{
	char *words[] = {"sh", "-c", "sleep 60; :", "a \"b\"\n", "\xff\xfe", "", NULL};
	pid_t pid = spawn_program(words);
	struct rls_process_info info;
	char *beforehand;

	assert_int_equal(rls_process_info_read(pid, &info), 0);
	assert_string_equal(info.cmdline, "[\"sh\",\"-c\",\"sleep 60; :\",\"a \\\"b\\\"\\n\","
					  "\"\xef\xbf\xbd\",\"\"]");
	assert_int_equal(rls_process_words(words, &beforehand), 0);
	assert_string_equal(beforehand, info.cmdline);
	free(beforehand);
	rls_process_info_clear(&info);
	end(pid);
}

static void long_command_lines_stay_json_that_a_trace_can_hold(void **state)
{
	char word[2001], *words[40] = {"sh", "-c", "sleep 60; :"};
	struct rls_process_info info;
	char *beforehand;
	const char *cut;
	json_t *array;
	pid_t pid;

	memset(word, '\001', sizeof(word) - 1); /* six bytes each as JSON */
	memcpy(word + 511, "\xe2\x82\xac", 3); /* a character across the cut */
	word[sizeof(word) - 1] = '\0';
	for (size_t i = 3; i < 39; i++)
		words[i] = word;
	pid = spawn_program(words);
	assert_int_equal(rls_process_info_read(pid, &info), 0);
	assert_true(strlen(info.cmdline) <= RLS_STRING_BYTES_MAX);
	assert_int_equal(rls_process_words(words, &beforehand), 0);
	assert_string_equal(beforehand, info.cmdline);
	free(beforehand);
	array = json_loads(info.cmdline, 0, NULL);
	assert_true(json_is_array(array));
	assert_int_equal(json_array_size(array), 5);
	cut = json_string_value(json_array_get(array, 3));
	assert_int_equal(strlen(cut), 511 + 3);
	assert_string_equal(cut + 511, "\xe2\x80\xa6");
	assert_string_equal(json_string_value(json_array_get(array, 4)), "\xe2\x80\xa6");
	json_decref(array);
	rls_process_info_clear(&info);
	end(pid);
}

/* ---- who is there ---- */

static void only_living_processes_exist(void **state)
{
	struct rls_process_info info;
	siginfo_t ended;
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	assert_int_equal(rls_process_exists(pid), -ESRCH); /* a zombie */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(rls_process_exists(pid), -ESRCH);
	assert_int_equal(rls_process_info_read(pid, &info), -ESRCH);
	assert_int_equal(rls_process_exists(getpid()), 0);
	assert_int_equal(rls_process_exists(0), -ESRCH);
	assert_int_equal(rls_process_exists(-1), -ESRCH);
}

static void words_are_counted_behind_the_name(void **state)
{
	static const char text[] = "7 (a) S 1 (b) R 5 6";

	assert_string_equal(rls_stat_word(text, 3), "R 5 6");
	assert_string_equal(rls_stat_word(text, 5), "6");
	assert_null(rls_stat_word(text, 6));
	assert_null(rls_stat_word("7", 3));
}

static void ages_are_since_the_start(void **state)
{
	uint64_t own_ns = 0, child_ns = 0, first_ns = 0;
	pid_t pid;

	assert_int_equal(rls_process_age(getpid(), &own_ns), 0);
	usleep(30000);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	assert_int_equal(rls_process_age(pid, &child_ns), 0);
	assert_int_equal(rls_process_age(getpid(), &own_ns), 0);
	assert_int_equal(rls_process_age(1, &first_ns), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* In steps of a clock tick, 10 ms. */
	assert_true(child_ns + 10000000 < own_ns);
	assert_true(own_ns < first_ns);
	assert_int_equal(rls_process_age(pid, &child_ns), -ESRCH);
}

static void *ask_about_own_number(void *out)
{
	*(int *)out = rls_process_exists((pid_t)syscall(SYS_gettid));
	return NULL;
}

static void a_threads_number_is_no_process(void **state)
{
	pthread_t thread;
	int answer = 0;

	assert_int_equal(pthread_create(&thread, NULL, ask_about_own_number, &answer), 0);
	pthread_join(thread, NULL);
	assert_int_equal(answer, -ESRCH);
}

/* Two children, one with a child of its own and a zombie. */
static void make_family(int ready)
{
	siginfo_t ended;
	pid_t dead;

	prctl(PR_SET_NAME, "PPid:\t1");
	spawn(signal_ready);
	dead = fork();
	if (!dead)
		_exit(0);
	if (waitid(P_PID, (id_t)dead, &ended, WEXITED | WNOWAIT))
		_exit(1);
	signal_ready(ready);
}

struct visits {
	pid_t pids[16];
	size_t count;
	size_t stop_after;
};

static int visit(pid_t pid, void *context)
{
	struct visits *visits = context;

	assert_true(visits->count < 16);
	visits->pids[visits->count++] = pid;
	return visits->count == visits->stop_after ? -EINTR : 0;
}

static void descendants_parents_first(void **state)
{
	pid_t family = spawn(make_family), single = spawn(signal_ready);
	struct visits visits = {.stop_after = 0};
	struct rls_process_info info;

	assert_int_equal(rls_each_descendant(getpid(), visit, &visits), 0);
	assert_int_equal(visits.count, 3);
	assert_true((visits.pids[0] == family && visits.pids[1] == single) ||
		    (visits.pids[0] == single && visits.pids[1] == family));
	assert_int_equal(rls_process_info_read(visits.pids[2], &info), 0);
	assert_int_equal(info.ppid, family);
	rls_process_info_clear(&info);

	visits = (struct visits){.stop_after = 2};
	assert_int_equal(rls_each_descendant(getpid(), visit, &visits), -EINTR);
	assert_int_equal(visits.count, 2);
	visits = (struct visits){.stop_after = 0};
	assert_int_equal(rls_each_descendant(single, visit, &visits), 0);
	assert_int_equal(visits.count, 0);
	end(family);
	end(single);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(containers_of_each_engine),
		cmocka_unit_test(the_host_is_no_container),
		cmocka_unit_test(hostile_cgroups_do_no_harm),
		cmocka_unit_test(cgroups_hold_what_is_below_them),
		cmocka_unit_test(reads_itself),
		cmocka_unit_test(a_name_does_not_pass_for_a_line),
		cmocka_unit_test(command_lines_are_json_whatever_is_in_them),
		cmocka_unit_test(long_command_lines_stay_json_that_a_trace_can_hold),
		cmocka_unit_test(only_living_processes_exist),
		cmocka_unit_test(words_are_counted_behind_the_name),
		cmocka_unit_test(ages_are_since_the_start),
		cmocka_unit_test(a_threads_number_is_no_process),
		cmocka_unit_test(descendants_parents_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
