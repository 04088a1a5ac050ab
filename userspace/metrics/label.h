/* Label values of the Prometheus text format, from texts that targets chose.
 *
 * A clean label is valid UTF-8 without control characters other than tab and newline, shorter
 * than RLS_LABEL_BYTES. Two texts may have one clean form, so the clean form identifies a series.
 */
#ifndef RLS_LABEL_H
#define RLS_LABEL_H

#include <stdio.h>

#define RLS_LABEL_BYTES 256

/* The clean form, NUL-terminated: what is invalid becomes U+FFFD, what is too long is cut
 * between characters. Cleaning again changes nothing. */
void rls_label_clean(const char *text, char out[static RLS_LABEL_BYTES]);

/* name="value", the value cleaned and escaped. name needs neither. */
void rls_label_write(FILE *out, const char *name, const char *text);

#endif
