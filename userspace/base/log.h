/* Messages for the user. Everything goes to stderr; stdout belongs to the report.
 *
 * Each message is one line, one sentence, begun with "rlscope-bpf: " (and "warning: ").
 * Messages quote what targets and files say: whatever a terminal could take for a command
 * (control characters) or could not show (no UTF-8) comes out as '?'.
 * The r-forms return their first argument, a negative errno, so that failing reads
 *
 *     return rls_error_r(-ENOENT, "no process with pid %d", pid);
 */
#ifndef RLS_LOG_H
#define RLS_LOG_H

#include <stdarg.h>
#include <stdbool.h>

void rls_log_set_verbose(bool verbose);
bool rls_log_verbose(void);

/* Warnings and errors are kept, each once and RLS_WARNINGS_KEPT at most, so that they can be put
 * into a trace as well: who reads the report later sees what was said here. What comes after those is
 * on stderr alone, and the last that is kept says so. */
#define RLS_WARNINGS_KEPT 1000
/* The oldest kept one that was not taken yet, without its prefix; NULL: there is none. It is kept
 * on, and lasts as long as the process. */
const char *rls_log_take_warning(void);
/* Whether this process has said so. */
bool rls_log_has_warned(const char *text);

/* Shows no messages while it is on: for trials whose outcome is reported in another way. */
void rls_log_set_muted(bool on);

void rls_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rls_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));
void rls_warning_list(const char *format, va_list arguments) __attribute__((format(printf, 1, 0)));
/* A plain line without prefix: progress, the `recording` line. */
void rls_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Shown with --verbose only. */
void rls_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));

int rls_error_r(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
