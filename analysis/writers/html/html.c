/* The HTML form: the JSON form and the threads' overviews as data blocks of one page, and the
 * scripts of html/ that show them. No figure is made here that JSON does not have.
 */
#include <errno.h>
#include <inttypes.h>

#include "analysis/base/utf8.h"
#include "analysis/writers/embedded.h"
#include "analysis/writers/html/html_overview.h"
#include "analysis/writers/html/html_page.h"
#include "analysis/writers/writer.h"

#define TITLE_BYTES 256
#define NAME_BYTES_MAX 200 /* of it; more would only fill the window's frame */

static int write_model(const struct rls_report *report, FILE *out,
		       const struct rls_write_options *options)
{
	FILE *stream = rls_html_data_open(out, "model");
	int err, closed;

	if (!stream)
		return -ENOMEM;
	err = rls_json_writer.write(report, stream, options);
	closed = rls_html_data_close(out, stream);
	return err ? err : closed;
}

static int write_overview(const struct rls_report *report, FILE *out)
{
	FILE *stream = rls_html_data_open(out, "overview");
	int err, closed;

	if (!stream)
		return -ENOMEM;
	err = rls_html_overview_write(report, stream);
	closed = rls_html_data_close(out, stream);
	return err ? err : closed;
}

static void make_title(const struct rls_report *report, char title[static TITLE_BYTES])
{
	const char *name = report->process_count ? report->processes[0].name : "";

	if (report->process_count == 1)
		snprintf(title, TITLE_BYTES, "%.*s (%" PRIu32 ")",
			 (int)rls_utf8_cut(name, NAME_BYTES_MAX), name, report->processes[0].pid);
	else
		snprintf(title, TITLE_BYTES, "%zu processes", report->process_count);
}

static int write_html(const struct rls_report *report, FILE *out,
		      const struct rls_write_options *options)
{
	static const char *const scripts[] = {
		rls_dom_js,      rls_model_js,  rls_bars_js,   rls_table_js, rls_sections_js,
		rls_timeline_js, rls_memory_js, rls_report_js, NULL,
	};
	char title[TITLE_BYTES];
	int err;

	make_title(report, title);
	rls_html_begin(out, title, rls_report_html);
	err = write_model(report, out, options);
	if (!err)
		err = write_overview(report, out);
	if (!err)
		rls_html_end(out, scripts);
	return err;
}

const struct rls_report_writer rls_html_writer = {.name = "html", .write = write_html};
