/* One process's life with the bridge, played through with the fakes: what test_bridge runs,
 * each in a process of its own.
 */
#ifndef RLS_TESTS_SCENARIO_H
#define RLS_TESTS_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

#include "collector.h"
#include "sink.h"
#include "tests/cupti_bridge/fakes/fake_calls.h"

struct scenario {
	const char *name;
	void (*play)(void);
};

/* Ended by one without a name. */
extern const struct scenario record_scenarios[];
extern const struct scenario life_scenarios[];
extern const struct scenario conflict_scenarios[];

extern struct fake_calls cuda;
extern const struct fake_kernel kernels[4]; /* rls_fake_kernel_0 ..., each of its duration */

/* Loads the bridge (RLS_BRIDGE), so that what it sends comes to the collector. */
void bridge_load(sink_receiver receiver);
void bridge_watch(unsigned int watchers);
/* Loads the fakes and makes the first call, in which the bridge is injected. */
void cuda_start(void);

uint64_t now_ns(void);
/* A minute: nothing takes so long, however busy the machine is. */
#define PATIENCE_NS 60000000000ull

/* Waits, for PATIENCE_NS at most, until the bridge has said this, or has delivered all that ended
 * before now. */
void wait_for_status(enum rls_cupti_status status);
void wait_for_all(void);
/* The same, until it has said more than so many things. */
void wait_for_more(unsigned int statuses);
/* Turns away and looks again, until the bridge has seen that and said this. */
void watch_anew(enum rls_cupti_status status);
/* The same, until CUPTI has left for the so many-th time. A call that waits for the GPU must come before. */
void wait_for_leave(unsigned long times);

/* A thread's launches by cudaLaunchKernel, on a stream of its own. Each is checked for its
 * interval by launches_check: one interval, the right thread, name, duration and order. */
struct launches {
	unsigned long count;
	unsigned int thread;
	int tid;
	uint32_t *correlations;
};
void launches_make(struct launches *launches, unsigned long count);
void launches_check(const struct launches *launches);
void launches_free(struct launches *launches);

/* So many threads with as many launches each, made and waited for. */
void launches_by_threads(struct launches *launches, unsigned int threads, unsigned long count);

void *cupti_function(const char *name);
unsigned long cupti_calls(void); /* made to it */
unsigned long cupti_stored(void); /* records that it wrote */
unsigned long cupti_dropped(void);
unsigned long cupti_left(void); /* how many times it has left the process */
unsigned long setting(const char *name, unsigned long otherwise);

#endif
