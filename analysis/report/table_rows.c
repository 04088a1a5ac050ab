/* What is done to the rows of every table alike, by its descriptor: freed, sorted, summed, taken over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/event/bounded.h"
#include "analysis/report/report_edit.h"
#include "analysis/report/tables.h"

#define KEYS_MAX 8
#define TIES_MAX 2

/* An array: in the report, or in the row that holds it. */
struct array {
	char **rows;
	size_t *count;
};

static struct array array_of(const struct rls_table *table, const void *owner)
{
	/* The owner is a report, or a row of one, that the caller may write to. */
	return (struct array){(char **)((uintptr_t)owner + table->rows_offset),
			      (size_t *)((uintptr_t)owner + table->count_offset)};
}

static void *value_of(const struct rls_column *column, void *row)
{
	return (char *)row + column->offset;
}

size_t rls_table_count(const struct rls_report *report, enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];

	return of->flags & RLS_TABLE_OF_REPORT ? 1 : *array_of(of, report).count;
}

void *rls_table_row(const struct rls_report *report, enum rls_report_table table, size_t index)
{
	const struct rls_table *of = &rls_report_tables[table];

	return *array_of(of, report).rows + index * of->row_bytes;
}

int rls_table_add(struct rls_report *report, enum rls_report_table table, size_t *capacity,
		  void **row)
{
	const struct rls_table *of = &rls_report_tables[table];
	struct array array = array_of(of, report);
	int err = rls_grow_bytes((void **)array.rows, capacity, *array.count, of->row_bytes);

	if (err)
		return err;
	*row = memset(*array.rows + *array.count * of->row_bytes, 0, of->row_bytes);
	++*array.count;
	return 0;
}

static const void *row_at(const struct rls_table *table, const void *owner, size_t index)
{
	struct array array = array_of(table, owner);

	return index < *array.count ? *array.rows + index * table->row_bytes : NULL;
}

bool rls_table_next(const struct rls_report *report, enum rls_report_table table,
		    struct rls_table_place *place)
{
	const struct rls_table *of = &rls_report_tables[table];

	if (of->flags & RLS_TABLE_OF_REPORT) {
		place->outer = place->row = report;
		return !place->index++;
	}
	if (!of->inner) {
		place->outer = place->row = row_at(of, report, place->index++);
		return place->row;
	}
	while ((place->outer = row_at(&rls_report_tables[of->outer], report, place->index))) {
		place->row = row_at(of, place->outer, place->inner_index++);
		if (place->row)
			return true;
		place->index++;
		place->inner_index = 0;
	}
	return false;
}

/* The first table from `from` on whose rows are held by those of `outer`; NULL: none. */
static const struct rls_table *find_inner(enum rls_report_table outer, const struct rls_table *from)
{
	for (; from < rls_report_tables + RLS_TABLE_ALL; from++) {
		if (from->inner && from->outer == outer)
			return from;
	}
	return NULL;
}

#define FOR_EACH_INNER(inner, outer_)                                                              \
	for (const struct rls_table *inner = find_inner(outer_, rls_report_tables); inner;         \
	     inner = find_inner(outer_, inner + 1))

#define FOR_EACH_COLUMN(column, table)                                                             \
	for (const struct rls_column *column = (table)->columns;                                   \
	     column < (table)->columns + (table)->column_count; column++)

/* --- freeing ------------------------------------------------------------------------ */

static void free_rows(struct array array)
{
	free(*array.rows);
	*array.rows = NULL;
	*array.count = 0;
}

void rls_table_free(struct rls_report *report, enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];
	struct array array = array_of(of, report);

	for (size_t i = 0; i < *array.count; i++) {
		char *row = *array.rows + i * of->row_bytes;

		FOR_EACH_COLUMN (column, of) {
			if (column->type == RLS_COLUMN_STRINGS)
				free(*(const char ***)value_of(column, row));
		}
		FOR_EACH_INNER (inner, table)
			free_rows(array_of(inner, row));
	}
	free_rows(array);
}

/* --- sorting ------------------------------------------------------------------------ */

/* Columns in the order in which rows are compared: keys first. */
struct order {
	const struct rls_column *columns[KEYS_MAX + TIES_MAX];
	size_t keys, count;
};

static struct order order_of(const struct rls_table *table)
{
	struct order order = {0};

	FOR_EACH_COLUMN (column, table) {
		if (!column->key)
			continue;
		order.columns[column->key - 1] = column;
		order.keys++;
	}
	order.count = order.keys;
	FOR_EACH_COLUMN (column, table) {
		if (column->flags & RLS_TIE)
			order.columns[order.count++] = column;
	}
	return order;
}

static int order_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* One string of a report is at one place, mostly. */
static int order_texts(const char *a, const char *b)
{
	return a == b ? 0 : strcmp(a, b);
}

static int order_strings(const struct rls_column *column, const char *a, const char *b)
{
	const char *const *left = *(const char *const *const *)(a + column->offset);
	const char *const *right = *(const char *const *const *)(b + column->offset);
	size_t left_count = *(const size_t *)(a + column->count_offset);
	size_t right_count = *(const size_t *)(b + column->count_offset);
	int order = 0;

	for (size_t i = 0; !order && i < left_count && i < right_count; i++)
		order = order_texts(left[i], right[i]);
	return order ? order : order_numbers(left_count, right_count);
}

static int order_by(const struct rls_column *column, const char *a, const char *b)
{
	const char *left = a + column->offset, *right = b + column->offset;

	switch (column->type) {
	case RLS_COLUMN_U64:
		return order_numbers(*(const uint64_t *)left, *(const uint64_t *)right);
	case RLS_COLUMN_BOOL:
		return *(const bool *)left - *(const bool *)right;
	case RLS_COLUMN_DOUBLE:
		return (*(const double *)left > *(const double *)right) -
		       (*(const double *)left < *(const double *)right);
	case RLS_COLUMN_I32:
		return (*(const int32_t *)left > *(const int32_t *)right) -
		       (*(const int32_t *)left < *(const int32_t *)right);
	case RLS_COLUMN_I64:
		return (*(const int64_t *)left > *(const int64_t *)right) -
		       (*(const int64_t *)left < *(const int64_t *)right);
	case RLS_COLUMN_STRING:
		return order_texts(*(const char *const *)left, *(const char *const *)right);
	case RLS_COLUMN_STRINGS:
		return order_strings(column, a, b);
	case RLS_COLUMN_ROW_CATEGORY:
		return order_texts(rls_breakdown_row_category((const struct rls_breakdown_row *)a),
				   rls_breakdown_row_category((const struct rls_breakdown_row *)b));
	default: /* 32 bits, enums too */
		return order_numbers(*(const uint32_t *)left, *(const uint32_t *)right);
	}
}
_Static_assert(sizeof(enum rls_category) == 4 && sizeof(enum rls_resource) == 4 &&
		       sizeof(enum rls_method) == 4 && sizeof(enum rls_sample_kind) == 4 &&
		       sizeof(enum rls_memory_source) == 4 && sizeof(enum rls_memory_method) == 4 &&
		       sizeof(enum rls_copy_kind) == 4 && sizeof(enum rls_layer_pass) == 4,
	       "enums are compared as 32 bits");

/* Most keys are numbers, or strings that are the same. */
static int order_rows(const char *a, const char *b, size_t count, const struct order *order)
{
	for (size_t i = 0; i < count; i++) {
		const struct rls_column *column = order->columns[i];
		size_t offset = column->offset;
		int result;

		if (column->type == RLS_COLUMN_U32 &&
		    *(const uint32_t *)(a + offset) == *(const uint32_t *)(b + offset))
			continue;
		if (column->type == RLS_COLUMN_STRING &&
		    *(const char *const *)(a + offset) == *(const char *const *)(b + offset))
			continue;
		result = order_by(column, a, b);
		if (result)
			return result;
	}
	return 0;
}

static int by_keys_and_ties(const void *a, const void *b, void *order)
{
	return order_rows(a, b, ((const struct order *)order)->count, order);
}

int rls_table_compare(enum rls_report_table table, const void *a, const void *b)
{
	struct order order = order_of(&rls_report_tables[table]);

	return order_rows(a, b, order.keys, &order);
}

static void sort_rows(const struct rls_table *table, struct array array)
{
	struct order order = order_of(table);

	if (order.count && *array.count > 1)
		qsort_r(*array.rows, *array.count, table->row_bytes, by_keys_and_ties, &order);
}

void rls_table_sort(struct rls_report *report, enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];
	struct array array = array_of(of, report);

	sort_rows(of, array);
	FOR_EACH_INNER (inner, table) {
		for (size_t i = 0; i < *array.count; i++)
			sort_rows(inner, array_of(inner, *array.rows + i * of->row_bytes));
	}
}

/* --- summing ------------------------------------------------------------------------ */

static void add_value(const struct rls_column *column, void *into, void *more)
{
	void *to = value_of(column, into), *from = value_of(column, more);

	/* Either method's enum: 32 bits, better ones first. */
	if (column->flags & RLS_WORST && *(const uint32_t *)from > *(const uint32_t *)to)
		memcpy(to, from, sizeof(uint32_t));
	if (!(column->flags & RLS_SUM))
		return;
	if (column->type == RLS_COLUMN_DOUBLE)
		*(double *)to += *(double *)from;
	else
		rls_add_bounded(to, *(uint64_t *)from);
}

void rls_table_sum(struct rls_report *report, enum rls_report_table table)
{
	const struct rls_table *of = &rls_report_tables[table];
	struct array array = array_of(of, report);
	struct order order = order_of(of);
	size_t kept = 0;

	sort_rows(of, array);
	for (size_t i = 0; i < *array.count; i++) {
		char *row = *array.rows + i * of->row_bytes;
		char *into = *array.rows + (kept - !!kept) * of->row_bytes;

		if (kept && !order_rows(into, row, order.keys, &order)) {
			FOR_EACH_COLUMN (column, of)
				add_value(column, into, row);
			if (of->add)
				of->add(into, row);
		} else {
			into = *array.rows + kept++ * of->row_bytes;
			if (into != row)
				memcpy(into, row, of->row_bytes);
		}
		if (of->derive)
			of->derive(into);
	}
	*array.count = kept;
}

/* --- taking over -------------------------------------------------------------------- */

/* A copy of strings that are another report's. */
static int keep_strings(struct rls_report *report, const struct rls_column *column, char *row,
			const char *from)
{
	size_t count = *(const size_t *)(from + column->count_offset);
	const char *const *strings = *(const char *const *const *)(from + column->offset);
	const char **kept = calloc(count + 1, sizeof(*kept));
	int err = kept ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count; i++)
		kept[i] = rls_report_keep(report, strings[i], &err);
	*(const char ***)value_of(column, row) = kept;
	return err;
}

/* row is a copy of a row of another report, which has no strings of its own yet. */
static int adopt_value(struct rls_report *report, const struct rls_column *column, char *row,
		       const char *from, const struct rls_table_move *move)
{
	void *value = value_of(column, row);
	int err = 0;

	if (column->flags & RLS_OUTER)
		return 0;
	if (column->type == RLS_COLUMN_STRINGS)
		return keep_strings(report, column, row, from);
	if (column->type == RLS_COLUMN_STRING && *(const char **)value)
		*(const char **)value = rls_report_keep(report, *(const char **)value, &err);
	if (column->flags & RLS_INSTANT)
		*(uint64_t *)value += (uint64_t)move->shift_ns;
	if (column->flags & RLS_FRAME && *(uint32_t *)value)
		*(uint32_t *)value += move->frames_before;
	return err;
}

/* Room for more rows, with copies of them that hold nothing. */
static int append_bare(const struct rls_table *table, enum rls_report_table number,
		       struct array array, struct array more)
{
	char *rows;

	if (!*more.count)
		return 0;
	rows = reallocarray(*array.rows, *array.count + *more.count, table->row_bytes);
	if (!rows)
		return -ENOMEM;
	*array.rows = rows;
	rows += *array.count * table->row_bytes;
	memcpy(rows, *more.rows, *more.count * table->row_bytes);
	*array.count += *more.count;
	for (size_t i = 0; i < *more.count; i++, rows += table->row_bytes) {
		FOR_EACH_COLUMN (column, table) {
			if (column->type == RLS_COLUMN_STRINGS)
				*(const char ***)value_of(column, rows) = NULL;
		}
		FOR_EACH_INNER (inner, number) {
			struct array held = array_of(inner, rows);

			*held.rows = NULL;
			*held.count = 0;
		}
	}
	return 0;
}

static int table_rows_append(struct rls_report *report, const struct rls_table *table,
			     struct array array, struct array more,
			     const struct rls_table_move *move)
{
	enum rls_report_table number = (enum rls_report_table)(table - rls_report_tables);
	size_t before = *array.count;
	int err = append_bare(table, number, array, more);

	for (size_t i = 0; !err && i < *more.count; i++) {
		char *row = *array.rows + (before + i) * table->row_bytes;
		const char *from = *more.rows + i * table->row_bytes;

		FOR_EACH_COLUMN (column, table)
			err = err ? err : adopt_value(report, column, row, from, move);
		FOR_EACH_INNER (inner, number)
			err = err ? err
				  : table_rows_append(report, inner, array_of(inner, row),
						      array_of(inner, from), move);
		if (!err && table->shift)
			table->shift(row, move->shift_ns);
	}
	return err;
}

int rls_table_append(struct rls_report *report, const struct rls_report *other,
		     enum rls_report_table table, const struct rls_table_move *move)
{
	const struct rls_table *of = &rls_report_tables[table];

	return table_rows_append(report, of, array_of(of, report), array_of(of, other), move);
}

void rls_report_sort(struct rls_report *report)
{
	for (int table = 0; table < RLS_TABLE_ALL; table++) {
		const struct rls_table *of = &rls_report_tables[table];

		if (of->inner || of->flags & RLS_TABLE_OF_REPORT)
			continue;
		if (of->flags & RLS_TABLE_DISTINCT)
			rls_table_sum(report, table);
		else
			rls_table_sort(report, table);
	}
}
