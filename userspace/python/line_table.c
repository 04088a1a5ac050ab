#include "userspace/python/line_table.h"

#define NO_LINE_DELTA (-128)
#define CODE_UNIT_BYTES 2

/* Kinds of a location entry. */
enum {
	LOCATION_ONE_LINE_FIRST = 10, /* this, and the two after it: 0, 1 or 2 lines on */
	LOCATION_ONE_LINE_LAST = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

static int32_t line_or_none(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? line : 0;
}

static int32_t find_in_pairs(const uint8_t *table, size_t bytes, int64_t line, uint32_t at)
{
	uint64_t address = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		address += table[i];
		if (address > at)
			break;
		line += (int8_t)table[i + 1];
	}
	return line_or_none(line);
}

static bool next_in_ranges(struct rls_line_cursor *cursor, struct rls_line_range *out)
{
	int8_t delta;

	if (cursor->end - cursor->here < 2)
		return false;
	delta = (int8_t)cursor->here[1];
	if (delta != NO_LINE_DELTA)
		cursor->line += delta;
	out->begin = (uint32_t)cursor->covered;
	cursor->covered += cursor->here[0];
	out->end = (uint32_t)cursor->covered;
	out->line = delta == NO_LINE_DELTA ? 0 : line_or_none(cursor->line);
	cursor->here += 2;
	return true;
}

/* Six bits a byte, least significant first, bit 6 set on all but the last; the sign is the
 * lowest bit of the whole. */
static int64_t signed_varint(const uint8_t *at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; at < end && shift < 36; shift += 6) {
		value |= (uint64_t)(*at & 0x3f) << shift;
		if (!(*at++ & 0x40))
			break;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static int64_t line_delta(unsigned int kind, const uint8_t *at, const uint8_t *end)
{
	if (kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG)
		return signed_varint(at, end);
	if (kind >= LOCATION_ONE_LINE_FIRST && kind <= LOCATION_ONE_LINE_LAST)
		return kind - LOCATION_ONE_LINE_FIRST;
	return 0;
}

/* Every entry begins with a byte of which the highest bit is set, and only that one. */
static bool next_in_locations(struct rls_line_cursor *cursor, struct rls_line_range *out)
{
	unsigned int kind;

	if (cursor->here >= cursor->end)
		return false;
	kind = (*cursor->here >> 3) & 15;
	out->begin = (uint32_t)cursor->covered;
	cursor->covered += ((*cursor->here & 7) + 1) * CODE_UNIT_BYTES;
	out->end = (uint32_t)cursor->covered;
	cursor->line += line_delta(kind, cursor->here + 1, cursor->end);
	out->line = kind == LOCATION_NONE ? 0 : line_or_none(cursor->line);
	do
		cursor->here++;
	while (cursor->here < cursor->end && !(*cursor->here & 0x80));
	return true;
}

struct rls_line_cursor rls_line_cursor_begin(enum rls_line_encoding encoding, const uint8_t *table,
					     size_t bytes, int32_t first_line)
{
	return (struct rls_line_cursor){
		.encoding = encoding,
		.here = table,
		.end = table + bytes,
		.line = first_line,
	};
}

bool rls_line_cursor_next(struct rls_line_cursor *cursor, struct rls_line_range *out)
{
	switch (cursor->encoding) {
	case RLS_LINES_PAIRS:
		return false;
	case RLS_LINES_RANGES:
		return next_in_ranges(cursor, out);
	case RLS_LINES_LOCATIONS:
		return next_in_locations(cursor, out);
	}
	return false;
}

int32_t rls_line_table_find(enum rls_line_encoding encoding, const uint8_t *table, size_t bytes,
			    int32_t first_line, uint32_t at)
{
	struct rls_line_cursor cursor = rls_line_cursor_begin(encoding, table, bytes, first_line);
	struct rls_line_range range;

	if (encoding == RLS_LINES_PAIRS)
		return find_in_pairs(table, bytes, first_line, at);
	while (rls_line_cursor_next(&cursor, &range))
		if (at < range.end)
			return range.line;
	return 0;
}
