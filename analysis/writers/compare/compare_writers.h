/* A comparison as text, JSON and a page. */
#ifndef RLS_COMPARE_WRITERS_H
#define RLS_COMPARE_WRITERS_H

#include <stdio.h>

#include "analysis/compare/comparison.h"

/* Side 0 is what the others are compared with. */
struct rls_compare_side {
	const struct rls_compare_run *runs;
	size_t run_count;
	struct rls_comparison comparison; /* with side 0; of side 0 empty */
};

/* Failures of the stream are the caller's to notice. */
void rls_compare_write_text(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);
void rls_compare_write_json(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);
void rls_compare_write_html(FILE *out, const struct rls_compare_side *sides, size_t count,
			    const struct rls_compare_options *options);

#endif
