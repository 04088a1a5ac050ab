/* fake_monitor [CONFIG]: presents made-up snapshots as the monitor does its own, without the
 * kernel: the url on stdout, SIGHUP reloads, SIGTERM ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/metrics/snapshot_maker.h"
#include "userspace/base/clock.h"
#include "userspace/metrics/presenter.h"

static int publish(struct rls_presenter *presenter, uint64_t step)
{
	struct rls_snapshot snapshot = *snapshot_make(step);

	snapshot.time_ns = rls_monotonic_ns();
	return rls_presenter_publish(presenter, &snapshot);
}

static int serve(struct rls_presenter *presenter)
{
	char url[RLS_PRESENTER_URL_BYTES];
	sigset_t signals;

	if (publish(presenter, 1))
		return EXIT_FAILURE;
	printf("%s\n", rls_presenter_url(presenter, url));
	fflush(stdout);

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	for (uint64_t step = 2;; step++) {
		uint64_t interval_ns = rls_presenter_interval_ns(presenter);
		struct timespec wait = {.tv_sec = (time_t)(interval_ns / 1000000000),
					.tv_nsec = (long)(interval_ns % 1000000000)};

		switch (sigtimedwait(&signals, NULL, &wait)) {
		case SIGTERM:
			return EXIT_SUCCESS;
		case SIGHUP:
			printf("%s\n", rls_presenter_reload(presenter) ? "kept" : "reloaded");
			fflush(stdout);
		}
		if (publish(presenter, step))
			return EXIT_FAILURE;
	}
}

int main(int argc, char **argv)
{
	const struct rls_monitor_config given = {0};
	struct rls_presenter *presenter;
	sigset_t signals;
	int status;

	sigemptyset(&signals);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	if (rls_presenter_open(argc > 1 ? argv[1] : NULL, &given, &presenter))
		return EXIT_FAILURE;
	status = serve(presenter);
	rls_presenter_free(presenter);
	return status;
}
