/* Text for people: numbers with units, names made safe and cut to a width. */
#ifndef RLS_TEXT_FORMAT_H
#define RLS_TEXT_FORMAT_H

#include <stdint.h>
#include <stdio.h>

#include "analysis/report/rows.h"

#define RLS_TEXT_NUMBER_BYTES 40

/* "790 ns", "1.700 ms", "640.0 µs": four digits in the unit that fits, eight columns up to 999.9 s. */
const char *rls_text_ns(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t ns);
/* "790 B", "1.700 MiB": likewise. */
const char *rls_text_bytes(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t bytes);
/* "45 s", "12 min", "3 h 10 min", "12 days". */
const char *rls_text_duration(char buffer[static RLS_TEXT_NUMBER_BYTES], double seconds);
/* "1,234,567" */
const char *rls_text_count(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t count);
/* A count as well as it is known: "1,234" when every one was counted, else "~1.95 M ± 0.20 M"; "not
 * known" for RLS_COUNT_UNKNOWN. */
const char *rls_text_estimate(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t count,
			      uint64_t error, enum rls_method method);
/* The same of a time: "12.35 ms", "~12.35 ± 1.20 ms". */
const char *rls_text_estimate_ns(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t ns,
				 uint64_t error_ns, enum rls_method method);
/* "12.3%" of part in whole; "-" when the whole is 0. */
const char *rls_text_share(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t part,
			   uint64_t whole);

/* A bar of so many eighths of a column. */
void rls_text_bar(FILE *out, unsigned int eighths);

/* Columns of a terminal that the text takes when printed by rls_text_print. */
unsigned int rls_text_width(const char *text);

/* Prints UTF-8 text in exactly `columns` columns: padded on the right, or cut with an ellipsis.
 * 0 columns: as long as it is. Control characters, which could drive the terminal, become
 * '?': names come from the target. */
void rls_text_print(FILE *out, const char *text, unsigned int columns);

/* Prints a space and text that needs no care at the right end of `width` columns. */
void rls_text_print_right(FILE *out, const char *text, unsigned int width);

#endif
