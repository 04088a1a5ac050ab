/* Grouping: sums rows over what does not distinguish them. */
#include <errno.h>
#include <string.h>

#include "analysis/report/report.h"
#include "analysis/report/tables.h"

#define BY_SUMMED_PLACE (RLS_BY_FILE | RLS_BY_FUNCTION | RLS_BY_LINE)
#define BY_LAYERS (RLS_BY_LAYER | RLS_BY_LAYER_TYPE | RLS_BY_PASS)
#define BY_ALL                                                                                     \
	(RLS_BY_THREAD | RLS_BY_PHASE | RLS_BY_OPERATION | RLS_BY_PLACE | BY_SUMMED_PLACE |        \
	 BY_LAYERS)

/* Which columns a group keeps; the pid is kept by all. */
static const struct {
	const char *name;
	unsigned int kept;
} groups[] = {
	[RLS_GROUP_NONE] = {"none", BY_ALL},
	[RLS_GROUP_PROCESS] = {"process", BY_LAYERS | RLS_BY_PLACE},
	[RLS_GROUP_THREAD] = {"thread", BY_LAYERS | RLS_BY_PLACE | RLS_BY_THREAD},
	[RLS_GROUP_OPERATION] = {"operation", BY_LAYERS | RLS_BY_PLACE | RLS_BY_OPERATION},
	[RLS_GROUP_PHASE] = {"phase", BY_LAYERS | RLS_BY_PLACE | RLS_BY_PHASE},
	[RLS_GROUP_LINE] = {"line", BY_LAYERS | RLS_BY_PLACE | BY_SUMMED_PLACE},
	[RLS_GROUP_FUNCTION] = {"function",
				BY_LAYERS | RLS_BY_PLACE | RLS_BY_FILE | RLS_BY_FUNCTION},
	[RLS_GROUP_FILE] = {"file", BY_LAYERS | RLS_BY_FILE},
	/* A call may have several passes: calls of several are no figure. */
	[RLS_GROUP_LAYER] = {"layer", RLS_BY_PLACE | BY_LAYERS},
	[RLS_GROUP_LAYER_TYPE] = {"layer-type", RLS_BY_PLACE | RLS_BY_LAYER_TYPE | RLS_BY_PASS},
	[RLS_GROUP_PASS] = {"pass", RLS_BY_PLACE | RLS_BY_PASS},
};
_Static_assert(sizeof(groups) / sizeof(*groups) == RLS_GROUP_MAX, "a line per group");

int rls_group_parse(const char *name, enum rls_group *out)
{
	for (int i = RLS_GROUP_PROCESS; i < RLS_GROUP_MAX; i++) {
		if (!strcmp(name, groups[i].name)) {
			*out = i;
			return 0;
		}
	}
	return -EINVAL;
}

static void blank_row(const struct rls_table *table, char *row, unsigned int blanked)
{
	for (size_t i = 0; i < table->column_count; i++) {
		const struct rls_column *column = &table->columns[i];

		if (!(column->flags & blanked))
			continue;
		if (column->type == RLS_COLUMN_STRING)
			*(const char **)(row + column->offset) = "";
		else if (column->type == RLS_COLUMN_U64)
			*(uint64_t *)(row + column->offset) =
				column->flags & RLS_NULLABLE ? RLS_COUNT_UNKNOWN : 0;
		else
			*(uint32_t *)(row + column->offset) = 0;
	}
	if (table->over_operations && blanked & RLS_BY_OPERATION)
		table->over_operations(row);
}

void rls_report_group(struct rls_report *report, enum rls_group group)
{
	unsigned int blanked = BY_ALL & ~groups[group].kept;

	for (int table = 0; blanked && table < RLS_TABLE_ALL; table++) {
		if (!(rls_report_tables[table].flags & RLS_TABLE_GROUPED))
			continue;
		for (size_t i = 0; i < rls_table_count(report, table); i++)
			blank_row(&rls_report_tables[table], rls_table_row(report, table, i),
				  blanked);
		rls_table_sum(report, table);
	}
	report->group = group;
}
