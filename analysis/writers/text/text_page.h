/* The page the text form is written on: where to, how wide, in colour or not. */
#ifndef RLS_TEXT_PAGE_H
#define RLS_TEXT_PAGE_H

#include "analysis/writers/text/text_format.h"
#include "analysis/writers/text/text_view.h"
#include "analysis/writers/write.h"

#define RLS_PAGE_COLUMNS 80

struct rls_page {
	FILE *out;
	bool colour;
	unsigned int columns;
	bool cut; /* lines end with the columns: a terminal's */
	bool full; /* nothing is left out for being little */
	bool memory; /* about memory alone */
	unsigned int top; /* of each table, the rest in one line; 0: all */
	enum rls_sort sort;
	const struct rls_report *report;
};

enum rls_style {
	RLS_STYLE_HEADING,
	RLS_STYLE_FAINT,
	RLS_STYLE_WARNING,
};

/* A category's own colour, where the page has colours; ended by rls_page_plain. */
void rls_page_category(const struct rls_page *page, enum rls_category category);

/* Everything printed between the two is in the style, where the page has colours. */
void rls_page_style(const struct rls_page *page, enum rls_style style);
void rls_page_plain(const struct rls_page *page);

/* Its name, "process" where it has none. */
const char *rls_page_process_name(const struct rls_process_entry *process);

/* What a table's lines are called by: "(no operation)", "name (tid)", ... `process` may be NULL. */
const char *rls_page_label(const struct rls_page *page, const struct rls_process_entry *process,
			   const struct rls_view_key *key, char *buffer, size_t buffer_bytes);

/* The sections about one process, or about all (process NULL). 0, or -ENOMEM. */
int rls_page_breakdown(const struct rls_page *page, const struct rls_process_entry *process);
int rls_page_transitions(const struct rls_page *page, const struct rls_process_entry *process);
/* Where its samples fell: by line, function or file as the report is grouped, else the hottest
 * lines. Nothing without samples. */
int rls_page_samples(const struct rls_page *page, const struct rls_process_entry *process);
/* Its memory, and the lines that allocated. Nothing where no line did, unless the page is about it. */
int rls_page_memory(const struct rls_page *page, const struct rls_process_entry *process);
/* Its layers, as the report is grouped. Nothing where no layer is known. 0 or -ENOMEM. */
int rls_page_layers(const struct rls_page *page, const struct rls_process_entry *process);
/* Whether they are what the report is about. */
bool rls_page_is_layered(const struct rls_page *page);
/* Running time by category as traced beside as sampled. Nothing without samples. */
void rls_page_cross_check(const struct rls_page *page, const struct rls_process_entry *process);
/* Whether that is what the report is about. */
bool rls_page_is_sampled(const struct rls_page *page);

/* A process's GPUs, its calls into CUDA, and both by operation. 0, or -ENOMEM. */
int rls_page_cuda(const struct rls_page *page, const struct rls_process_entry *process);

#endif
