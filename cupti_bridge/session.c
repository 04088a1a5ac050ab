#include "cupti_bridge/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cupti_bridge/buffers.h"
#include "cupti_bridge/calls.h"
#include "cupti_bridge/leave.h"

#define SECOND_NS 1000000000ull
/* Times further off than these cannot be of this session's. */
#define PAST_NS (10 * SECOND_NS)
#define FUTURE_NS SECOND_NS
/* How long it waits for a chance to leave. Until then it holds CUPTI's only place. */
#define LEAVE_NS (10 * SECOND_NS)

/* Calls are switched on before all of these and off after them, so that no work is without its
 * call. Only the first one is required. CUPTI's own records of waits are not among them: they were
 * most of its cost (README.md), and the records of calls that wait contain the same. */
static const enum rls_activity_kind kinds[] = {
	RLS_ACTIVITY_CONCURRENT_KERNEL, RLS_ACTIVITY_MEMCPY,   RLS_ACTIVITY_MEMSET,
	RLS_ACTIVITY_MEMCPY_PEER,       RLS_ACTIVITY_OVERHEAD,
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

/* --- what is said ---------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) static void say(struct rls_session *session,
						      enum rls_cupti_status status, uint64_t value,
						      const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(session->sentence, sizeof(session->sentence), format, arguments);
	va_end(arguments);
	session->status = status;
	session->status_value = value;
	rls_session_repeat_status(session);
}

void rls_session_repeat_status(struct rls_session *session)
{
	rls_sender_add_status(&session->sender, session->status, session->status_value,
			      rls_clock_now_ns(), session->sentence);
	rls_sender_send(&session->sender);
}

/* --- switching on ----------------------------------------------------------------------- */

static void switch_call_off(uint32_t cbid, void *context)
{
	int (*const *set)(uint32_t cbid, uint8_t is_on) = context;

	(*set)(cbid, 0); /* one that this version does not know is refused */
}

/* All of them, and then the many that tell nothing off again, where CUPTI can (else decoding leaves
 * them out). Not the few on, one by one: once CUDA runs, CUPTI 13.0 then records none of them. The
 * kind going off and on again forgets which were off, so that other tools see all. */
static void switch_calls_on(struct rls_cupti *cupti)
{
	cupti->enable(RLS_ACTIVITY_RUNTIME);
	cupti->enable(RLS_ACTIVITY_DRIVER);
	if (!cupti->enable_runtime_call || !cupti->enable_driver_call)
		return;
	rls_calls_visit_others(RLS_CUPTI_RUNTIME, switch_call_off, &cupti->enable_runtime_call);
	rls_calls_visit_others(RLS_CUPTI_DRIVER, switch_call_off, &cupti->enable_driver_call);
}

static void switch_calls_off(const struct rls_cupti *cupti)
{
	cupti->disable(RLS_ACTIVITY_RUNTIME);
	cupti->disable(RLS_ACTIVITY_DRIVER);
}

/* Returns CUPTI's result for the kernels; `missing` is how many other kinds it refused. */
static int switch_kinds_on(struct rls_session *session, unsigned int *missing)
{
	struct rls_cupti *cupti = &session->cupti;
	int result;

	*missing = 0;
	switch_calls_on(cupti);
	result = cupti->enable(kinds[0]);
	if (result) {
		switch_calls_off(cupti);
		return result;
	}
	for (size_t i = 1; i < KINDS; i++)
		*missing += cupti->enable(kinds[i]) != 0;
	if (session->may_trace_whole_graphs && !session->traces_whole_graphs) {
		session->traces_whole_graphs = !cupti->enable(RLS_ACTIVITY_GRAPH_TRACE);
		*missing += !session->traces_whole_graphs;
	}
	return 0;
}

/* Whole graphs stay on: with them off again, or on only after a graph was made, CUPTI 13.0.1 has
 * the next launch of one end the process by SIGSEGV (seen on an H100). */
static void switch_kinds_off(struct rls_session *session)
{
	for (size_t i = 0; i < KINDS; i++)
		session->cupti.disable(kinds[i]);
	switch_calls_off(&session->cupti);
}

/* The order is CUPTI's: thread numbers and clock before any kind. */
static int prepare(struct rls_session *session)
{
	const struct rls_cupti *cupti = &session->cupti;
	int result = cupti->get_thread_id_type(&session->foreign_thread_id_type);

	if (!result)
		result = cupti->set_thread_id_type(RLS_CUPTI_THREAD_ID_SYSTEM);
	rls_clock_lend(true);
	if (!result)
		result = cupti->register_clock(rls_clock_for_cupti);
	rls_buffers_set_walk(cupti->next_record);
	if (!result)
		result = cupti->register_buffers(rls_buffers_requested, rls_buffers_completed);
	return result;
}

/* Gives back what can be given back but the place: the thread numbers and the default clock. */
static void session_restore(struct rls_session *session)
{
	session->cupti.set_thread_id_type(session->foreign_thread_id_type);
	rls_clock_lend(false);
}

static void release(struct rls_session *session)
{
	session_restore(session);
	session->cupti.unsubscribe(session->subscriber);
}

/* Is CUPTI's clock ours, as far as it can be asked? A reading that does not follow the clock
 * that we have just registered says nothing about records, and is not passed on. */
static bool read_clock(struct rls_session *session)
{
	struct rls_cupti_batch *header = &session->sender.header;
	struct rls_clock_reading reading;

	if (rls_clock_read(session->cupti.get_timestamp, &reading) || !rls_clock_is_ours(&reading))
		return false;
	header->clock_ns = reading.clock_ns;
	header->clock_cupti_ns = reading.cupti_ns;
	header->clock_width_ns = reading.width_ns;
	return true;
}

static bool find_cupti(struct rls_session *session)
{
	int error;

	if (session->cupti.version)
		return true;
	error = rls_cupti_find(&session->cupti);
	if (!error) {
		session->sender.header.cupti_version = session->cupti.version;
		return true;
	}
	if (error == -ENOTSUP)
		say(session, RLS_CUPTI_NO_CUPTI, 0,
		    "the libcupti of this process is not CUDA 11.8's or newer: %s",
		    session->cupti.path);
	else
		say(session, RLS_CUPTI_NO_CUPTI, 0,
		    "no libcupti for this process's CUDA: none is loaded, none beside libcudart, "
		    "and none where the loader looks");
	session->cupti.version = 0;
	return false;
}

/* What the results that there are without a device, or with too old a driver, may mean. */
static const char *hint(int result)
{
	return result == 15 || result == 999
		       ? ", as it does without a GPU, and with a driver older than itself"
		       : "";
}

/* After a refusal CUPTI may not be called any more, by its own rules. The subscriber holds CUPTI's only place; it
 * requests no callbacks until CUPTI shall leave. */
static bool subscribe(struct rls_session *session)
{
	int result = session->cupti.subscribe(&session->subscriber, rls_leave_callback, NULL);

	if (result == RLS_CUPTI_RESULT_SLOT_TAKEN)
		say(session, RLS_CUPTI_SLOT_TAKEN, result,
		    "another tool holds CUPTI in this process (a framework's own profiler, or "
		    "NVIDIA's tools), and only one can");
	else if (result)
		say(session, RLS_CUPTI_FAILED, result, "CUPTI refused a subscriber (code %d)%s",
		    result, hint(result));
	return !result;
}

void rls_session_arm(struct rls_session *session)
{
	unsigned int missing;
	int result;

	if (!rls_driver_is_loaded()) {
		if (session->status != RLS_CUPTI_NO_DRIVER)
			say(session, RLS_CUPTI_NO_DRIVER, 0, "libcuda is not loaded (yet)");
		return;
	}
	rls_session_stay(session);
	if (!find_cupti(session) || !subscribe(session))
		return;
	if (session->traces_whole_graphs) {
		session->cupti.flush_all(0);
		rls_session_discard();
	}
	result = prepare(session);
	session->earliest_ns = rls_clock_now_ns();
	session->earliest_ns -= session->earliest_ns > PAST_NS ? PAST_NS : 0;
	memset(&session->launches, 0, sizeof(session->launches));
	session->has_refused_buffer = false;
	session->unfinished = 0;
	session->sender.header.clock_ns = 0;
	session->sender.header.clock_cupti_ns = 0;
	session->sender.header.clock_width_ns = 0;
	session->can_watch_clock = !result && read_clock(session);
	if (!result)
		result = switch_kinds_on(session, &missing);
	if (result) {
		release(session);
		say(session, RLS_CUPTI_FAILED, result, "CUPTI would not record kernels (code %d)%s",
		    result, hint(result));
		return;
	}
	session->is_armed = true;
	say(session, RLS_CUPTI_ARMED, session->cupti.version, "CUPTI %u of %s%s%s",
	    session->cupti.version, session->cupti.path,
	    missing ? "; it does not record all kinds that were asked for" : "",
	    session->wants_whole_graphs && !session->traces_whole_graphs
		    ? "; graphs by node, since as a whole they can be recorded from cuInit on only"
		    : "");
}

/* --- what is delivered --------------------------------------------------------------------- */

typedef void (*record_taker)(struct rls_session *session, const struct rls_cupti_record *record,
			     const char *name, enum rls_decoded decoded);

static void note_launch(struct rls_session *session, const struct rls_cupti_record *record,
			const char *name, enum rls_decoded decoded)
{
	if (decoded != RLS_DECODED)
		return;
	/* By its call too: what it put on the GPU may be lost, or not have ended yet. */
	if (record->graph || record->graph_node ||
	    (record->kind == RLS_CUPTI_API &&
	     rls_call_launches_graph(record->subkind, record->value)))
		session->has_graphs = true;
	if (record->kind == RLS_CUPTI_API)
		rls_launch_history_add(&session->launches, record);
}

/* A call that waits is a wait, too: of nested ones, and where another tool has CUPTI record waits, the first to come. */
static void send_wait(struct rls_session *session, const struct rls_cupti_record *call)
{
	const struct rls_cupti_record wait = {
		.kind = RLS_CUPTI_SYNC,
		.subkind = rls_call_waits(call->subkind, call->value),
		.correlation = call->correlation,
		.start_ns = call->start_ns,
		.end_ns = call->end_ns,
	};

	if (wait.subkind && rls_launch_history_claim_wait(&session->launches, call))
		rls_sender_add(&session->sender, &wait, NULL);
}

static void send(struct rls_session *session, const struct rls_cupti_record *record,
		 const char *name)
{
	if (record->kind == RLS_CUPTI_SYNC &&
	    !rls_launch_history_claim_wait(&session->launches, record))
		return;
	rls_sender_add(&session->sender, record, name);
	if (record->kind == RLS_CUPTI_API)
		send_wait(session, record);
}

static void pass_on(struct rls_session *session, const struct rls_cupti_record *record,
		    const char *name, enum rls_decoded decoded)
{
	struct rls_cupti_batch *totals = &session->sender.header;

	if (decoded == RLS_DECODE_SKIPPED)
		return;
	if (decoded == RLS_DECODE_UNKNOWN)
		totals->unclaimed++;
	else if (decoded == RLS_DECODE_SHORT)
		totals->unpooled++;
	else if (session->is_ending && rls_record_is_work(record) &&
		 !(record->start_ns && record->end_ns))
		session->unfinished++;
	else if (!rls_record_is_possible(record, session->earliest_ns, session->latest_ns) ||
		 (rls_record_is_work(record) &&
		  rls_launch_history_forbid(&session->launches, record)))
		totals->refused++;
	else
		send(session, record, name);
}

/* Returns what ended the walk early, or 0. */
static int session_visit(struct rls_session *session, const struct rls_buffer *buffer,
			 record_taker take)
{
	struct rls_walk walk = {.next = session->cupti.next_record,
				.buffer = buffer->bytes,
				.valid_bytes = buffer->valid_bytes};
	const uint8_t *bytes;
	size_t length;

	while (rls_walk_step(&walk, &bytes, &length) > 0) {
		struct rls_cupti_record record;
		const char *name = NULL;
		enum rls_decoded decoded = rls_record_decode(bytes, length, &record, &name);

		take(session, &record, name, decoded);
	}
	return walk.error ? walk.result : 0;
}

static void refuse_rest(struct rls_session *session, int result)
{
	session->sender.header.unpooled++;
	if (session->has_refused_buffer)
		return;
	session->has_refused_buffer = true;
	rls_sender_add_status(&session->sender, RLS_CUPTI_FAILED, result, rls_clock_now_ns(),
			      "CUPTI could not read on in a buffer of its own: what was left in it "
			      "is lost");
}

/* Calls first, and then work: their buffers come in any order. For the same reason nothing is
 * read without a flush, which brings the calls of the work that fills a buffer. */
static void session_drain(struct rls_session *session)
{
	static struct rls_buffer *taken[RLS_BUFFERS_MAX];
	size_t count = rls_buffers_take(taken);

	session->latest_ns = rls_clock_now_ns() + FUTURE_NS;
	for (size_t i = 0; i < count; i++)
		session_visit(session, taken[i], note_launch);
	for (size_t i = 0; i < count; i++) {
		int result = session_visit(session, taken[i], pass_on);

		if (result)
			refuse_rest(session, result);
	}
	rls_buffers_give_back(taken, count);
}

/* CUPTI's own losses, asked for only once kernels could be enabled: before that some versions
 * crash. With ours, which lie under `unpooled`. */
static void count_losses(struct rls_session *session)
{
	static uint64_t reported;
	uint64_t lost = rls_buffers_lost();
	size_t dropped = 0;

	if (!session->cupti.get_dropped(NULL, 0, &dropped))
		session->sender.header.dropped += dropped;
	session->sender.header.unpooled += lost - reported;
	reported = lost;
}

static void deliver(struct rls_session *session, uint32_t flag)
{
	uint64_t flushed_ns = rls_clock_now_ns();

	session->cupti.flush_all(flag);
	session_drain(session);
	count_losses(session);
	session->sender.header.flushed_ns = flushed_ns;
	rls_sender_send(&session->sender);
}

/* Callbacks and clock are the process's: who comes last has them. What the other tool wants
 * recorded too stays on; it will switch it off itself. */
static void yield_to_thief(struct rls_session *session)
{
	session->is_armed = false;
	session->cupti.disable(RLS_ACTIVITY_MEMCPY_PEER);
	rls_clock_lend(false);
	session->cupti.unsubscribe(session->subscriber);
	say(session, RLS_CUPTI_STOLEN, 0,
	    "another tool (a framework's own profiler?) took CUPTI's clock and buffers over: no "
	    "GPU records from then on");
}

void rls_session_flush(struct rls_session *session)
{
	if (session->can_watch_clock && !read_clock(session))
		yield_to_thief(session);
	else
		deliver(session, 0);
}

/* --- switching off ------------------------------------------------------------------------- */

/* CUPTI goes on with whole graphs, where it was asked for them, until the process ends. Where its clock says nothing of who
 * has it, it stays. */
static void let_go(struct rls_session *session)
{
	session->is_leaving = session->wants_to_leave && !session->has_graphs &&
			      !session->traces_whole_graphs && session->can_watch_clock &&
			      rls_leave_is_possible(&session->cupti);
	if (!session->is_leaving) {
		release(session);
		return;
	}
	session_restore(session);
	session->leave_by_ns = rls_clock_now_ns() + LEAVE_NS;
	rls_leave_begin(&session->cupti, session->subscriber);
}

void rls_session_stay(struct rls_session *session)
{
	if (session->is_leaving && rls_leave_cancel(&session->cupti, session->subscriber))
		session->cupti.unsubscribe(session->subscriber);
	session->is_leaving = false;
}

void rls_session_check_leave(struct rls_session *session)
{
	if (session->is_leaving &&
	    (rls_leave_is_over() || rls_clock_now_ns() >= session->leave_by_ns))
		rls_session_stay(session);
}

void rls_session_disarm(struct rls_session *session)
{
	switch_kinds_off(session);
	deliver(session, 0);
	session->is_ending = true;
	deliver(session, RLS_CUPTI_FLUSH_FORCED);
	session->is_ending = false;
	let_go(session);
	session->is_armed = false;
	rls_buffers_trim();
	say(session, RLS_CUPTI_DISARMED, session->unfinished,
	    "disarmed; %" PRIu64 " pieces of work had not ended", session->unfinished);
}

void rls_session_discard(void)
{
	static struct rls_buffer *taken[RLS_BUFFERS_MAX];

	rls_buffers_give_back(taken, rls_buffers_take(taken));
	rls_buffers_trim();
}

void rls_session_abandon(struct rls_session *session)
{
	session->is_armed = false;
	memset(&session->sender, 0, sizeof(session->sender));
	rls_sender_add_status(&session->sender, RLS_CUPTI_FORKED, 0, rls_clock_now_ns(),
			      "forked from a process that used CUDA, in which CUDA does not work");
	rls_sender_send(&session->sender);
}
