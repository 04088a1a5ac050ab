/* Writing a report: the formats, and what they can be asked for.
 *
 * A format is found by its name; how it is made is writer.h's.
 */
#ifndef RLS_WRITE_H
#define RLS_WRITE_H

#include <stdio.h>

#include "analysis/report/report.h"
#include "analysis/report/tables.h"

/* What a table for people is sorted by: largest first, names by alphabet. */
enum rls_sort {
	RLS_SORT_TIME = 0,
	RLS_SORT_ON_CPU = 1,
	RLS_SORT_GPU = 2, /* time with the GPU busy */
	RLS_SORT_CORRECTED = 3,
	RLS_SORT_ERROR = 4,
	RLS_SORT_NAME = 5,
	RLS_SORT_MAX = 6,
};

/* "time", "on-cpu", "gpu", "corrected", "error", "name" to *out and 0; -EINVAL for another word. */
int rls_sort_parse(const char *name, enum rls_sort *out);

/* Which stacks a format shows that has room for one kind only. */
enum rls_stacks {
	RLS_STACKS_TRACED = 0,
	RLS_STACKS_SAMPLED = 1,
};

/* "traced", "sampled" to *out and 0; -EINVAL for another word. */
int rls_stacks_parse(const char *name, enum rls_stacks *out);

/* A report, and what the trace it is of is called. */
struct rls_named_report {
	const char *trace;
	const struct rls_report *report;
};

struct rls_write_options {
	bool colour; /* text: escape sequences of a terminal */
	unsigned int columns; /* text: width to fit; 0: 80 */
	unsigned int top; /* text: lines of each table, the rest in one more; 0: all */
	enum rls_sort sort; /* text */
	bool full; /* text: samples and memory down to the least */
	bool memory; /* text, pprof: memory alone */
	enum rls_report_table table; /* csv: which array */
	bool one_table; /* jsonl, sqlite: that table, not all */
	const struct rls_named_report
		*reports; /* sqlite: of several traces; none: the report alone, of */
	size_t report_count; /* a trace without a name */
	enum rls_stacks stacks; /* folded */
	struct rls_tracks *tracks; /* what rls_report_writer_tracks gave; borrowed */
};

/* Instead of a report by layer that has none. */
#define RLS_NO_LAYERS                                                                              \
	"no layers were recorded: the recording had --layers off, or no model ran in it"

/* Instead of a report about memory that has none. */
#define RLS_NO_MEMORY                                                                              \
	"no memory was recorded: the recording had --memory off, or saw nothing that allocates"

struct rls_report_writer; /* writer.h */

/* The writer of a format ("text", "json", "csv", "chrome", ...), or NULL. */
const struct rls_report_writer *rls_report_writer_find(const char *format);

/* Every format there is, for a message: "text, json, ...". */
#define RLS_WRITER_NAMES_BYTES 200
const char *rls_report_writer_names(char buffer[static RLS_WRITER_NAMES_BYTES]);

/* What it writes is nothing for a terminal. */
bool rls_report_writer_is_binary(const struct rls_report_writer *writer);

/* What it writes has no room for the report's warnings: they are to be said elsewhere. */
bool rls_report_writer_is_unwarned(const struct rls_report_writer *writer);

/* Several traces are several reports to it (rls_write_options.reports), not a merged one. */
bool rls_report_writer_is_separate(const struct rls_report_writer *writer);

/* Whether the format can be written to the file; path NULL is a stream. 0; -EINVAL: it needs a file;
 * -EEXIST: there is one that is none of this format's, which is to be left alone. */
int rls_report_writer_check(const struct rls_report_writer *writer, const char *path);

/* Formats that show the trace itself, not only its figures, begin to write while it is read:
 * *out is what to give rls_report_build_tracks, and rls_report_write in its options; NULL for
 * the other formats. 0, or -ENOMEM. Caller: rls_tracks_free() after writing. */
int rls_report_writer_tracks(const struct rls_report_writer *writer, FILE *output,
			     struct rls_tracks **out);
void rls_tracks_free(struct rls_tracks *tracks);

/* Writes and flushes. 0, or -errno when the output failed. options may be NULL: defaults.
 * -EINVAL when the format needs tracks and there are none. */
int rls_report_write(const struct rls_report *report, const struct rls_report_writer *writer,
		     FILE *output, const struct rls_write_options *options);

/* Colour and width as fits a stream: those of the terminal it is, if it is one
 * (NO_COLOR is respected); the table is left alone. */
void rls_write_options_fit(struct rls_write_options *options, FILE *output);

/* The JSON Schema (draft 2020-12) of the json form. Static storage. */
const char *rls_report_schema(void);

#endif
