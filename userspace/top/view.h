/* View: rates as a table for a terminal, or as a line of JSON. */
#ifndef RLS_TOP_VIEW_H
#define RLS_TOP_VIEW_H

#include <stdbool.h>
#include <stdio.h>

#include "userspace/top/rates.h"

struct rls_top_view {
	unsigned int columns; /* lines are cut to them */
	unsigned int lines; /* of the terminal, the last left free; 0: as many as it takes */
	bool colour;
};

void rls_top_write_text(FILE *out, const struct rls_rates *rates, const struct rls_top_view *view);

/* One object and a line end:
 * {"elapsed_ns":0,"lost":0,"jobs":[{"job":"","container":"","processes":0,"total_ns":0,
 *  "categories":{"python":0,...},"on_gpu_ns":0,"gpu_busy_ns":0,"gpu_smi_style_ns":0,
 *  "overhead_ns":0,"transitions":0,"operations":[{"operation":"","total_ns":0,"categories":{...},
 *  "on_gpu_ns":0,"transitions":0,"estimated":false}]}]} */
void rls_top_write_json(FILE *out, const struct rls_rates *rates);

#endif
