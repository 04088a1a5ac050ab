#include "analysis/report/report_edit.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"

int rls_report_new(struct rls_report **out)
{
	struct rls_report *report = calloc(1, sizeof(*report));

	if (!report)
		return -ENOMEM;
	report->strings = rls_string_pool_new();
	if (!report->strings) {
		free(report);
		return -ENOMEM;
	}
	report->tool = report->kernel = report->boot = "";
	report->gpus = "[]";
	*out = report;
	return 0;
}

const char *rls_report_keep(struct rls_report *report, const char *text, int *err)
{
	rls_string_id id;
	int add_err = rls_string_pool_add(report->strings, text, strlen(text), &id);

	if (add_err) {
		*err = add_err;
		return "";
	}
	return rls_string_pool_get(report->strings, id);
}

int rls_report_warn(struct rls_report *report, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	const char **warnings;
	va_list arguments;
	int length, err = 0;

	va_start(arguments, format);
	length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		text = NULL;
		return -ENOMEM;
	}
	warnings = reallocarray(report->warnings, report->warning_count + 1, sizeof(*warnings));
	if (!warnings)
		return -ENOMEM;
	report->warnings = warnings;
	warnings[report->warning_count] = rls_report_keep(report, text, &err);
	report->warning_count += !err;
	return err;
}

void rls_report_set_percent(struct rls_report *report)
{
	double wall_ns = 0;

	for (size_t i = 0; i < report->thread_count; i++)
		wall_ns += (double)report->threads[i].wall_ns;
	report->overhead.percent =
		wall_ns > 0 ? 100.0 * (double)report->overhead.estimated_ns / wall_ns : 0;
}
