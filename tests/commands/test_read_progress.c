/* The line that says how far a trace is read: on a terminal only, and gone at the end. */
#include <fcntl.h>
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/commands/shared/read_progress.h"

#define EVENTS 40000

struct slow_source {
	struct rls_event_source source;
	unsigned int given;
	bool freed;
};

/* Half of the events come at once, then it takes a while. */
static int next(struct rls_event_source *source, struct rls_event *out)
{
	struct slow_source *slow = (struct slow_source *)source;

	if (slow->given == EVENTS / 2)
		nanosleep(&(struct timespec){.tv_sec = 1, .tv_nsec = 100000000}, NULL);
	if (slow->given == EVENTS) {
		source->damaged = true;
		return 0;
	}
	slow->given++;
	memset(out, 0, sizeof(*out));
	return 1;
}

static double share(const struct rls_event_source *source)
{
	return (double)((const struct slow_source *)source)->given / EVENTS;
}

static void release(struct rls_event_source *source)
{
	((struct slow_source *)source)->freed = true;
}

static struct slow_source slow_source(void)
{
	return (struct slow_source){.source = {.next = next, .share = share, .free = release}};
}

static void test_line(void **unused)
{
	char line[RLS_READ_PROGRESS_BYTES];

	assert_string_equal(rls_read_progress_line(line, 0.25, 3000000, 2000000000),
			    "reading a trace: 25 %, 1.5 million events/s, 6 s left");
	assert_string_equal(rls_read_progress_line(line, 0, 10, 1000000000),
			    "reading a trace: 0 %, 0.0 million events/s");
	assert_string_equal(rls_read_progress_line(line, -1, 10000000, 4000000000),
			    "reading a trace: 2.5 million events/s");
	assert_true(strlen(rls_read_progress_line(line, 1, UINT64_MAX, 0)) <
		    RLS_READ_PROGRESS_BYTES);
}

/* Reads the source to its end with stderr on the descriptor; what was shown comes back. */
static void read_all(int on, struct slow_source *slow)
{
	int keep = dup(STDERR_FILENO);
	struct rls_event_source *source;
	struct rls_event event;
	unsigned int count = 0;

	assert_true(keep >= 0 && dup2(on, STDERR_FILENO) >= 0);
	source = rls_read_progress(&slow->source);
	while (source->next(source, &event) > 0)
		count++;
	assert_true(source->damaged);
	source->free(source);
	assert_true(dup2(keep, STDERR_FILENO) >= 0);
	close(keep);
	assert_int_equal(count, EVENTS);
	assert_true(slow->freed);
}

static void test_on_a_terminal(void **unused)
{
	struct slow_source slow = slow_source();
	char shown[1024] = "";
	size_t count = 0;
	int terminal, end;

	assert_int_equal(openpty(&terminal, &end, NULL, NULL, NULL), 0);
	read_all(end, &slow);
	/* A terminal hands over in pieces; without the end of the line this waits in vain. */
	while (count < 4 || strcmp(shown + count - 4, "\r\033[K")) {
		ssize_t got = read(terminal, shown + count, sizeof(shown) - 1 - count);

		assert_true(got > 0);
		count += (size_t)got;
		shown[count] = '\0';
	}
	assert_non_null(strstr(shown, "\rreading a trace: 82 %, "));
	assert_non_null(strstr(shown, "million events/s, "));
	close(terminal);
	close(end);
}

static void test_elsewhere(void **unused)
{
	struct slow_source slow = slow_source();
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int keep = dup(STDERR_FILENO);

	assert_true(nowhere >= 0 && keep >= 0);
	dup2(nowhere, STDERR_FILENO);
	assert_ptr_equal(rls_read_progress(&slow.source), &slow.source);
	dup2(keep, STDERR_FILENO);
	close(keep);
	close(nowhere);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_line),
		cmocka_unit_test(test_on_a_terminal),
		cmocka_unit_test(test_elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
