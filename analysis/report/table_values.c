/* What is in a column of a row: a value, or its text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/event/layer_pass.h"
#include "analysis/event/memory_words.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/tables.h"

static const void *holder_of(const struct rls_column *column, const struct rls_table_place *place)
{
	return column->flags & RLS_OUTER ? place->outer : place->row;
}

static const char *name_of(const struct rls_column *column, const void *row, const void *value)
{
	switch (column->type) {
	case RLS_COLUMN_STRING:
		return *(const char *const *)value;
	case RLS_COLUMN_CATEGORY:
		return rls_category_name(*(const enum rls_category *)value);
	case RLS_COLUMN_ROW_CATEGORY:
		return rls_breakdown_row_category(row);
	case RLS_COLUMN_RESOURCE:
		return rls_resource_name(*(const enum rls_resource *)value);
	case RLS_COLUMN_METHOD:
		return rls_method_name(*(const enum rls_method *)value);
	case RLS_COLUMN_SAMPLE_KIND:
		return rls_sample_kind_name(*(const enum rls_sample_kind *)value);
	case RLS_COLUMN_MEMORY_SOURCE:
		return rls_memory_source_name(*(const enum rls_memory_source *)value);
	case RLS_COLUMN_MEMORY_METHOD:
		return rls_memory_method_name(*(const enum rls_memory_method *)value);
	case RLS_COLUMN_LAYER_PASS:
		return rls_layer_pass_name(*(const enum rls_layer_pass *)value);
	case RLS_COLUMN_COPY_KIND:
		return rls_copy_kind_name(*(const enum rls_copy_kind *)value);
	default:
		return "";
	}
}

static struct rls_value integer(uint64_t number)
{
	return (struct rls_value){.kind = RLS_VALUE_INTEGER, .integer = number};
}

static struct rls_value negatable(int64_t number)
{
	return (struct rls_value){.kind = RLS_VALUE_SIGNED, .number = number};
}

struct rls_value rls_column_value(const struct rls_column *column,
				  const struct rls_table_place *place)
{
	const void *row = holder_of(column, place);
	const void *at = (const char *)row + column->offset;
	bool nullable = column->flags & RLS_NULLABLE;

	switch (column->type) {
	case RLS_COLUMN_BOOL:
		return integer(*(const bool *)at);
	case RLS_COLUMN_U32:
		return integer(*(const uint32_t *)at);
	case RLS_COLUMN_U64:
		if (nullable && *(const uint64_t *)at == RLS_COUNT_UNKNOWN)
			return (struct rls_value){.kind = RLS_VALUE_NULL};
		return integer(*(const uint64_t *)at);
	case RLS_COLUMN_I32:
		return negatable(*(const int32_t *)at);
	case RLS_COLUMN_I64:
		return negatable(*(const int64_t *)at);
	case RLS_COLUMN_DOUBLE:
		if (nullable && isnan(*(const double *)at))
			return (struct rls_value){.kind = RLS_VALUE_NULL};
		return (struct rls_value){.kind = RLS_VALUE_REAL, .real = *(const double *)at};
	default:
		return (struct rls_value){.kind = RLS_VALUE_TEXT, .text = name_of(column, row, at)};
	}
}

bool rls_value_is_empty(const struct rls_value *value)
{
	switch (value->kind) {
	case RLS_VALUE_INTEGER:
		return !value->integer;
	case RLS_VALUE_SIGNED:
		return !value->number;
	case RLS_VALUE_REAL:
		return value->real == 0;
	case RLS_VALUE_TEXT:
		return !*value->text;
	default:
		return false;
	}
}

const char *rls_column_text(const struct rls_column *column, const struct rls_table_place *place,
			    char buffer[static RLS_COLUMN_NUMBER_BYTES])
{
	struct rls_value value = rls_column_value(column, place);

	switch (value.kind) {
	case RLS_VALUE_INTEGER:
		if (column->type == RLS_COLUMN_BOOL)
			return value.integer ? "true" : "false";
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRIu64, value.integer);
		return buffer;
	case RLS_VALUE_SIGNED:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRId64, value.number);
		return buffer;
	case RLS_VALUE_REAL:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%.15g", value.real);
		return buffer;
	case RLS_VALUE_TEXT:
		return value.text;
	default:
		return NULL;
	}
}

const char *const *rls_column_strings(const struct rls_column *column,
				      const struct rls_table_place *place, size_t *count)
{
	const char *row = holder_of(column, place);

	*count = *(const size_t *)(row + column->count_offset);
	return *(const char *const *const *)(row + column->offset);
}

bool rls_column_is_number(const struct rls_column *column)
{
	return column->type == RLS_COLUMN_U32 || column->type == RLS_COLUMN_U64 ||
	       column->type == RLS_COLUMN_I32 || column->type == RLS_COLUMN_I64 ||
	       column->type == RLS_COLUMN_DOUBLE || column->type == RLS_COLUMN_BOOL;
}

bool rls_column_is_flat(const struct rls_column *column)
{
	return !(column->flags & RLS_HIDDEN) && column->type != RLS_COLUMN_STRINGS;
}
