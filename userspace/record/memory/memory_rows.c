#include "userspace/record/memory/memory_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "analysis/event/bounded.h"
#include "analysis/event/event_fields.h"
#include "userspace/attach/kernel/kernel_memory.h"
#include "userspace/record/events/annotation_reader.h"
#include "userspace/record/memory/memory_row_table.h"

#define WAIT_NS 1000000000ULL

int rls_memory_rows_new(struct rls_kernel *kernel, struct rls_interpreters *interpreters,
			const struct rls_translator *translator, struct rls_event_output *output,
			struct rls_memory_rows **out)
{
	struct rls_memory_rows *rows = calloc(1, sizeof(*rows));

	if (!rows)
		return -ENOMEM;
	*rows = (struct rls_memory_rows){
		.kernel = kernel,
		.interpreters = interpreters,
		.translator = translator,
		.output = output,
		.lines = rls_kernel_memory_lines(kernel),
		.places = calloc(RLS_MEMORY_LINES, sizeof(struct rls_memory_row_place))};
	if (!rows->places) {
		free(rows);
		return -ENOMEM;
	}
	*out = rows;
	return 0;
}

void rls_memory_rows_free(struct rls_memory_rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < rows->count; i++) {
		free(rows->rows[i].freed);
		free(rows->rows[i].living);
	}
	free(rows->rows);
	free(rows->places);
	rls_index_map_free(&rows->by_key);
	rls_memory_row_clock_drop(rows, 0);
	rls_index_map_free(&rows->clock_of);
	free(rows);
}

/* ---- rows ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static bool is_row(const struct rls_block_row *row, uint32_t pid, const struct rls_memory_line *of)
{
	return row->pid == pid && row->of.file == of->file && row->of.function == of->function &&
	       row->of.line == of->line && row->of.source == of->source &&
	       row->of.device == of->device && row->of.operation == of->operation &&
	       row->of.phase == of->phase;
}

/* Whether there is a row of this key: its number. Else where it would be in by_key. Digests of different keys may be
 * equal: then the next one is taken. */
static bool known_row(const struct rls_memory_rows *rows, uint32_t pid,
		      const struct rls_memory_line *of, uint64_t digest[2], uint32_t *out)
{
	digest[0] = mix(mix(pid, of->file), (uint64_t)of->line << 32 | of->function);
	digest[1] = mix(mix(of->operation, of->phase), (uint64_t)of->source << 32 | of->device);
	for (;; digest[1]++) {
		uintptr_t known = (uintptr_t)rls_index_map_get(&rows->by_key, digest[0], digest[1]);

		if (!known)
			return false;
		if (is_row(&rows->rows[known - 1], pid, of)) {
			*out = (uint32_t)known - 1;
			return true;
		}
	}
}

static int index_row(struct rls_memory_rows *rows, const uint64_t digest[2], size_t number)
{
	return rls_index_map_put(&rows->by_key, digest[0], digest[1],
				 (void *)(number + 1)); /* NOLINT: a number */
}

static int find_row(struct rls_memory_rows *rows, uint32_t pid, const struct rls_memory_line *of,
		    uint32_t *out)
{
	uint64_t digest[2];
	int r;

	if (known_row(rows, pid, of, digest, out))
		return 0;
	r = rls_grow(&rows->rows, &rows->room, rows->count);
	if (!r)
		r = index_row(rows, digest, rows->count);
	if (r)
		return r;
	*out = (uint32_t)rows->count;
	rows->rows[rows->count++] = (struct rls_block_row){.pid = pid, .of = *of};
	if (rls_memory_rows_windowed(rows, of->source))
		rls_memory_row_window(rows, &rows->rows[*out]);
	return 0;
}

/* ---- naming ---- */

/* An operation or a phase, by the address of its name. What cannot be read any more has none. */
static int name_of(struct rls_memory_rows *rows, uint32_t pid, uint64_t address, rls_string_id *out)
{
	char text[RLS_NAME_BYTES];

	*out = 0;
	if (!address || rls_translator_name(rows->translator, pid, address, out))
		return 0;
	if (rls_annotation_reader_name((pid_t)pid, address, text) < 0)
		return 0;
	return rls_event_output_string(rows->output, text, out);
}

static int name_line(struct rls_memory_rows *rows, const struct rls_wire_memory_key *key,
		     struct rls_memory_line *out)
{
	const struct rls_wire_frame frame = {
		.code = key->code, .at = key->at, .identity = key->identity};
	struct rls_frame named;
	int r;

	if (!key->code)
		return 0;
	r = rls_interpreters_name(rows->interpreters, (pid_t)key->pid, &frame, &named);
	if (r == 1 || r == -ENOENT)
		return 0;
	if (r)
		return r;
	out->file = named.file;
	out->function = named.function;
	out->line = named.line;
	return 0;
}

/* Records of forks are on their way for a moment. */
static bool must_wait(const struct rls_memory_rows *rows, const struct rls_wire_memory_key *key,
		      struct rls_memory_row_place *place, uint64_t time_ns)
{
	if (!key->code || rls_interpreters_knows(rows->interpreters, (pid_t)key->pid))
		return false;
	if (!place->waits_ns)
		place->waits_ns = time_ns;
	return time_ns < place->waits_ns + WAIT_NS;
}

static int name_place(struct rls_memory_rows *rows, const struct rls_wire_memory_key *key,
		      struct rls_memory_row_place *place)
{
	struct rls_memory_line of = {.source = key->source, .device = key->device};
	uint32_t row;
	int r = name_line(rows, key, &of);

	if (!r)
		r = name_of(rows, key->pid, key->operation, &of.operation);
	if (!r)
		r = name_of(rows, key->pid, key->phase, &of.phase);
	if (!r)
		r = find_row(rows, key->pid, &of, &row);
	if (r)
		return r;
	place->row = row + 1;
	if (rows->rows[row].places++)
		rls_kernel_join_line(rows->kernel, (uint32_t)(place - rows->places),
				     rows->rows[row].place);
	rows->rows[row].place = (uint32_t)(place - rows->places);
	return 0;
}

static uint64_t place_count(const struct rls_memory_rows *rows)
{
	uint64_t count = rls_kernel_memory_count(rows->kernel, RLS_MEMORY_PLACES);

	return count < RLS_MEMORY_LINES ? count : RLS_MEMORY_LINES;
}

/* Its key is whole by the time something has been counted. */
static bool is_used(const volatile struct rls_wire_memory_line *line)
{
	return __atomic_load_n(&line->allocs, __ATOMIC_ACQUIRE) && line->key.pid;
}

int rls_memory_rows_name(struct rls_memory_rows *rows, pid_t last, uint64_t time_ns)
{
	uint64_t made = rls_kernel_memory_count(rows->kernel, RLS_MEMORY_MADE);
	int r = 0;

	for (size_t i = 0, count = place_count(rows); !r && rows->named < made && i < count; i++) {
		struct rls_wire_memory_key key;

		if (rows->places[i].row || !is_used(&rows->lines[i]))
			continue;
		key = *(const struct rls_wire_memory_key *)&rows->lines[i].key;
		if (last >= 0 && key.pid != (uint32_t)last &&
		    must_wait(rows, &key, &rows->places[i], time_ns))
			continue;
		r = name_place(rows, &key, &rows->places[i]);
		rows->named++;
	}
	return r;
}

/* ---- sums ---- */

/* What is freed is read first: it must never be more than what was allocated. */
static struct rls_memory_row_sums read_sums(const volatile struct rls_wire_memory_line *line)
{
	struct rls_memory_row_sums sums;

	sums.temporary_bytes = __atomic_load_n(&line->temporary_bytes, __ATOMIC_ACQUIRE);
	sums.freed_bytes = __atomic_load_n(&line->freed_bytes, __ATOMIC_ACQUIRE);
	sums.frees = __atomic_load_n(&line->frees, __ATOMIC_ACQUIRE);
	sums.allocs = __atomic_load_n(&line->allocs, __ATOMIC_ACQUIRE);
	sums.alloc_bytes = __atomic_load_n(&line->alloc_bytes, __ATOMIC_ACQUIRE);
	return sums;
}

static void add_difference(struct rls_memory_row_sums *to, const struct rls_memory_row_sums *now,
			   const struct rls_memory_row_sums *before)
{
	to->allocs += now->allocs - before->allocs;
	to->alloc_bytes += now->alloc_bytes - before->alloc_bytes;
	to->frees += now->frees - before->frees;
	to->freed_bytes += now->freed_bytes - before->freed_bytes;
	to->temporary_bytes += now->temporary_bytes - before->temporary_bytes;
}

static void take_place(struct rls_memory_rows *rows, size_t number)
{
	struct rls_memory_row_place *place = &rows->places[number];
	struct rls_block_row *row = &rows->rows[place->row - 1];
	struct rls_memory_row_sums now = read_sums(&rows->lines[number]);
	uint64_t peak_bytes = rows->lines[number].peak_bytes, live_bytes;

	if (!memcmp(&now, &place->seen, sizeof(now)))
		return;
	add_difference(row->windowed ? &row->window : &row->sums, &now, &place->seen);
	place->seen = now;
	if (row->windowed) /* until the window is over it is not known what it stands for */
		return;
	row->changed = true;
	live_bytes = row->sums.alloc_bytes - row->sums.freed_bytes;
	if (peak_bytes > row->peak_bytes)
		row->peak_bytes = peak_bytes;
	if (row->places > 1 && live_bytes > row->peak_bytes)
		row->peak_bytes = live_bytes;
}

static int emit_copies(struct rls_memory_rows *rows, struct rls_block_row *row, uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_COPY_LINE, row->pid, 0, time_ns);

	event.copy_line.of = row->of;
	event.copy_line.of.source = 0;
	event.copy_line.kind = RLS_COPY_H2H;
	event.copy_line.copies = row->sums.allocs;
	event.copy_line.bytes = row->sums.alloc_bytes;
	row->changed = false;
	return rls_event_output_add(rows->output, &event);
}

/* What others have reported is theirs; when the rest is freed nobody says. A block may have been counted here a moment
 * before its report, so sums may fall, also to nothing. */
static int emit_malloc(struct rls_memory_rows *rows, struct rls_block_row *row,
		       struct rls_event *event)
{
	event->memory_line.allocs = row->sums.allocs - row->sums.frees;
	event->memory_line.alloc_bytes = row->sums.alloc_bytes - row->sums.freed_bytes;
	row->changed = false;
	if (!event->memory_line.allocs && !row->emitted)
		return 0;
	row->emitted = true;
	return rls_event_output_add(rows->output, event);
}

static int emit_row(struct rls_memory_rows *rows, struct rls_block_row *row, uint64_t time_ns)
{
	struct rls_event event = rls_event_at(RLS_EVENT_MEMORY_LINE, row->pid, 0, time_ns);

	if (row->of.source == (enum rls_memory_source)RLS_MEMORY_COPIES)
		return emit_copies(rows, row, time_ns);
	event.memory_line.of = row->of;
	if (row->of.source == RLS_MEMORY_MALLOC)
		return emit_malloc(rows, row, &event);
	event.memory_line.allocs = row->sums.allocs;
	event.memory_line.alloc_bytes = row->sums.alloc_bytes;
	event.memory_line.frees = row->sums.frees;
	event.memory_line.freed_bytes = row->sums.freed_bytes;
	event.memory_line.temporary_bytes = row->sums.temporary_bytes;
	event.memory_line.peak_bytes = row->peak_bytes;
	if (row->windowed) {
		event.memory_line.method = RLS_MEMORY_SCALED;
		rls_add_bounded(&event.memory_line.allocs, rls_round_bounded(row->estimate.allocs));
		rls_add_bounded(&event.memory_line.alloc_bytes,
				rls_round_bounded(row->estimate.bytes));
		event.memory_line.error_bytes =
			rls_round_bounded(rls_memory_estimate_error(&row->estimate));
	}
	row->changed = false;
	return rls_event_output_add(rows->output, &event);
}

void rls_memory_rows_take(struct rls_memory_rows *rows)
{
	for (size_t i = 0, count = place_count(rows); i < count; i++)
		if (rows->places[i].row)
			take_place(rows, i);
}

/* pid 0: of all processes. */
static int flush_rows(struct rls_memory_rows *rows, pid_t pid, pid_t last, uint64_t time_ns)
{
	int r = rls_memory_rows_name(rows, last, time_ns);

	if (!r)
		rls_memory_rows_take(rows);
	for (size_t i = 0; !r && i < rows->count; i++)
		if (rows->rows[i].changed && (!pid || rows->rows[i].pid == (uint32_t)pid))
			r = emit_row(rows, &rows->rows[i], time_ns);
	return r;
}

int rls_memory_rows_flush(struct rls_memory_rows *rows, uint64_t time_ns)
{
	return flush_rows(rows, 0, 0, time_ns);
}

/* ---- ends ---- */

static int add_ages(struct rls_memory_rows *rows, size_t number)
{
	struct rls_memory_row_place *place = &rows->places[number];
	struct rls_block_row *row = &rows->rows[place->row - 1];

	if (!row->freed)
		row->freed = calloc(RLS_AGES, sizeof(*row->freed));
	if (!row->freed)
		return -ENOMEM;
	for (size_t i = 0; i < RLS_AGES; i++) {
		uint32_t now = rows->lines[number].ages[i];

		row->freed[i] += now - place->ages[i];
		place->ages[i] = now;
	}
	return 0;
}

struct living {
	struct rls_memory_rows *rows;
	uint32_t pid; /* 0: all */
	uint64_t time_ns;
};

static int add_living(void *context, const struct rls_wire_block_key *key,
		      const struct rls_wire_block *block)
{
	struct living *living = context;
	struct rls_memory_rows *rows = living->rows;
	uint64_t age_ns = living->time_ns > block->born_ns ? living->time_ns - block->born_ns : 0;
	struct rls_block_row *row;
	uint32_t bucket = rls_age_bucket(age_ns);

	if (living->pid && key->pid != living->pid)
		return 0;
	if (block->line >= RLS_MEMORY_LINES || !rows->places[block->line].row)
		return 0;
	row = &rows->rows[rows->places[block->line].row - 1];
	if (!row->living)
		row->living = calloc(2 * RLS_AGES, sizeof(*row->living));
	if (!row->living)
		return -ENOMEM;
	row->living[bucket]++;
	row->living[RLS_AGES + bucket] += block->bytes;
	return living->pid ? rls_kernel_drop_block(rows->kernel, key) : 0;
}

static int emit_ages(struct rls_memory_rows *rows, const struct rls_block_row *row, bool freed,
		     uint64_t time_ns)
{
	const uint64_t *counts = freed ? row->freed : row->living;
	struct rls_event event = rls_event_at(RLS_EVENT_MEMORY_AGES, row->pid, 0, time_ns);
	int r = 0;

	event.memory_ages.of = row->of;
	event.memory_ages.freed = freed;
	for (uint32_t i = 0; counts && !r && i < RLS_AGES; i++) {
		if (!counts[i])
			continue;
		event.memory_ages.from_ns = rls_age_from_ns(i);
		event.memory_ages.to_ns =
			i + 1 < RLS_AGES ? rls_age_from_ns(i + 1) : RLS_EVENT_NUMBER_MAX;
		event.memory_ages.count = counts[i];
		event.memory_ages.bytes = freed ? 0 : counts[RLS_AGES + i];
		r = rls_event_output_add(rows->output, &event);
	}
	return r;
}

/* Its places may be another process's from now on. */
static void drop_places(struct rls_memory_rows *rows, uint32_t pid)
{
	for (size_t i = 0, count = place_count(rows); i < count; i++) {
		if (!rows->places[i].row || rows->lines[i].key.pid != pid)
			continue;
		rows->rows[rows->places[i].row - 1].places--;
		rows->places[i] = (struct rls_memory_row_place){0};
		rls_kernel_drop_line(rows->kernel, (uint32_t)i);
	}
}

static int index_again(struct rls_memory_rows *rows)
{
	int r = 0;

	rls_index_map_free(&rows->by_key);
	for (size_t i = 0; !r && i < rows->count; i++) {
		uint64_t digest[2];
		uint32_t known;

		if (!known_row(rows, rows->rows[i].pid, &rows->rows[i].of, digest, &known))
			r = index_row(rows, digest, i);
	}
	return r;
}

/* No place is in them any more. A later process may have this pid. */
static int drop_rows(struct rls_memory_rows *rows, uint32_t pid)
{
	_cleanup_free_ uint32_t *moved = calloc(rows->count + 1, sizeof(*moved));
	size_t left = 0;

	if (!moved)
		return -ENOMEM;
	for (size_t i = 0; i < rows->count; i++) {
		if (rows->rows[i].pid == pid) {
			free(rows->rows[i].freed);
			free(rows->rows[i].living);
			continue;
		}
		moved[i] = (uint32_t)left;
		rows->rows[left++] = rows->rows[i];
	}
	rows->count = left;
	for (size_t i = 0, count = place_count(rows); i < count; i++)
		if (rows->places[i].row)
			rows->places[i].row = moved[rows->places[i].row - 1] + 1;
	return index_again(rows);
}

int rls_memory_rows_end(struct rls_memory_rows *rows, pid_t pid, uint64_t time_ns)
{
	struct living living = {.rows = rows, .pid = (uint32_t)pid, .time_ns = time_ns};
	int r = rls_memory_rows_name(rows, pid ? pid : -1, time_ns);
	bool any = false, followed = false;

	rls_memory_rows_conclude(rows, (uint32_t)pid);
	rls_memory_row_clock_drop(rows, (uint32_t)pid);
	if (!r)
		r = flush_rows(rows, pid, pid ? pid : -1, time_ns);
	for (size_t i = 0; !r && i < rows->count; i++) {
		uint32_t source = (uint32_t)rows->rows[i].of.source;
		bool own = !pid || rows->rows[i].pid == (uint32_t)pid;

		any |= own;
		followed |= own && source != RLS_MEMORY_MALLOC && source != RLS_MEMORY_COPIES;
	}
	if (r || !any) /* most children allocate nothing that is reported */
		return r;
	for (size_t i = 0, count = place_count(rows); !r && i < count; i++)
		if (rows->places[i].row && (!pid || rows->lines[i].key.pid == (uint32_t)pid))
			r = add_ages(rows, i);
	if (!r && followed) /* the map is long */
		r = rls_kernel_each_block(rows->kernel, add_living, &living);
	for (size_t i = 0; !r && i < rows->count; i++) {
		struct rls_block_row *row = &rows->rows[i];

		if (pid && row->pid != (uint32_t)pid)
			continue;
		if (!row->windowed) /* which blocks have been freed is not known */
			r = emit_ages(rows, row, true, time_ns);
		if (!r && !row->windowed)
			r = emit_ages(rows, row, false, time_ns);
		free(row->living);
		row->living = NULL;
	}
	if (r || !pid)
		return r;
	drop_places(rows, (uint32_t)pid);
	return drop_rows(rows, (uint32_t)pid);
}

int rls_memory_rows_losses(struct rls_memory_rows *rows, uint64_t time_ns)
{
	static const struct {
		enum rls_memory_count which;
		const char *buffer;
	} losses[RLS_MEMORY_LOSSES] = {{RLS_MEMORY_LOST_BLOCKS, "memory_blocks"},
				       {RLS_MEMORY_LOST_LINES, "memory_lines"},
				       {RLS_MEMORY_LOST_COPIES, "memory_copies"}};
	int r = 0;

	for (size_t i = 0; !r && i < RLS_MEMORY_LOSSES; i++) {
		uint64_t lost = rls_kernel_memory_count(rows->kernel, losses[i].which);

		if (lost == rows->lost[i])
			continue;
		rows->lost[i] = lost;
		r = rls_event_output_loss(rows->output, time_ns, losses[i].buffer, lost);
	}
	return r;
}
