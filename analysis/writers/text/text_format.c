#include "analysis/writers/text/text_format.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define NS_PER_US 1000.0
#define NS_PER_MS 1000000.0
#define NS_PER_S 1000000000.0
#define INCOMPLETE 0x7f
#define COUNTED_OUT_BELOW 10000

struct unit {
	double size;
	const char *name;
};

static const struct unit time_units[] = {
	{NS_PER_S, "s"},
	{NS_PER_MS, "ms"},
	{NS_PER_US, "µs"},
	{1, "ns"},
};
static const struct unit byte_units[] = {
	{0x1p60, "EiB"}, {0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"},
	{0x1p20, "MiB"}, {0x1p10, "KiB"}, {1, "B"},
};
static const struct unit count_units[] = {
	{1e18, "E"}, {1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"},
};

/* In the unit that fits, the last of which is 1. */
static const char *in_units(char buffer[static RLS_TEXT_NUMBER_BYTES], const struct unit *unit,
			    uint64_t number)
{
	double value;

	while (unit->size > 1 && (double)number < unit->size)
		unit++;
	value = (double)number / unit->size;
	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.*f %s",
		 unit->size == 1 ? 0
		 : value < 10    ? 3
		 : value < 100   ? 2
				 : 1,
		 value, unit->name);
	return buffer;
}

const char *rls_text_ns(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t ns)
{
	return in_units(buffer, time_units, ns);
}

const char *rls_text_bytes(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t bytes)
{
	return in_units(buffer, byte_units, bytes);
}

const char *rls_text_duration(char buffer[static RLS_TEXT_NUMBER_BYTES], double seconds)
{
	double minutes = floor(seconds / 60);

	if (seconds < 120)
		snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.0f s", seconds);
	else if (minutes < 120)
		snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.0f min", minutes);
	else if (minutes < 2.0 * 24 * 60)
		snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.0f h %.0f min", floor(minutes / 60),
			 fmod(minutes, 60));
	else
		snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.3g days", seconds / 86400);
	return buffer;
}

const char *rls_text_estimate_ns(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t ns,
				 uint64_t error_ns, enum rls_method method)
{
	const struct unit *unit = time_units;
	double value;
	int digits;

	if (ns == RLS_COUNT_UNKNOWN)
		return "not known";
	if (method == RLS_METHOD_TRACED && !error_ns)
		return rls_text_ns(buffer, ns);
	while (unit->size > 1 && (double)ns < unit->size)
		unit++;
	value = (double)ns / unit->size;
	digits = unit->size == 1 ? 0 : value < 10 ? 2 : value < 100 ? 1 : 0;
	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%s%.*f ± %.*f %s",
		 method == RLS_METHOD_TRACED ? "" : "~", digits, value, digits,
		 (double)error_ns / unit->size, unit->name);
	return buffer;
}

const char *rls_text_count(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t count)
{
	char digits[RLS_TEXT_NUMBER_BYTES];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	char *to = buffer;

	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			*to++ = ',';
		*to++ = digits[i];
	}
	*to = '\0';
	return buffer;
}

const char *rls_text_estimate(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t count,
			      uint64_t error, enum rls_method method)
{
	char exact[RLS_TEXT_NUMBER_BYTES], off[RLS_TEXT_NUMBER_BYTES];
	const char *about = method == RLS_METHOD_TRACED ? "" : "~";
	const struct unit *unit = count_units;
	double value;
	int digits;

	if (count == RLS_COUNT_UNKNOWN)
		return "not known";
	if (method == RLS_METHOD_TRACED && !error)
		return rls_text_count(buffer, count);
	if (count < COUNTED_OUT_BELOW && error < COUNTED_OUT_BELOW) {
		snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%s%s ± %s", about,
			 rls_text_count(exact, count), rls_text_count(off, error));
		return buffer;
	}
	/* As wide as 999 may be in a unit once it is rounded. */
	while (unit->size > 1e3 && (double)(count > error ? count : error) < 0.9995 * unit->size)
		unit++;
	value = (double)count / unit->size;
	digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%s%.*f %s ± %.*f %s", about, digits, value,
		 unit->name, digits, (double)error / unit->size, unit->name);
	return buffer;
}

const char *rls_text_share(char buffer[static RLS_TEXT_NUMBER_BYTES], uint64_t part, uint64_t whole)
{
	if (!whole)
		return "-";
	snprintf(buffer, RLS_TEXT_NUMBER_BYTES, "%.1f%%", 100.0 * (double)part / (double)whole);
	return buffer;
}

void rls_text_bar(FILE *out, unsigned int eighths)
{
	static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};

	for (; eighths >= 8; eighths -= 8)
		fputs("█", out);
	fputs(parts[eighths], out);
}

/* One code point; moves *text behind it. A name cut in the middle of one gives a control. */
static uint32_t text_format_decode(const char **text)
{
	const unsigned char *p = (const unsigned char *)*text;
	int more = p[0] >= 0xf0 ? 3 : p[0] >= 0xe0 ? 2 : p[0] >= 0xc0 ? 1 : 0;
	uint32_t point = more ? p[0] & (0x3fu >> more) : p[0];
	int i = 1;

	for (; i <= more && (p[i] & 0xc0) == 0x80; i++)
		point = point << 6 | (p[i] & 0x3f);
	*text += i;
	return i > more ? point : INCOMPLETE;
}

/* C0, DEL, C1, and the marks that turn the direction of writing. */
static bool is_control(uint32_t point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) ||
	       (point >= 0x202a && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
}

/* By the blocks that matter; wcwidth() would need a locale. */
static unsigned int point_width(uint32_t point)
{
	static const struct {
		uint32_t first, last;
		unsigned int width;
	} blocks[] = {
		{0x0300, 0x036f, 0},   {0x200b, 0x200f, 0},   {0xfe00, 0xfe0f, 0},
		{0x1100, 0x115f, 2},   {0x2e80, 0xa4cf, 2},   {0xac00, 0xd7a3, 2},
		{0xf900, 0xfaff, 2},   {0xfe30, 0xfe6f, 2},   {0xff00, 0xff60, 2},
		{0xffe0, 0xffe6, 2},   {0x1f300, 0x1f64f, 2}, {0x1f900, 0x1f9ff, 2},
		{0x20000, 0x3fffd, 2},
	};

	for (size_t i = 0; i < sizeof(blocks) / sizeof(*blocks); i++) {
		if (point >= blocks[i].first && point <= blocks[i].last)
			return blocks[i].width;
	}
	return 1;
}

unsigned int rls_text_width(const char *text)
{
	unsigned int width = 0;

	while (*text)
		width += point_width(text_format_decode(&text));
	return width;
}

void rls_text_print(FILE *out, const char *text, unsigned int columns)
{
	bool cut = columns && rls_text_width(text) > columns;
	unsigned int room = cut ? columns - 1 : columns;
	unsigned int used = 0;

	while (*text) {
		const char *from = text;
		uint32_t point = text_format_decode(&text);
		unsigned int width = point_width(point);

		if (cut && used + width > room)
			break;
		if (is_control(point))
			putc('?', out);
		else
			fwrite(from, 1, (size_t)(text - from), out);
		used += width;
	}
	if (cut) {
		fputs("…", out);
		used++;
	}
	for (; used < columns; used++)
		putc(' ', out);
}

void rls_text_print_right(FILE *out, const char *text, unsigned int width)
{
	unsigned int used = rls_text_width(text);

	fprintf(out, "%*s", used < width ? (int)(width - used) + 1 : 1, "");
	fputs(text, out);
}
