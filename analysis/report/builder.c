#include "analysis/report/builder.h"

void *rls_build_row(struct rls_builder *b, enum rls_report_table table)
{
	void *row = NULL;

	if (!b->err)
		b->err = rls_table_add(b->report, table, &b->capacity[table], &row);
	return row;
}
