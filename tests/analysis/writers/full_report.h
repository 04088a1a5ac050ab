/* A report to write, and how it is written. */
#ifndef RLS_TEST_FULL_REPORT_H
#define RLS_TEST_FULL_REPORT_H

#include "analysis/writers/write.h"
#include "tests/analysis/breakdown/script.h"

/* One of everything, with names as bad as names can be. The report is the caller's, who ends the script. */
struct rls_report *full_report(struct script *script);

/* In that format; the text is the caller's. */
char *render(const struct rls_report *report, const char *format,
	     const struct rls_write_options *options);

#endif
