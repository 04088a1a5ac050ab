#include "tests/analysis/breakdown/reference.h"

#include <string.h>

static const char *const names[REFERENCE_NAMES] = {"", "a", "b", "c"};

const char *reference_name(int index)
{
	return names[index];
}

static int name_index(const struct script *script, rls_string_id id)
{
	const char *text = rls_string_pool_get(script->strings, id);

	for (int i = 0; i < REFERENCE_NAMES; i++) {
		if (!strcmp(names[i], text))
			return i;
	}
	return 0;
}

static bool is_thread_event(const struct rls_event *event)
{
	switch (event->kind) {
	case RLS_EVENT_THREAD:
	case RLS_EVENT_CATEGORY:
	case RLS_EVENT_OPERATION:
	case RLS_EVENT_LAUNCH:
	case RLS_EVENT_HITS:
	case RLS_EVENT_OFF_CPU:
		return true;
	default:
		return false;
	}
}

/* The event of a kind in force at an instant, or NULL. */
static const struct rls_event *in_force(const struct script *script, enum rls_event_kind kind,
					uint32_t pid, uint32_t tid, uint64_t at)
{
	const struct rls_event *latest = NULL;

	for (size_t i = 0; i < script->count; i++) {
		const struct rls_event *event = &script->events[i];

		if (event->kind == kind && event->pid == pid && event->tid == tid &&
		    event->time_ns <= at && (!latest || event->time_ns > latest->time_ns))
			latest = event;
	}
	return latest;
}

struct life {
	uint64_t start, end; /* start > end: never seen */
};

static struct life life_of(const struct script *script, uint32_t pid, uint32_t tid)
{
	struct life life = {UINT64_MAX, UINT64_MAX};

	for (size_t i = 0; i < script->count; i++) {
		const struct rls_event *event = &script->events[i];
		bool ends = event->kind == RLS_EVENT_END ||
			    (event->kind == RLS_EVENT_PROCESS_END && event->pid == pid) ||
			    (event->kind == RLS_EVENT_THREAD_END && event->pid == pid &&
			     event->tid == tid);

		if (ends && event->time_ns < life.end)
			life.end = event->time_ns;
		if (is_thread_event(event) && event->pid == pid && event->tid == tid &&
		    event->time_ns < life.start)
			life.start = event->time_ns;
	}
	return life;
}

static bool gpu_busy(const struct script *script, uint32_t pid, uint64_t at)
{
	for (size_t i = 0; i < script->count; i++) {
		const struct rls_event *event = &script->events[i];

		if (event->kind == RLS_EVENT_GPU && event->pid == pid &&
		    event->gpu.kind != RLS_GPU_SYNC && event->time_ns <= at &&
		    at < event->gpu.end_ns)
			return true;
	}
	return false;
}

static int phase_at(const struct script *script, uint32_t pid, uint64_t at)
{
	const struct rls_event *event = in_force(script, RLS_EVENT_PHASE, pid, 0, at);

	return event ? name_index(script, event->phase.phase) : 0;
}

static int operation_at(const struct script *script, uint32_t pid, uint32_t tid, uint64_t at)
{
	const struct rls_event *event = in_force(script, RLS_EVENT_OPERATION, pid, tid, at);

	if (!event || !event->operation.depth)
		return 0;
	return name_index(script, event->operation.stack[event->operation.depth - 1]);
}

static enum rls_category category_at(const struct script *script, uint32_t pid, uint32_t tid,
				     uint64_t at)
{
	const struct rls_event *event = in_force(script, RLS_EVENT_CATEGORY, pid, tid, at);

	return event ? event->category.category : RLS_CATEGORY_UNKNOWN;
}

struct place {
	const struct script *script;
	struct reference *out;
	uint32_t pid, tid;
	struct life life;
};

static struct reference_cell *cell_at(const struct place *place, uint64_t at)
{
	return &place->out->cells[place->pid - 1][place->tid - 1]
				 [phase_at(place->script, place->pid, at)]
				 [operation_at(place->script, place->pid, place->tid, at)]
				 [category_at(place->script, place->pid, place->tid, at)];
}

/* The last report of this or the category kind before an instant, or the life's start. */
static uint64_t mark_before(const struct place *place, enum rls_event_kind kind, uint64_t at)
{
	uint64_t mark = place->life.start;

	for (size_t i = 0; i < place->script->count; i++) {
		const struct rls_event *event = &place->script->events[i];

		if ((event->kind == kind || event->kind == RLS_EVENT_CATEGORY) &&
		    event->pid == place->pid && event->tid == place->tid && event->time_ns < at &&
		    event->time_ns > mark)
			mark = event->time_ns;
	}
	return mark;
}

/* Reports in order of time, instants backwards from each. */
static void deal_out(const struct place *place, enum rls_event_kind kind)
{
	bool taken[REFERENCE_TIMES] = {false};

	for (uint64_t t = place->life.start; t <= place->life.end; t++) {
		const struct rls_event *event =
			in_force(place->script, kind, place->pid, place->tid, t);
		uint64_t left, mark;

		if (!event || event->time_ns != t)
			continue;
		left = kind == RLS_EVENT_HITS ? event->hits.cost_ns : event->off_cpu.ns;
		mark = mark_before(place, kind, t);
		for (uint64_t at = t; at-- > mark && left;) {
			if (taken[at])
				continue;
			if (kind == RLS_EVENT_HITS && gpu_busy(place->script, place->pid, at))
				continue;
			taken[at] = true;
			left--;
			if (kind == RLS_EVENT_HITS)
				cell_at(place, at)->subtracted++;
			else
				cell_at(place, at)->off_cpu++;
		}
	}
}

static void count_transitions(const struct place *place)
{
	for (size_t i = 0; i < place->script->count; i++) {
		const struct rls_event *event = &place->script->events[i];
		uint64_t at = event->time_ns;
		enum rls_category from, to;

		if (event->kind != RLS_EVENT_CATEGORY || event->pid != place->pid ||
		    event->tid != place->tid || at > place->life.end)
			continue;
		from = at ? category_at(place->script, place->pid, place->tid, at - 1)
			  : RLS_CATEGORY_UNKNOWN;
		to = event->category.category;
		if (from == to || !from || !to)
			continue;
		place->out->transitions[place->pid - 1][place->tid - 1][phase_at(
			place->script, place->pid, at)][operation_at(place->script, place->pid,
								     place->tid, at)][from][to]++;
	}
}

static void sample_thread(const struct place *place)
{
	for (uint64_t at = place->life.start; at < place->life.end; at++)
		cell_at(place, at)->wall[gpu_busy(place->script, place->pid, at)]++;
	deal_out(place, RLS_EVENT_HITS);
	deal_out(place, RLS_EVENT_OFF_CPU);
	count_transitions(place);
}

/* Whether this work was launched in a phase and operation: "" and "" for no launch. */
static bool launched_in(const struct script *script, const struct rls_event *gpu, int phase,
			int operation)
{
	for (size_t i = 0; i < script->count; i++) {
		const struct rls_event *event = &script->events[i];

		if (event->kind == RLS_EVENT_LAUNCH && event->pid == gpu->pid &&
		    event->launch.correlation == gpu->gpu.correlation && gpu->gpu.correlation)
			return phase_at(script, event->pid, event->time_ns) == phase &&
			       operation_at(script, event->pid, event->tid, event->time_ns) ==
				       operation;
	}
	return !phase && !operation;
}

static bool launched_busy(const struct script *script, uint32_t pid, int phase, int operation,
			  uint64_t at)
{
	for (size_t i = 0; i < script->count; i++) {
		const struct rls_event *event = &script->events[i];

		if (event->kind == RLS_EVENT_GPU && event->pid == pid &&
		    event->gpu.kind != RLS_GPU_SYNC && event->time_ns <= at &&
		    at < event->gpu.end_ns && launched_in(script, event, phase, operation))
			return true;
	}
	return false;
}

static void sample_gpu(const struct script *script, struct reference *out, uint32_t pid)
{
	for (uint64_t at = 0; at < REFERENCE_TIMES; at++) {
		bool attended = false;

		for (uint32_t tid = 1; tid <= REFERENCE_TIDS; tid++) {
			struct life life = life_of(script, pid, tid);

			attended = attended || (life.start <= at && at < life.end);
		}
		for (int phase = 0; phase < REFERENCE_NAMES; phase++) {
			for (int operation = 0; operation < REFERENCE_NAMES; operation++)
				out->launched[pid - 1][phase][operation] +=
					launched_busy(script, pid, phase, operation, at);
		}
		if (!gpu_busy(script, pid, at))
			continue;
		out->busy[pid - 1]++;
		if (!attended)
			out->gpu_alone[pid - 1][phase_at(script, pid, at)]++;
	}
}

void reference_compute(const struct script *script, struct reference *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t pid = 1; pid <= REFERENCE_PIDS; pid++) {
		for (uint32_t tid = 1; tid <= REFERENCE_TIDS; tid++) {
			struct place place = {script, out, pid, tid, life_of(script, pid, tid)};

			if (place.life.start < place.life.end)
				sample_thread(&place);
		}
		sample_gpu(script, out, pid);
	}
}
