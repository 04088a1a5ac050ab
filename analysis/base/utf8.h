/* UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above U+10FFFF. */
#ifndef RLS_UTF8_H
#define RLS_UTF8_H

#include <stddef.h>
#include <string.h>

#define RLS_UTF8_REPLACEMENT "\xef\xbf\xbd" /* U+FFFD, in place of each byte that is none */

/* Bytes of the valid character at text, of which so many bytes are left (at least one), or 0.
 * NUL counts as invalid: what is kept is read back as C strings. */
static inline size_t rls_utf8_bytes(const char *text, size_t left)
{
	static const struct {
		unsigned char first_low, first_high, second_low, second_high, bytes;
	} forms[] = {
		{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
		{0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
		{0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
		{0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
	};
	const unsigned char *byte = (const unsigned char *)text;

	if (byte[0] < 0x80)
		return byte[0] != 0;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		if (byte[0] < forms[i].first_low || byte[0] > forms[i].first_high)
			continue;
		if (left < forms[i].bytes || byte[1] < forms[i].second_low ||
		    byte[1] > forms[i].second_high)
			return 0;
		for (size_t k = 2; k < forms[i].bytes; k++)
			if ((byte[k] & 0xc0) != 0x80)
				return 0;
		return forms[i].bytes;
	}
	return 0;
}

/* What is written of text that need not be valid, piece by piece. */
struct rls_utf8_piece {
	const char *text;
	size_t bytes;
	size_t taken; /* bytes of the text that it stands for */
};

/* In place of one byte. */
static inline struct rls_utf8_piece rls_utf8_replaced(void)
{
	return (struct rls_utf8_piece){RLS_UTF8_REPLACEMENT, sizeof(RLS_UTF8_REPLACEMENT) - 1, 1};
}

/* The character at text, of which so many bytes are left (at least one), or what is in place of a byte that is none. */
static inline struct rls_utf8_piece rls_utf8_piece(const char *text, size_t left)
{
	size_t bytes = rls_utf8_bytes(text, left);

	return bytes ? (struct rls_utf8_piece){text, bytes, bytes} : rls_utf8_replaced();
}

/* Bytes of the text, or of the whole characters among its first most bytes if it is longer. What is no UTF-8 has no
 * characters to spare. */
static inline size_t rls_utf8_cut(const char *text, size_t most)
{
	size_t bytes = strnlen(text, most), back = 0;

	while (back < 4 && back < bytes && (text[bytes - back] & 0xc0) == 0x80)
		back++;
	return bytes - (back < 4 ? back : 0);
}

#endif
