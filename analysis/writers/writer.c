#include "analysis/writers/writer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"

static const struct rls_report_writer *const writers[] = {
	&rls_text_writer,       &rls_json_writer,  &rls_csv_writer,      &rls_jsonl_writer,
	&rls_sqlite_writer,     &rls_html_writer,  &rls_perfetto_writer, &rls_chrome_writer,
	&rls_speedscope_writer, &rls_pprof_writer, &rls_folded_writer,
};

#define WRITER_COUNT (sizeof(writers) / sizeof(*writers))

const struct rls_report_writer *rls_report_writer_find(const char *format)
{
	for (size_t i = 0; i < WRITER_COUNT; i++) {
		if (!strcmp(format, writers[i]->name))
			return writers[i];
	}
	return NULL;
}

const char *rls_report_writer_names(char buffer[static RLS_WRITER_NAMES_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < WRITER_COUNT && used < RLS_WRITER_NAMES_BYTES; i++)
		used += (size_t)snprintf(buffer + used, RLS_WRITER_NAMES_BYTES - used, "%s%s",
					 i ? ", " : "", writers[i]->name);
	return buffer;
}

bool rls_report_writer_is_binary(const struct rls_report_writer *writer)
{
	return writer->binary;
}

bool rls_report_writer_is_unwarned(const struct rls_report_writer *writer)
{
	return writer->unwarned;
}

bool rls_report_writer_is_separate(const struct rls_report_writer *writer)
{
	return writer->separate;
}

int rls_report_writer_check(const struct rls_report_writer *writer, const char *path)
{
	_cleanup_fclose_ FILE *file = NULL;
	struct stat status;

	if (!writer->is_own)
		return 0;
	if (!path)
		return -EINVAL;
	if (stat(path, &status) || !S_ISREG(status.st_mode))
		return 0;
	file = fopen(path, "re");
	return file && writer->is_own(file) ? 0 : -EEXIST;
}

int rls_report_writer_tracks(const struct rls_report_writer *writer, FILE *output,
			     struct rls_tracks **out)
{
	struct rls_track_sink *sink = writer->open ? writer->open(output) : NULL;

	*out = sink ? rls_tracks_new(sink) : NULL;
	return writer->open && !*out ? -ENOMEM : 0;
}

static int write_form(const struct rls_report *report, const struct rls_report_writer *writer,
		      FILE *output, const struct rls_write_options *options)
{
	if (writer->write)
		return writer->write(report, output, options);
	return options->tracks ? rls_tracks_finish(options->tracks, report) : -EINVAL;
}

int rls_report_write(const struct rls_report *report, const struct rls_report_writer *writer,
		     FILE *output, const struct rls_write_options *options)
{
	static const struct rls_write_options plain;
	int err;

	errno = 0;
	err = write_form(report, writer, output, options ? options : &plain);
	if (err)
		return err;
	if (fflush(output) || ferror(output))
		return errno ? -errno : -EIO;
	return 0;
}

void rls_write_options_fit(struct rls_write_options *options, FILE *output)
{
	const char *no_colour = getenv("NO_COLOR");
	struct winsize size = {0};
	int fd = fileno(output);

	options->colour = false;
	options->columns = 0;
	if (fd < 0 || !isatty(fd))
		return;
	options->colour = !no_colour || !*no_colour;
	if (!ioctl(fd, TIOCGWINSZ, &size))
		options->columns = size.ws_col;
}
