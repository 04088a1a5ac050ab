#include "userspace/log.h"

#include <stdarg.h>
#include <stdio.h>

static bool verbose_on;

void rls_log_set_verbose(bool verbose)
{
	verbose_on = verbose;
}

bool rls_log_verbose(void)
{
	return verbose_on;
}

static void print_line(const char *prefix, const char *format, va_list arguments)
{
	flockfile(stderr);
	fputs(prefix, stderr);
	vfprintf(stderr, format, arguments);
	fputc('\n', stderr);
	funlockfile(stderr);
}

#define PRINT_LINE(prefix)                            \
	do {                                          \
		va_list arguments_;                   \
		va_start(arguments_, format);         \
		print_line(prefix, format, arguments_); \
		va_end(arguments_);                   \
	} while (0)

void rls_error(const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: ");
}

void rls_warning(const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: warning: ");
}

void rls_info(const char *format, ...)
{
	PRINT_LINE("");
}

void rls_debug(const char *format, ...)
{
	if (verbose_on)
		PRINT_LINE("rlscope-bpf: debug: ");
}

int rls_error_r(int error, const char *format, ...)
{
	PRINT_LINE("rlscope-bpf: ");
	return error;
}

int rls_debug_r(int error, const char *format, ...)
{
	if (verbose_on)
		PRINT_LINE("rlscope-bpf: debug: ");
	return error;
}
