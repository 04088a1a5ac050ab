/* The table of memory rows, as memory_rows.c and memory_row_windows.c share it. */
#ifndef RLS_MEMORY_ROW_TABLE_H
#define RLS_MEMORY_ROW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/base/index_map.h"
#include "analysis/event/event.h"
#include "bpf/wire/memory.h"
#include "userspace/record/memory/memory_estimate.h"

struct rls_event_output;
struct rls_interpreters;
struct rls_kernel;
struct rls_translator;

#define RLS_MEMORY_LOSSES 3

/* Sums of a place or a row. */
struct rls_memory_row_sums {
	uint64_t allocs, alloc_bytes, frees, freed_bytes, temporary_bytes;
};

struct rls_block_row {
	uint32_t pid;
	struct rls_memory_line of;
	struct rls_memory_row_sums sums;
	uint64_t peak_bytes; /* the most that lived at once, as far as is known */
	uint32_t places;
	uint32_t place; /* one of these */
	bool changed; /* since its last event */
	bool emitted; /* of malloc: it has had one */
	bool windowed; /* only windows are counted */
	struct rls_memory_row_sums window; /* in the open one; sums do not have it */
	struct rls_memory_estimate estimate; /* since it is windowed; sums do not have it */
	uint64_t *freed; /* blocks by age, RLS_AGES; NULL: none; owned */
	uint64_t *living; /* the same of those that live, at the end; and their bytes behind that */
};

struct rls_memory_row_place {
	uint32_t row; /* plus one; 0: it has not been named */
	uint64_t waits_ns; /* for its process's interpreter, since then; 0: it does not */
	struct rls_memory_row_sums seen;
	uint32_t ages[RLS_AGES];
};

/* The CPU time of a process, which its windows are measured by: probes change how much a program gets done in it, but not
 * how much of it there is. */
struct rls_memory_row_clock {
	struct rls_memory_row_clock *next;
	uint32_t pid;
	uint64_t first_ns; /* when it was first read; 0: it was forked in the recording */
	uint64_t cpu_ns; /* as it was read last */
	uint64_t open_ns; /* when the open window opened */
	uint64_t reports; /* of blocks, in that window */
	struct rls_memory_estimate
		none[RLS_MEMORY_SOURCES]; /* of lines that have allocated nothing in any window */
};

struct rls_memory_rows {
	struct rls_kernel *kernel;
	struct rls_interpreters *interpreters;
	const struct rls_translator *translator;
	struct rls_event_output *output;
	const volatile struct rls_wire_memory_line *lines;
	struct rls_memory_row_place *places; /* RLS_MEMORY_LINES */
	struct rls_block_row *rows;
	size_t count, room;
	struct rls_index_map by_key; /* two digests of a row's key → its number + 1 */
	struct rls_memory_row_clock *clocks; /* of all processes; owned */
	uint64_t ran_ns; /* by all of them, since they were first read */
	struct rls_index_map clock_of; /* (pid, 0) → its clock */
	uint32_t windowed; /* sources: a bit each */
	bool open; /* a window is */
	uint64_t named; /* places, so far */
	uint64_t lost[RLS_MEMORY_LOSSES]; /* that are in the trace */
};

/* Adds to rows what has been counted since it was last taken, of places that are named. */
void rls_memory_rows_take(struct rls_memory_rows *rows);

/* Of blocks of a source only windows are counted. */
static inline bool rls_memory_rows_windowed(const struct rls_memory_rows *rows, uint32_t source)
{
	return source < RLS_MEMORY_SOURCES && rows->windowed >> source & 1;
}

/* A row that is new, of such a source: until now it has allocated nothing in any window. */
void rls_memory_row_window(const struct rls_memory_rows *rows, struct rls_block_row *row);
/* The process, or (0) the recording, has ended: its estimates are of all of its time. */
void rls_memory_rows_conclude(struct rls_memory_rows *rows, uint32_t pid);
/* Forgets the process's clock, or (0) all. */
void rls_memory_row_clock_drop(struct rls_memory_rows *rows, uint32_t pid);

#endif
