/* Report writers: one per format, behind one table.
 *
 * A writer only shows: every figure is in the report it is given, every slice in the tracks. A
 * new format is one file, named here, in writer.c and in CMakeLists.txt. It either writes the
 * report once it is whole, or takes the trace as tracks (tracks.h) while the report is made.
 */
#ifndef RLS_WRITER_H
#define RLS_WRITER_H

#include "analysis/timeline/tracks.h"
#include "analysis/writers/write.h"

struct rls_report_writer {
	const char *name; /* as --format takes it */
	/* Writes; failures of the stream are noticed by the caller. 0, or -ENOMEM. NULL where
	 * the format is one of tracks. */
	int (*write)(const struct rls_report *report, FILE *output,
		     const struct rls_write_options *options);
	/* The format's side of the tracks, which writes to output; NULL when out of memory. */
	struct rls_track_sink *(*open)(FILE *output);
	bool binary; /* nothing for a terminal */
	bool unwarned; /* has no room for the report's warnings */
	bool separate; /* takes several reports, rather than one merged of them */
	/* The format is written to files only, and replaces only such ones. At the file's beginning. */
	bool (*is_own)(FILE *file);
};

extern const struct rls_report_writer rls_text_writer;
extern const struct rls_report_writer rls_json_writer;
extern const struct rls_report_writer rls_csv_writer;
extern const struct rls_report_writer rls_jsonl_writer;
extern const struct rls_report_writer rls_html_writer;
extern const struct rls_report_writer rls_sqlite_writer;
extern const struct rls_report_writer rls_folded_writer;
extern const struct rls_report_writer rls_chrome_writer;
extern const struct rls_report_writer rls_speedscope_writer;
extern const struct rls_report_writer rls_perfetto_writer;
extern const struct rls_report_writer rls_pprof_writer;

#endif
