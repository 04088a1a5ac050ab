/* Tables: what each array of a report is, so that one piece of code serves them all.
 *
 *     struct of a row (rows.h) ──described by──▶ struct rls_table (tables.c)
 *                                                   │
 *         report/table_rows.c   free, sort, sum, take over from another report
 *         report/group.c        --by: which columns are blanked, then summed
 *         writers/table/        JSON, CSV, JSON Lines, SQLite
 *         a test                holds report.schema.json against it
 *
 * A new table is a struct in rows.h with its array in struct rls_report, one descriptor in tables.c,
 * and a builder (build_*.c) that fills it; see doc/architecture.md.
 */
#ifndef RLS_TABLES_H
#define RLS_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/report/rows.h"

enum rls_report_table {
	RLS_TABLE_BREAKDOWN = 0,
	RLS_TABLE_TRANSITIONS = 1,
	RLS_TABLE_THREADS = 2,
	RLS_TABLE_PROCESSES = 3,
	RLS_TABLE_GPU = 4,
	RLS_TABLE_OPERATIONS = 5,
	RLS_TABLE_LINES = 6,
	RLS_TABLE_FUNCTIONS = 7,
	RLS_TABLE_SAMPLES = 8,
	RLS_TABLE_GPU_OPERATIONS = 9,
	RLS_TABLE_LIBRARIES = 10,
	RLS_TABLE_CALIBRATION = 11,
	RLS_TABLE_LOSSES = 12,
	RLS_TABLE_WARNINGS = 13,
	RLS_TABLE_RECORDING = 14,
	RLS_TABLE_CUDA_CALLS = 15,
	RLS_TABLE_CUDA_OPERATIONS = 16,
	RLS_TABLE_GPU_CLOCKS = 17,
	RLS_TABLE_HOSTS = 18,
	RLS_TABLE_CROSS_CHECK = 19,
	RLS_TABLE_SAMPLED_LIBRARIES = 20,
	RLS_TABLE_MEMORY_LINES = 21,
	RLS_TABLE_COPIES = 22,
	RLS_TABLE_MEMORY = 23,
	RLS_TABLE_MEMORY_TIMELINE = 24,
	RLS_TABLE_LAYERS = 25,
	RLS_TABLE_MAX = 26, /* those with names end here; the rest is in no machine form */
	RLS_TABLE_STACKS = 26,
	RLS_TABLE_STACK_FRAMES = 27,
	RLS_TABLE_SAMPLED_STACKS = 28,
	RLS_TABLE_OVERVIEWS = 29,
	RLS_TABLE_OVERVIEW_PARTS = 30,
	RLS_TABLE_ALL = 31,
};

enum rls_column_type {
	RLS_COLUMN_U32 = 0,
	RLS_COLUMN_U64 = 1,
	RLS_COLUMN_DOUBLE = 2,
	RLS_COLUMN_BOOL = 3,
	RLS_COLUMN_STRING = 4, /* const char *, the report's; may be NULL where it is hidden */
	RLS_COLUMN_STRINGS = 5, /* const char **, the row's own, with a size_t count */
	RLS_COLUMN_CATEGORY = 6, /* these are enums, shown by their names */
	RLS_COLUMN_ROW_CATEGORY = 7, /* of a breakdown row, which may have none; ordered by name */
	RLS_COLUMN_RESOURCE = 8,
	RLS_COLUMN_METHOD = 9,
	RLS_COLUMN_SAMPLE_KIND = 10,
	RLS_COLUMN_MEMORY_SOURCE = 11,
	RLS_COLUMN_MEMORY_METHOD = 12,
	RLS_COLUMN_COPY_KIND = 13,
	RLS_COLUMN_I32 = 14,
	RLS_COLUMN_I64 = 15,
	RLS_COLUMN_LAYER_PASS = 16,
};

/* What a column is for; units are in names (_ns, _percent, ...). */
enum rls_column_flag {
	/* When rows of equal keys become one. */
	RLS_SUM = 1 << 0, /* U64 (bounded) and DOUBLE: added up */
	RLS_WORST = 1 << 1, /* METHOD, MEMORY_METHOD: the larger */
	/* When --by does not keep them, blanked to 0 and "", or to null. */
	RLS_BY_THREAD = 1 << 2,
	RLS_BY_PHASE = 1 << 3,
	RLS_BY_OPERATION = 1 << 4,
	RLS_BY_PLACE = 1 << 5, /* within a file */
	RLS_BY_FILE = 1 << 15, /* these are of tables that are summed over files, too */
	RLS_BY_FUNCTION = 1 << 16,
	RLS_BY_LINE = 1 << 17,
	RLS_BY_LAYER = 1 << 18,
	RLS_BY_LAYER_TYPE = 1 << 19,
	RLS_BY_PASS = 1 << 20,
	/* When rows come from the trace of another host. */
	RLS_PID = 1 << 6, /* U32: renumbered where numbers clash */
	RLS_INSTANT = 1 << 7, /* U64: brought onto the first trace's clock */
	RLS_FRAME = 1 << 8, /* U32: 1 + index into stack_frames */
	/* How it is sorted and written. */
	RLS_TIE = 1 << 9, /* decides between rows of equal keys, only to be deterministic */
	RLS_OPTIONAL = 1 << 10, /* JSON leaves it out when it is 0 or "" */
	RLS_NULLABLE = 1 << 11, /* null: U64 RLS_COUNT_UNKNOWN, DOUBLE not a number */
	RLS_FORMER = 1 << 12, /* an earlier name, for readers of JSON and CSV */
	RLS_OUTER = 1 << 13, /* in the row that holds this one; JSON nests, so has no need of it */
	RLS_HIDDEN = 1 << 14, /* in no machine form */
};

struct rls_column {
	const char *name;
	enum rls_column_type type;
	unsigned int flags;
	unsigned int key; /* place among what rows are distinguished and sorted by; 0: none */
	size_t offset; /* in the row, or in the one that holds it (RLS_OUTER) */
	size_t count_offset; /* of STRINGS */
};

enum rls_table_flag {
	RLS_TABLE_GROUPED = 1 << 0, /* --by sums it */
	RLS_TABLE_DISTINCT = 1 << 1, /* rows of equal keys are one, always */
	RLS_TABLE_FIRST = 1 << 2, /* of several traces the first one's stands for all */
	RLS_TABLE_OWN = 1 << 3, /* not taken over from another report */
	RLS_TABLE_OF_REPORT = 1 << 4, /* one row, which is the report itself */
};

/* When JSON has the array. */
enum rls_json_when {
	RLS_JSON_ALWAYS = 0,
	RLS_JSON_ANY = 1, /* there are rows */
	RLS_JSON_SAMPLED = 2, /* the recording has samples */
};

struct rls_table {
	const char *name; /* as --table takes it; NULL: in no machine form */
	const struct rls_column *columns;
	size_t column_count;
	size_t row_bytes;
	size_t rows_offset; /* of the pointer and the count, in struct rls_report, or in the */
	size_t count_offset; /* row of the outer table */
	bool inner; /* held by the rows of the outer table */
	enum rls_report_table outer;
	unsigned int flags;
	unsigned int json; /* place among JSON's arrays; 0: it is none of its own */
	enum rls_json_when json_when;
	const char *json_name; /* of an inner table in its outer row */
	/* Each may be NULL. Before a row is summed over operations; what follows from a row's other
	 * figures; what else a sum needs; what else becomes later by shift_ns on another clock. */
	void (*over_operations)(void *row);
	void (*derive)(void *row);
	void (*add)(void *into, const void *more);
	void (*shift)(void *row, int64_t shift_ns);
};

extern const struct rls_table rls_report_tables[RLS_TABLE_ALL];

/* Every table that has a name, for a message: "breakdown, transitions, ...". */
#define RLS_TABLE_NAMES_BYTES 520
const char *rls_report_table_names(char buffer[static RLS_TABLE_NAMES_BYTES]);

/* "breakdown", "transitions", ... to *out and 0; -EINVAL for another word. */
int rls_report_table_parse(const char *name, enum rls_report_table *out);

/* --- rows (table_rows.c) ------------------------------------------------------------ */

/* Of a table with no outer one. */
size_t rls_table_count(const struct rls_report *report, enum rls_report_table table);
void *rls_table_row(const struct rls_report *report, enum rls_report_table table, size_t index);

/* A new row behind the others, zeroed; *capacity is 0 for an empty table. 0 and *row, or -ENOMEM. */
int rls_table_add(struct rls_report *report, enum rls_report_table table, size_t *capacity,
		  void **row);

/* A row of any table: itself, and for inner tables the one that holds it. */
struct rls_table_place {
	const void *outer, *row;
	size_t index, inner_index;
};

/* Goes to the next row, from a zeroed place to the first. False: there is none. */
bool rls_table_next(const struct rls_report *report, enum rls_report_table table,
		    struct rls_table_place *place);

/* Frees the rows and what they hold. */
void rls_table_free(struct rls_report *report, enum rls_report_table table);

/* By keys, ties, nothing else; inner tables within each outer row. */
void rls_table_sort(struct rls_report *report, enum rls_report_table table);

/* Sorts, and makes those of equal keys one. */
void rls_table_sum(struct rls_report *report, enum rls_report_table table);

/* Whether a row has the same keys as another one: 0, or how they are ordered. */
int rls_table_compare(enum rls_report_table table, const void *a, const void *b);

/* Where rows of another trace go. */
struct rls_table_move {
	int64_t shift_ns;
	uint32_t frames_before; /* stack frames that the report had */
};

/* Appends copies of another report's rows, with what they hold. 0, or -ENOMEM. */
int rls_table_append(struct rls_report *report, const struct rls_report *other,
		     enum rls_report_table table, const struct rls_table_move *move);

/* --- values (table_values.c) -------------------------------------------------------- */

enum rls_value_kind {
	RLS_VALUE_NULL = 0,
	RLS_VALUE_INTEGER = 1, /* RLS_COLUMN_BOOL too: 0 or 1 */
	RLS_VALUE_SIGNED = 4,
	RLS_VALUE_REAL = 2,
	RLS_VALUE_TEXT = 3, /* borrowed */
};

struct rls_value {
	enum rls_value_kind kind;
	union {
		uint64_t integer;
		int64_t number;
		double real;
		const char *text;
	};
};

/* Not of STRINGS. */
struct rls_value rls_column_value(const struct rls_column *column,
				  const struct rls_table_place *place);

/* 0, "": what RLS_OPTIONAL leaves out. */
bool rls_value_is_empty(const struct rls_value *value);

#define RLS_COLUMN_NUMBER_BYTES 32

/* The text of one value: a borrowed string, or a number printed into the buffer. NULL: null. Not of
 * STRINGS. */
const char *rls_column_text(const struct rls_column *column, const struct rls_table_place *place,
			    char buffer[static RLS_COLUMN_NUMBER_BYTES]);

/* The strings of a STRINGS column. */
const char *const *rls_column_strings(const struct rls_column *column,
				      const struct rls_table_place *place, size_t *count);

/* Its text is no string in JSON. */
bool rls_column_is_number(const struct rls_column *column);

/* It has a place in CSV, JSON Lines and the like. */
bool rls_column_is_flat(const struct rls_column *column);

#endif
