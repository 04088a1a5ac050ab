#include "cupti_bridge/leave.h"

#include <stdatomic.h>
#include <time.h>

#include "cupti_bridge/clock.h"

#define VERSION_LEAST 130000
#define SITE_EXIT 1
#define DOMAIN_DRIVER 1
#define DOMAIN_RUNTIME 2
#define POLL_NS 1000000

/* Of CUpti_CallbackData, the beginning. */
struct callback_data {
	uint32_t site;
	const char *name;
	const void *arguments;
	const int *result; /* where the call ends */
};

/* Calls after which nothing is under way on some stream, by CUPTI's numbers. */
static const struct {
	int domain;
	uint32_t cbid;
} waits[] = {
	{DOMAIN_RUNTIME, 131}, /* cudaStreamSynchronize */
	{DOMAIN_RUNTIME, 165}, /* cudaDeviceSynchronize */
	{DOMAIN_RUNTIME, 239}, /* cudaStreamSynchronize_ptsz */
	{DOMAIN_DRIVER, 17}, /* cuCtxSynchronize */
	{DOMAIN_DRIVER, 126}, /* cuStreamSynchronize */
	{DOMAIN_DRIVER, 440}, /* cuStreamSynchronize_ptsz */
};
#define WAITS (sizeof(waits) / sizeof(*waits))

enum state {
	STAYS,
	IS_TO_LEAVE,
	IS_LEAVING, /* by a thread of the target's */
	HAS_LEFT,
};

static atomic_int state;
static const struct rls_cupti *leaving; /* set before IS_TO_LEAVE is */

bool rls_leave_is_possible(const struct rls_cupti *cupti)
{
	return cupti->version >= VERSION_LEAST && cupti->finalize && cupti->enable_callback;
}

/* A tool that asks for no place of CUPTI's may have begun to record meanwhile: by its own clock, as such tools do. */
static bool is_anothers(void)
{
	uint64_t before = rls_clock_for_cupti(), cupti_ns = 0;

	return leaving->get_timestamp(&cupti_ns) || cupti_ns < before ||
	       cupti_ns > rls_clock_for_cupti();
}

void rls_leave_callback(void *userdata, int domain, uint32_t cbid, const void *data)
{
	const struct callback_data *call = data;
	int expected = IS_TO_LEAVE;

	if (call->site != SITE_EXIT || !call->result || *call->result)
		return;
	if (!atomic_compare_exchange_strong(&state, &expected, IS_LEAVING))
		return;
	atomic_store(&state, is_anothers() || leaving->finalize() ? STAYS : HAS_LEFT);
}

static void trace_waits(const struct rls_cupti *cupti, void *subscriber, uint32_t is_on)
{
	for (size_t i = 0; i < WAITS; i++)
		cupti->enable_callback(is_on, subscriber, waits[i].domain, waits[i].cbid);
}

/* No call to CUPTI may be under way when one is: they are asked for first. */
void rls_leave_begin(const struct rls_cupti *cupti, void *subscriber)
{
	leaving = cupti;
	trace_waits(cupti, subscriber, 1);
	atomic_store(&state, IS_TO_LEAVE);
}

bool rls_leave_is_over(void)
{
	int now = atomic_load(&state);

	return now == STAYS || now == HAS_LEFT;
}

bool rls_leave_cancel(const struct rls_cupti *cupti, void *subscriber)
{
	const struct timespec poll = {.tv_nsec = POLL_NS};
	int expected = IS_TO_LEAVE;

	atomic_compare_exchange_strong(&state, &expected, STAYS);
	while (atomic_load(&state) == IS_LEAVING)
		nanosleep(&poll, NULL);
	if (atomic_load(&state) == HAS_LEFT)
		return false;
	trace_waits(cupti, subscriber, 0);
	return true;
}
