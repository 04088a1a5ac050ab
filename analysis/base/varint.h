/* Varints: seven bits a byte, least significant first, high bit set on all but the last.
 * Zigzag maps small numbers of either sign to small unsigned ones.
 */
#ifndef RLS_VARINT_H
#define RLS_VARINT_H

#include <stdbool.h>
#include <stdint.h>

#define RLS_VARINT_BYTES_MAX 10

/* Returns the place after the last byte written. */
static inline uint8_t *rls_varint_put(uint8_t *to, uint64_t value)
{
	while (value >= 0x80) {
		*to++ = value | 0x80;
		value >>= 7;
	}
	*to++ = value;
	return to;
}

/* Reads at *from, moving it; false when the bytes end first or hold more than 64 bits. */
static inline bool rls_varint_get(const uint8_t **from, const uint8_t *end, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *from < end && shift < 64; shift += 7) {
		uint64_t bits = **from & 0x7f;

		if (shift == 63 && bits > 1)
			return false;
		value |= bits << shift;
		if (!(*(*from)++ & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

static inline uint64_t rls_zigzag(uint64_t difference)
{
	return (difference << 1) ^ -(difference >> 63);
}

static inline uint64_t rls_unzigzag(uint64_t value)
{
	return (value >> 1) ^ -(value & 1);
}

#endif
