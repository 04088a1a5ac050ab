/* Report writers: one per format, behind one table.
 *
 * A writer only shows: every figure is in the report it is given. A new format is one file
 * and one line in writer.c.
 */
#ifndef RLS_WRITER_H
#define RLS_WRITER_H

#include "analysis/report.h"

struct rls_report_writer {
	const char *name;           /* as --format takes it */
	/* Writes; failures of the stream are noticed by the caller. 0, or -ENOMEM. */
	int (*write)(const struct rls_report *report, FILE *output,
		     const struct rls_write_options *options);
};

extern const struct rls_report_writer rls_text_writer;
extern const struct rls_report_writer rls_json_writer;
extern const struct rls_report_writer rls_csv_writer;
extern const struct rls_report_writer rls_html_writer;

#endif
