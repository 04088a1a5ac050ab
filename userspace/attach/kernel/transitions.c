#include "userspace/attach/kernel/transitions.h"

#include <errno.h>
#include <sys/mman.h>

/* The writers look at what is read before each event: to tell them of each record would have that line of memory go
 * to and fro between CPUs. */
#define REPORT_EACH 64

int rls_transitions_map(int fd, size_t count, uint64_t *ends, struct rls_transitions *out)
{
	void *places =
		mmap(NULL, count * sizeof(struct rls_wire_place), PROT_READ, MAP_SHARED, fd, 0);

	if (places == MAP_FAILED)
		return -errno;
	*out = (struct rls_transitions){.places = places, .count = count, .ends = ends};
	return 0;
}

void rls_transitions_unmap(struct rls_transitions *transitions)
{
	if (transitions->places)
		munmap((void *)(uintptr_t)transitions->places,
		       transitions->count * sizeof(*transitions->places));
	*transitions = (struct rls_transitions){0};
}

uint64_t rls_transitions_end(const struct rls_transitions *transitions)
{
	return __atomic_load_n(&transitions->ends[RLS_END_TAKEN], __ATOMIC_ACQUIRE);
}

static void transitions_report(struct rls_transitions *transitions, uint64_t position)
{
	__atomic_store_n(&transitions->ends[RLS_END_READ], position, __ATOMIC_RELEASE);
}

int rls_transitions_read(struct rls_transitions *transitions, uint64_t end_position,
			 int (*handler)(void *context, const struct rls_wire_category *event),
			 void *context)
{
	uint64_t position = transitions->ends[RLS_END_READ]; /* ours alone to write */
	int r = 0;

	if (transitions->reading)
		return 0;
	transitions->reading = true;
	while (!r && position < end_position) {
		const struct rls_wire_place *place =
			&transitions->places[position & (transitions->count - 1)];
		uint64_t turn = __atomic_load_n(&place->turn, __ATOMIC_ACQUIRE);

		if (turn <= position)
			break;
		if (turn == ++position)
			r = handler(context, &place->event);
		else
			transitions->overwritten++;
		if (position % REPORT_EACH == 0)
			transitions_report(transitions, position);
	}
	transitions_report(transitions, position);
	transitions->reading = false;
	return r;
}
