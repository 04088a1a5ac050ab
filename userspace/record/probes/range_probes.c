#include "userspace/record/probes/range_probes.h"

#include <string.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/base/log.h"
#include "userspace/base/jitter.h"

/* Whose ranges there are is known after so long, and so many of PyTorch's. */
#define LISTEN_NS 2000000000ULL
#define LISTEN_RANGES 50
/* That there will be no others is not: it is listened for so long first, and then so long each time. */
#define LISTEN_FIRST_NS 10000000000ULL
#define LISTEN_AGAIN_NS 250000000ULL
#define DOZE_NS_MIN 1000000000ULL
#define DOZE_NS_MAX 3500000000ULL
/* So many of PyTorch's a second, for each percent of the budget, are a twentieth of it. */
#define MANY_A_PERCENT 80.0

static void cannot_hear(int error)
{
	rls_warning("ranges (record_function, NVTX) are not seen any more: %s", strerror(-error));
}

static void hear_ends(struct rls_range_hearing *hearing, struct rls_kernel *kernel, bool heard)
{
	int r = rls_kernel_hear_range_ends(kernel, heard);

	if (r)
		cannot_hear(r);
	else
		rls_debug(heard ? "somebody has ranges: their ends are probed again" :
				  "all ranges are PyTorch's own: their ends are not probed");
	hearing->ends_unheard = !heard;
}

static void hear_begins(struct rls_range_hearing *hearing, struct rls_kernel *kernel, bool heard)
{
	int r = rls_kernel_hear_range_begins(kernel, heard);

	if (r)
		cannot_hear(r);
	hearing->begins_unheard = !heard;
}

static void settle(struct rls_range_hearing *hearing, struct rls_kernel *kernel, uint64_t time_ns)
{
	hearing->settled = true;
	if (hearing->ends_unheard)
		hear_ends(hearing, kernel, true);
	if (hearing->begins_unheard)
		hear_begins(hearing, kernel, true);
	if (hearing->dozed_ns)
		rls_warning("ranges of the program's own (record_function) begin now: in the last %.0f s they were listened "
			    "for a tenth of the time, so earlier ones may be missing",
			    (double)(time_ns - hearing->dozed_ns) / 1e9);
}

/* own: how many of PyTorch's there are so far. */
static void listen(struct rls_range_hearing *hearing, struct rls_kernel *kernel, uint64_t own,
		   uint64_t time_ns, uint64_t span_ns)
{
	if (hearing->begins_unheard)
		hear_begins(hearing, kernel, true);
	hearing->from_ns = time_ns;
	hearing->own = own;
	hearing->due_ns = time_ns + span_ns;
}

static void doze(struct rls_range_hearing *hearing, struct rls_kernel *kernel, uint64_t time_ns)
{
	hear_begins(hearing, kernel, false);
	hearing->due_ns = time_ns + rls_random_between(&hearing->random, DOZE_NS_MIN, DOZE_NS_MAX);
	if (!hearing->dozed_ns) {
		hearing->dozed_ns = time_ns;
		rls_info("PyTorch's own ranges are many: others (record_function) are listened for now and then from here on");
	}
}

static void listen_or_doze(struct rls_range_hearing *hearing, struct rls_kernel *kernel, uint64_t own,
			   uint64_t time_ns, double budget_percent)
{
	double seconds = (double)(time_ns - hearing->from_ns) / 1e9;
	bool many = (double)(own - hearing->own) > MANY_A_PERCENT * budget_percent * seconds;

	if (time_ns < hearing->due_ns)
		return;
	if (many && !hearing->begins_unheard)
		doze(hearing, kernel, time_ns);
	else
		listen(hearing, kernel, own, time_ns, LISTEN_AGAIN_NS);
}

void rls_range_hearing_tick(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns, double budget_percent)
{
	uint64_t own, others;

	if (hearing->settled)
		return;
	rls_kernel_ranges_begun(kernel, &own, &others);
	if (!hearing->since_ns) {
		hearing->since_ns = time_ns;
		hearing->random = time_ns | 1;
		listen(hearing, kernel, own, time_ns, LISTEN_FIRST_NS);
	}
	if (others)
		settle(hearing, kernel, time_ns);
	else if (!hearing->ends_unheard && own >= LISTEN_RANGES &&
		 time_ns > hearing->since_ns + LISTEN_NS)
		hear_ends(hearing, kernel, false);
	else if (hearing->ends_unheard)
		listen_or_doze(hearing, kernel, own, time_ns, budget_percent);
}

void rls_range_hearing_wake(struct rls_range_hearing *hearing, struct rls_kernel *kernel,
			    uint64_t time_ns)
{
	uint64_t own, others;

	if (hearing->settled || !hearing->since_ns)
		return;
	rls_kernel_ranges_begun(kernel, &own, &others);
	listen(hearing, kernel, own, time_ns, LISTEN_FIRST_NS);
}
