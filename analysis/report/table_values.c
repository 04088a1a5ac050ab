/* What a column's value looks like as text. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "analysis/event/sample_kind.h"
#include "analysis/report/tables.h"

static bool is_unknown(const struct rls_column *column, const void *value)
{
	return column->type == RLS_COLUMN_DOUBLE ? isnan(*(const double *)value)
						 : *(const uint64_t *)value == RLS_COUNT_UNKNOWN;
}

static const char *name_of(const struct rls_column *column, const void *row, const void *value)
{
	switch (column->type) {
	case RLS_COLUMN_BOOL:
		return *(const bool *)value ? "true" : "false";
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
	default:
		return "";
	}
}

static const void *holder_of(const struct rls_column *column, const struct rls_table_place *place)
{
	return column->flags & RLS_OUTER ? place->outer : place->row;
}

const char *rls_column_text(const struct rls_column *column, const struct rls_table_place *place,
			    char buffer[static RLS_COLUMN_NUMBER_BYTES])
{
	const void *row = holder_of(column, place);
	const void *value = (const char *)row + column->offset;

	if (column->flags & RLS_NULLABLE && is_unknown(column, value))
		return NULL;
	switch (column->type) {
	case RLS_COLUMN_U32:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRIu32, *(const uint32_t *)value);
		return buffer;
	case RLS_COLUMN_U64:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%" PRIu64, *(const uint64_t *)value);
		return buffer;
	case RLS_COLUMN_DOUBLE:
		snprintf(buffer, RLS_COLUMN_NUMBER_BYTES, "%.15g", *(const double *)value);
		return buffer;
	default:
		return name_of(column, row, value);
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
	       column->type == RLS_COLUMN_DOUBLE || column->type == RLS_COLUMN_BOOL;
}

bool rls_column_is_flat(const struct rls_column *column)
{
	return !(column->flags & RLS_HIDDEN) && column->type != RLS_COLUMN_STRINGS;
}
