#include "userspace/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool verbose_on, muted;

/* Under the lock of stderr. */
static struct {
	char *texts[RLS_WARNINGS_KEPT];
	size_t count, taken;
} kept;

void rls_log_set_verbose(bool verbose)
{
	verbose_on = verbose;
}

void rls_log_set_muted(bool on)
{
	muted = on;
}

bool rls_log_verbose(void)
{
	return verbose_on;
}

/* Bytes of the UTF-8 character at text, 0 when it is none (or a control character). */
static size_t character_bytes(const unsigned char *text)
{
	static const struct {
		unsigned char mask, lead;
	} forms[] = {{0x80, 0x00}, {0xe0, 0xc0}, {0xf0, 0xe0}, {0xf8, 0xf0}};
	size_t more = 0;

	if (text[0] < 0x20 || text[0] == 0x7f || (text[0] == 0xc2 && text[1] < 0xa0))
		return 0;
	while (more < 4 && (text[0] & forms[more].mask) != forms[more].lead)
		more++;
	for (size_t i = 1; i <= more && more < 4; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	}
	return more < 4 ? more + 1 : 0;
}

static void put_printable(const char *text)
{
	while (*text) {
		size_t bytes = character_bytes((const unsigned char *)text);

		if (bytes)
			fwrite(text, 1, bytes, stderr);
		else
			fputc('?', stderr);
		text += bytes ? bytes : 1;
	}
}

static bool is_kept(const char *text)
{
	for (size_t i = 0; i < kept.count; i++) {
		if (!strcmp(kept.texts[i], text))
			return true;
	}
	return false;
}

static void keep(const char *text)
{
	char *copy;

	if (kept.count == RLS_WARNINGS_KEPT || is_kept(text))
		return;
	copy = strdup(kept.count < RLS_WARNINGS_KEPT - 1 ? text
							 : "the recorder has said more than is "
							   "kept: the rest is on its stderr alone");
	if (copy)
		kept.texts[kept.count++] = copy;
}

const char *rls_log_take_warning(void)
{
	const char *text = NULL;

	flockfile(stderr);
	if (kept.taken < kept.count)
		text = kept.texts[kept.taken++];
	funlockfile(stderr);
	return text;
}

bool rls_log_has_warned(const char *text)
{
	bool found;

	flockfile(stderr);
	found = is_kept(text);
	funlockfile(stderr);
	return found;
}

static void print_line(const char *prefix, bool keeps, const char *format, va_list arguments)
{
	char text[4096];

	if (muted)
		return;
	vsnprintf(text, sizeof(text), format, arguments);
	flockfile(stderr);
	if (keeps)
		keep(text);
	fputs(prefix, stderr);
	put_printable(text);
	fputc('\n', stderr);
	funlockfile(stderr);
}

#define PRINT_LINE(prefix, keeps)                                                                  \
	do {                                                                                       \
		va_list arguments_;                                                                \
		va_start(arguments_, format);                                                      \
		print_line(prefix, keeps, format, arguments_);                                     \
		va_end(arguments_);                                                                \
	} while (0)

void rls_error(const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: ", true);
}

void rls_warning(const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: warning: ", true);
}

void rls_warning_list(const char *format, va_list arguments)
{
	print_line("rlscope-bpf: warning: ", true, format, arguments);
}

void rls_info(const char *format, ...)
{
	PRINT_LINE("", false);
}

void rls_debug(const char *format, ...)
{
	if (verbose_on)
		PRINT_LINE("rlscope-bpf: debug: ", false);
}

int rls_error_r(int error, const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: ", true);
	return error;
}
