#include "userspace/commands/shared/warnings.h"

#include "userspace/base/log.h"

void rls_warn_of_report(const struct rls_report *report, const struct rls_report_writer *writer)
{
	if (!rls_report_writer_is_unwarned(writer))
		return;
	for (size_t i = 0; i < report->warning_count; i++)
		rls_warning("%s", report->warnings[i]);
}
