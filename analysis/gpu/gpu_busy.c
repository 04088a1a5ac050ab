#include "analysis/gpu/gpu_busy.h"

#define WINDOWS_PER_S 6
#define NS_PER_S 1000000000

static uint64_t windows_begun(uint64_t ns)
{
	return (uint64_t)(((unsigned __int128)ns * WINDOWS_PER_S + NS_PER_S - 1) / NS_PER_S);
}

void rls_smi_windows_add(struct rls_smi_windows *windows, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t first = (uint64_t)((unsigned __int128)start_ns * WINDOWS_PER_S / NS_PER_S);
	uint64_t end = windows_begun(end_ns);

	if (end_ns <= start_ns)
		return;
	if (first < windows->next)
		first = windows->next;
	if (end <= first)
		return;
	windows->busy += end - first;
	windows->next = end;
}

double rls_smi_windows_percent(const struct rls_smi_windows *windows, uint64_t life_ns)
{
	uint64_t count = windows_begun(life_ns);
	uint64_t busy = windows->busy;

	if (!count)
		return 0;
	/* What runs on past the end began before it, so every window beyond is a busy one. */
	if (windows->next > count)
		busy -= windows->next - count;
	return 100.0 * (double)busy / (double)count;
}
