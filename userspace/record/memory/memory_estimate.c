#include "userspace/record/memory/memory_estimate.h"

#include <math.h>

/* Of a window at least so much was the program's own. */
#define OWN_SHARE 0.01
/* What probes have taken may be so many times more or less than is thought. */
#define SLOWED_FACTOR 2

/* What is left of a window for the program. */
static double own_ns(const struct rls_memory_window *window, double slowed_ns)
{
	double whole_ns = (double)(window->close_ns - window->open_ns);

	return fmax(whole_ns - slowed_ns, OWN_SHARE * whole_ns);
}

void rls_memory_estimate_window(struct rls_memory_estimate *estimate,
				const struct rls_memory_window *window, uint64_t allocs,
				uint64_t bytes)
{
	double length_ns = (double)(window->close_ns - estimate->until_ns);
	double window_ns, gap_ns, allocs_per_ns, bytes_per_ns, change;

	if (window->open_ns < estimate->until_ns || window->close_ns <= window->open_ns)
		return;
	window_ns = own_ns(window, window->slowed_ns);
	gap_ns = (double)(window->open_ns - estimate->until_ns);
	allocs_per_ns = (double)allocs / window_ns;
	bytes_per_ns = (double)bytes / window_ns;
	change = bytes_per_ns - estimate->bytes_per_ns;
	if (estimate->windows) {
		estimate->changes2 += change * change;
		estimate->allocs += gap_ns * (estimate->allocs_per_ns + allocs_per_ns) / 2;
		estimate->bytes += gap_ns * (estimate->bytes_per_ns + bytes_per_ns) / 2;
	} else { /* what was before may have been a beginning */
		estimate->first_change2 = change * change;
		estimate->allocs += gap_ns * allocs_per_ns;
		estimate->bytes += gap_ns * bytes_per_ns;
	}
	estimate->windows++;
	estimate->allocs += allocs_per_ns * (double)(window->close_ns - window->open_ns);
	estimate->bytes += bytes_per_ns * (double)(window->close_ns - window->open_ns);
	estimate->allocs_per_ns = allocs_per_ns;
	estimate->bytes_per_ns = bytes_per_ns;
	estimate->correction_error += (double)bytes * length_ns / 2 *
				      (1 / own_ns(window, SLOWED_FACTOR * window->slowed_ns) -
				       1 / own_ns(window, window->slowed_ns / SLOWED_FACTOR));
	estimate->lengths2 += length_ns * length_ns;
	estimate->until_ns = window->close_ns;
}

void rls_memory_estimate_end(struct rls_memory_estimate *estimate, uint64_t end_ns)
{
	double length_ns = (double)end_ns - (double)estimate->until_ns;

	if (length_ns <= 0)
		return;
	estimate->allocs += estimate->allocs_per_ns * length_ns;
	estimate->bytes += estimate->bytes_per_ns * length_ns;
	estimate->lengths2 += length_ns * length_ns;
	if (!estimate->windows) /* all of it may be wrong */
		estimate->first_change2 = estimate->bytes_per_ns * estimate->bytes_per_ns;
	estimate->until_ns = end_ns;
}

double rls_memory_estimate_error(const struct rls_memory_estimate *estimate)
{
	double variance = estimate->first_change2;

	if (estimate->windows > 1)
		variance = estimate->changes2 / (2 * ((double)estimate->windows - 1));
	return hypot(sqrt(variance * estimate->lengths2), estimate->correction_error);
}
