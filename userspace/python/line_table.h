/* Line tables of CPython's code objects: instruction → source line. Pure.
 *
 * Three encodings (Objects/lnotab_notes.txt, Objects/locations.md of CPython; all checked
 * against co_lines() of real interpreters in tests/names):
 *   RLS_LINES_PAIRS      3.8, 3.9   pairs (bytes of code, lines), lines cumulative
 *   RLS_LINES_RANGES     3.10       pairs (bytes of code, lines), -128: no line
 *   RLS_LINES_LOCATIONS  3.11+      one entry per stretch of code units, 6-bit varints
 */
#ifndef RLS_LINE_TABLE_H
#define RLS_LINE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rls_line_encoding {
	RLS_LINES_PAIRS,
	RLS_LINES_RANGES,
	RLS_LINES_LOCATIONS,
};

/* Line of the instruction at byte offset `at` of the code; 0: it has none (made by the
 * compiler), the table ends before it, or what the table says is no line. Never reads
 * beyond bytes, whatever the table holds. */
int32_t rls_line_table_find(enum rls_line_encoding encoding, const uint8_t *table, size_t bytes,
			    int32_t first_line, uint32_t at);

/* Bytes of code from begin to before end; line 0: these have none. */
struct rls_line_range {
	uint32_t begin, end;
	int32_t line;
};

/* Goes through the ranges of a table, of 3.10 and later: older ones have a line for every
 * instruction. The table is borrowed. */
struct rls_line_cursor {
	enum rls_line_encoding encoding;
	const uint8_t *here, *end;
	int64_t line;
	uint64_t covered;
};

struct rls_line_cursor rls_line_cursor_begin(enum rls_line_encoding encoding, const uint8_t *table,
					     size_t bytes, int32_t first_line);
/* False: that was the last one. */
bool rls_line_cursor_next(struct rls_line_cursor *cursor, struct rls_line_range *out);

#endif
