#include "analysis/writers/text/text_page.h"

#include <inttypes.h>

void rls_page_style(const struct rls_page *page, enum rls_style style)
{
	static const char *const escapes[] = {
		[RLS_STYLE_HEADING] = "\033[1m",
		[RLS_STYLE_FAINT] = "\033[2m",
		[RLS_STYLE_WARNING] = "\033[33m",
	};

	if (page->colour)
		fputs(escapes[style], page->out);
}

void rls_page_category(const struct rls_page *page, enum rls_category category)
{
	static const char *const escapes[RLS_CATEGORY_MAX] = {
		[RLS_CATEGORY_UNKNOWN] = "\033[90m",   [RLS_CATEGORY_PYTHON] = "\033[34m",
		[RLS_CATEGORY_SIMULATOR] = "\033[32m", [RLS_CATEGORY_BACKEND] = "\033[33m",
		[RLS_CATEGORY_CUDA_API] = "\033[35m",  [RLS_CATEGORY_NATIVE] = "\033[36m",
	};

	if (page->colour)
		fputs(escapes[category], page->out);
}

void rls_page_plain(const struct rls_page *page)
{
	if (page->colour)
		fputs("\033[0m", page->out);
}

const char *rls_page_process_name(const struct rls_process_entry *process)
{
	return *process->name ? process->name : "process";
}

static const char *thread_name(const struct rls_report *report, uint32_t tid)
{
	for (size_t i = 0; i < report->thread_count; i++) {
		const struct rls_thread_entry *thread = &report->threads[i];

		if (thread->tid == tid && *thread->name)
			return thread->name;
	}
	return "thread";
}

const char *rls_page_label(const struct rls_page *page, const struct rls_process_entry *process,
			   const struct rls_view_key *key, char *buffer, size_t buffer_bytes)
{
	switch (page->report->group) {
	case RLS_GROUP_PROCESS:
		return process ? rls_page_process_name(process) : "all processes";
	case RLS_GROUP_THREAD:
		snprintf(buffer, buffer_bytes, "%s (%" PRIu32 ")",
			 thread_name(page->report, key->tid), key->tid);
		return buffer;
	case RLS_GROUP_PHASE:
		return *key->label ? key->label : "(no phase)";
	default:
		return *key->label ? key->label : "(no operation)";
	}
}
