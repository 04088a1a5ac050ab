/* Columns: the names and places of a report's figures, once for all machine forms.
 *
 * The JSON keys and the CSV headings are these names, so the two cannot drift apart; the
 * schema (report.schema.json) is held against them by a test.
 */
#ifndef RLS_COLUMNS_H
#define RLS_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>

#include "analysis/report/report.h"

enum rls_column_type {
	RLS_COLUMN_U32,
	RLS_COLUMN_U64,
	RLS_COLUMN_DOUBLE,
	RLS_COLUMN_STRING,
	RLS_COLUMN_CATEGORY,
	RLS_COLUMN_ROW_CATEGORY,    /* of a breakdown row, which may have none */
	RLS_COLUMN_RESOURCE,
	RLS_COLUMN_METHOD,
	RLS_COLUMN_SAMPLE_KIND,
	RLS_COLUMN_BOOL,
};

struct rls_column {
	const char *name;
	enum rls_column_type type;
	size_t offset;              /* in the element, or in the one that holds it */
	bool of_outer;
	bool optional;              /* JSON leaves it out when it is 0 or "" */
	bool nullable;              /* U64 and DOUBLE: null when RLS_COUNT_UNKNOWN, or no number */
};

/* One array of the report, or all the arrays that the elements of one hold. */
struct rls_columns {
	const char *name;
	const struct rls_column *columns;
	size_t column_count;
	size_t item_bytes;
	size_t items_offset;        /* of the pointer and the count in struct rls_report */
	size_t count_offset;
	size_t inner_bytes;         /* 0: no inner arrays */
	size_t inner_items_offset;  /* in the element */
	size_t inner_count_offset;
	bool of_report;             /* one row, whose element is the report */
};

extern const struct rls_columns rls_report_columns[RLS_TABLE_MAX];

/* A row: the element, and for inner arrays the one that holds it. */
struct rls_columns_place {
	const void *outer, *item;
	size_t index, inner_index;
};

/* Goes to the next row, from a zeroed place to the first. False: there is none. */
bool rls_columns_next(const struct rls_columns *columns, const struct rls_report *report,
		      struct rls_columns_place *place);

/* An element of a plain array, by index; and how many there are. */
const void *rls_columns_item(const struct rls_columns *columns, const struct rls_report *report,
			     size_t index);
size_t rls_columns_count(const struct rls_columns *columns, const struct rls_report *report);

#define RLS_COLUMN_NUMBER_BYTES 32

/* The text of one value: a borrowed string, or a number printed into the buffer. NULL: null. */
const char *rls_column_text(const struct rls_column *column, const void *item,
			    char buffer[static RLS_COLUMN_NUMBER_BYTES]);
/* The same for a row. */
const char *rls_columns_text(const struct rls_column *column, const struct rls_columns_place *place,
			     char buffer[static RLS_COLUMN_NUMBER_BYTES]);
/* Its text is no string in JSON. */
bool rls_column_is_number(const struct rls_column *column);

#endif
