/* Warnings of a report, for formats that cannot hold them. */
#ifndef RLS_COMMANDS_WARNINGS_H
#define RLS_COMMANDS_WARNINGS_H

#include "analysis/writers/write.h"

/* Says the report's warnings on stderr where what the writer wrote has no room for them. */
void rls_warn_of_report(const struct rls_report *report, const struct rls_report_writer *writer);

#endif
