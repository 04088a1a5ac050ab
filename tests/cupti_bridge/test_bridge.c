/* The bridge's life with the fakes: each scenario in a process of its own, which says what is
 * not so. Built three times: plain, with AddressSanitizer, with ThreadSanitizer.
 *
 *     test_bridge FAKES SCENARIO-PROGRAM JOB-PROGRAM BRIDGE KIND
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_S 400
#define SETTINGS_MAX 4
#define LEAVE "RLSCOPE_CUPTI_LEAVE", "1"
#define ROOM 4096

static const char *fakes, *scenario_program, *job_program, *bridge;
static bool is_plain;

struct run {
	const char *scenario;
	const char *cuda; /* version of the fakes */
	const char *settings[2 * SETTINGS_MAX + 1]; /* name, value ... for the environment */
	bool plain_only; /* a sanitizer would see nothing here that it does not see elsewhere */
};

static void set_environment(const struct run *run)
{
	char path[ROOM];

	snprintf(path, sizeof(path), "%s/%s", fakes, run->cuda);
	setenv("LD_LIBRARY_PATH", path, 1);
	setenv("CUDA_INJECTION64_PATH", bridge, 1);
	if (!is_plain) { /* ten times slower, and here for what they see, not how much */
		setenv("LAUNCHES", "8000", 1);
		setenv("ROUNDS", "8", 1);
		/* The loader's lists are under a lock of its own, which the sanitizer does not see. */
		setenv("TSAN_OPTIONS", "atexit_sleep_ms=0:suppressions=" SUPPRESSIONS, 1);
	}
	for (int i = 0; run->settings[i]; i += 2)
		setenv(run->settings[i], run->settings[i + 1], 1);
	alarm(PATIENCE_S); /* survives exec: what hangs ends */
}

static int run_program(const struct run *run, char *const *arguments)
{
	pid_t child = fork();
	int status = -1;

	assert_true(child >= 0);
	if (!child) {
		set_environment(run);
		execv(arguments[0], arguments);
		_exit(127);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

static void play(void **state)
{
	const struct run *run = *state;
	char *arguments[] = {(char *)scenario_program, (char *)run->scenario, NULL};

	if (run->plain_only && !is_plain)
		skip();
	assert_int_equal(run_program(run, arguments), 0);
}

/* --- whole programs --------------------------------------------------------------------- */

/* exit() with threads that launch, at thirty moments. */
static void exits_at_any_moment(void **state)
{
	/* Threads that run at the end cannot be stopped to look for leaks. */
	const struct run run = {
		.cuda = "13",
		.settings = {"RLS_SINK_WATCHERS", "1", "ASAN_OPTIONS", "detect_leaks=0"}};
	int runs = is_plain ? 30 : 8;

	for (int i = 0; i < runs; i++) {
		char linger[16];
		char *arguments[] = {(char *)job_program,
				     "--threads=3",
				     "--launches=100000000",
				     "--exit-at-once",
				     "--linger-ms",
				     linger,
				     NULL};

		snprintf(linger, sizeof(linger), "%d", i * 60 / runs);
		assert_int_equal(run_program(&run, arguments), 0);
	}
}

/* Killed it leaves nothing to be cleaned up, and so nothing to test but that _exit works. */
static void preloaded(void **state)
{
	char file[] = "/tmp/rls-sink-XXXXXX";
	struct run run = {.cuda = "13",
			  .settings = {"LD_PRELOAD", bridge, "RLS_SINK_WATCHERS", "1",
				       "RLS_SINK_FILE", file, "CUDA_INJECTION64_PATH", ""}};
	char *shell[] = {"/bin/sh",
			 "-c",
			 "unset CUDA_INJECTION64_PATH; exec \"$0\" \"$@\"",
			 (char *)job_program,
			 "--launches=100",
			 NULL};
	char *other[] = {"/bin/sh", "-c",
			 "unset CUDA_INJECTION64_PATH; exec grep Threads:.1$ "
			 "/proc/self/status >/dev/null",
			 NULL};
	struct stat before, after;

	if (!is_plain)
		skip(); /* a sanitizer's runtime must be loaded first */
	assert_true(mkstemp(file) >= 0);
	assert_int_equal(run_program(&run, other), 0);
	assert_int_equal(stat(file, &before), 0);
	assert_int_equal(before.st_size, 0); /* not a CUDA program: not a word */
	assert_int_equal(run_program(&run, shell), 0);
	assert_int_equal(stat(file, &after), 0);
	assert_true(after.st_size > 100 * 3 * 64);
	unlink(file);
}

/* --- all ---------------------------------------------------------------------------------- */

static struct run runs[] = {
	{.scenario = "every-launch",
	 .cuda = "13",
	 .settings = {"LAUNCHES", "1000000"},
	 .plain_only = true},
	{.scenario = "every-launch", .cuda = "11.8", .plain_only = true},
	{.scenario = "every-launch", .cuda = "12", .plain_only = true},
	{.scenario = "every-launch", .cuda = "13"},
	{.scenario = "every-launch", .cuda = "13", .settings = {"FAKE_CUPTI_REVERSE", "1"}},
	{.scenario = "all-kinds", .cuda = "11.8", .plain_only = true},
	{.scenario = "all-kinds", .cuda = "12", .plain_only = true},
	{.scenario = "all-kinds", .cuda = "13"},
	{.scenario = "all-kinds", .cuda = "13", .settings = {"RLSCOPE_CUPTI_WHOLE_GRAPHS", "1"}},
	{.scenario = "dropped", .cuda = "13", .settings = {"FAKE_CUPTI_DROP", "7"}},
	{.scenario = "impossible",
	 .cuda = "11.8",
	 .settings = {"FAKE_CUPTI_ZERO", "10"},
	 .plain_only = true},
	{.scenario = "impossible", .cuda = "12", .settings = {"FAKE_CUPTI_BACKWARD", "10"}},
	{.scenario = "impossible",
	 .cuda = "13",
	 .settings = {"FAKE_CUPTI_FUTURE", "10"},
	 .plain_only = true},
	{.scenario = "impossible", .cuda = "13", .settings = {"FAKE_CUPTI_EARLY", "10"}},
	{.scenario = "impossible",
	 .cuda = "13",
	 .settings = {"FAKE_CUPTI_EARLY", "10", "FAKE_CUPTI_REVERSE", "1"}},
	{.scenario = "starved", .cuda = "13", .plain_only = true},
	{.scenario = "idle", .cuda = "13"},
	{.scenario = "again-and-again", .cuda = "13"},
	{.scenario = "again-and-again",
	 .cuda = "11.8",
	 .settings = {"ROUNDS", "30"},
	 .plain_only = true},
	{.scenario = "leaves", .cuda = "13", .settings = {LEAVE}},
	{.scenario = "leaves-no-more", .cuda = "13", .settings = {LEAVE}},
	{.scenario = "leaves-under-load", .cuda = "13", .settings = {LEAVE}},
	{.scenario = "never-leaves", .cuda = "13"},
	{.scenario = "never-leaves", .cuda = "11.8", .settings = {LEAVE}, .plain_only = true},
	{.scenario = "never-leaves", .cuda = "12", .settings = {LEAVE}},
	{.scenario = "never-leaves", .cuda = "13", .settings = {LEAVE, "FAKE_CUPTI_STAYS", "1"}},
	{.scenario = "never-leaves",
	 .cuda = "13",
	 .settings = {LEAVE, "RLSCOPE_CUPTI_WHOLE_GRAPHS", "1"}},
	{.scenario = "never-leaves-graphs", .cuda = "13", .settings = {LEAVE}},
	{.scenario = "whole-graphs-again",
	 .cuda = "13",
	 .settings = {"RLSCOPE_CUPTI_WHOLE_GRAPHS", "1"}},
	{.scenario = "whole-graphs-late",
	 .cuda = "13",
	 .settings = {"RLSCOPE_CUPTI_WHOLE_GRAPHS", "1"}},
	{.scenario = "under-load", .cuda = "13"},
	{.scenario = "second-profiler", .cuda = "13"},
	{.scenario = "forks", .cuda = "13"},
	{.scenario = "exits", .cuda = "12", .plain_only = true},
	{.scenario = "exits", .cuda = "13"},
	{.scenario = "signals", .cuda = "13"},
	{.scenario = "refused",
	 .cuda = "13",
	 .settings = {"FAKE_CUPTI_SLOT_TAKEN", "1", "STATUS", "5", "CODE", "39"}},
	{.scenario = "refused",
	 .cuda = "12",
	 .settings = {"FAKE_CUPTI_ENABLE", "35", "STATUS", "7", "CODE", "35"},
	 .plain_only = true},
	{.scenario = "refused",
	 .cuda = "11.8",
	 .settings = {"FAKE_CUPTI_VERSION", "17", "STATUS", "4"}},
	{.scenario = "no-device",
	 .cuda = "11.8",
	 .settings = {"FAKE_CUDA_NO_DEVICE", "1"},
	 .plain_only = true},
	{.scenario = "no-device", .cuda = "13", .settings = {"FAKE_CUDA_NO_DEVICE", "1"}},
	{.scenario = "no-driver", .cuda = "13"},
	{.scenario = "slot-shared", .cuda = "13"},
	{.scenario = "stolen", .cuda = "11.8", .plain_only = true},
	{.scenario = "stolen", .cuda = "13"},
	{.scenario = "stolen-while-leaving", .cuda = "13", .settings = {LEAVE}},
};
#define RUNS (sizeof(runs) / sizeof(*runs))

static void add_runs(struct CMUnitTest *tests, char (*names)[128])
{
	for (size_t i = 0; i < RUNS; i++) {
		snprintf(names[i], sizeof(names[i]), "%s, CUDA %s", runs[i].scenario, runs[i].cuda);
		for (int j = 0; runs[i].settings[j]; j += 2)
			snprintf(names[i] + strlen(names[i]), sizeof(names[i]) - strlen(names[i]),
				 ", %s=%s", runs[i].settings[j], runs[i].settings[j + 1]);
		tests[i] = (struct CMUnitTest){
			.name = names[i], .test_func = play, .initial_state = &runs[i]};
	}
}

int main(int argc, char **argv)
{
	static char names[RUNS][128];
	static struct CMUnitTest tests[RUNS + 2];

	if (argc != 6) {
		fprintf(stderr, "usage: %s FAKES SCENARIO-PROGRAM JOB-PROGRAM BRIDGE KIND\n",
			argv[0]);
		return 2;
	}
	fakes = argv[1];
	scenario_program = argv[2];
	job_program = argv[3];
	bridge = argv[4];
	is_plain = !strcmp(argv[5], "plain");
	add_runs(tests, names);
	tests[RUNS] = (struct CMUnitTest)cmocka_unit_test(exits_at_any_moment);
	tests[RUNS + 1] = (struct CMUnitTest)cmocka_unit_test(preloaded);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
