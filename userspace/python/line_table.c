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

static int32_t find_in_ranges(const uint8_t *table, size_t bytes, int64_t line, uint32_t at)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < bytes; i += 2) {
		int8_t delta = table[i + 1];

		end += table[i];
		if (delta != NO_LINE_DELTA)
			line += delta;
		if (at < end)
			return delta == NO_LINE_DELTA ? 0 : line_or_none(line);
	}
	return 0;
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
static int32_t find_in_locations(const uint8_t *table, size_t bytes, int64_t line, uint32_t at)
{
	const uint8_t *here = table, *end = table + bytes;
	uint64_t covered = 0;

	while (here < end) {
		unsigned int kind = (*here >> 3) & 15;

		covered += ((*here & 7) + 1) * CODE_UNIT_BYTES;
		line += line_delta(kind, here + 1, end);
		if (at < covered)
			return kind == LOCATION_NONE ? 0 : line_or_none(line);
		do
			here++;
		while (here < end && !(*here & 0x80));
	}
	return 0;
}

int32_t rls_line_table_find(enum rls_line_encoding encoding, const uint8_t *table, size_t bytes,
			    int32_t first_line, uint32_t at)
{
	switch (encoding) {
	case RLS_LINES_PAIRS:
		return find_in_pairs(table, bytes, first_line, at);
	case RLS_LINES_RANGES:
		return find_in_ranges(table, bytes, first_line, at);
	case RLS_LINES_LOCATIONS:
		return find_in_locations(table, bytes, first_line, at);
	}
	return 0;
}
