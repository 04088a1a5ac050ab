/* Hash of names: SipHash-1-3 (Jean-Philippe Aumasson and Daniel J. Bernstein, public domain).
 *
 * Names come from targets and files, which could choose them so that all collide in a hash that
 * they can compute. Nobody can do so without the seed, which is random and never leaves the process.
 */
#ifndef RLS_TEXT_HASH_H
#define RLS_TEXT_HASH_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct rls_text_seed {
	uint64_t low, high;
};

/* Without entropy so early in boot the hash is guessable, and as good otherwise: the seed is then
 * the address of the table that it is for. */
static inline struct rls_text_seed rls_text_seed_draw(const void *table)
{
	struct rls_text_seed seed;

	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) != (ssize_t)sizeof(seed))
		seed = (struct rls_text_seed){.low = (uintptr_t)table};
	return seed;
}

static inline uint64_t rls_text_rotate(uint64_t x, unsigned int bits)
{
	return x << bits | x >> (64 - bits);
}

static inline void rls_text_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rls_text_rotate(v[1], 13) ^ v[0];
	v[3] = rls_text_rotate(v[3], 16) ^ v[2];
	v[0] = rls_text_rotate(v[0], 32) + v[3];
	v[2] += v[1];
	v[3] = rls_text_rotate(v[3], 21) ^ v[0];
	v[1] = rls_text_rotate(v[1], 17) ^ v[2];
	v[2] = rls_text_rotate(v[2], 32);
}

static inline void rls_text_take(uint64_t v[4], uint64_t word)
{
	v[3] ^= word;
	rls_text_round(v);
	v[0] ^= word;
}

static inline uint64_t rls_text_hash(struct rls_text_seed seed, const char *text, size_t length)
{
	uint64_t v[4] = {
		seed.low ^ 0x736f6d6570736575,
		seed.high ^ 0x646f72616e646f6d,
		seed.low ^ 0x6c7967656e657261,
		seed.high ^ 0x7465646279746573,
	};
	uint64_t word, last = (uint64_t)length << 56;
	size_t at = 0;

	for (; at + sizeof(word) <= length; at += sizeof(word)) {
		memcpy(&word, text + at, sizeof(word));
		rls_text_take(v, le64toh(word));
	}
	for (unsigned int shift = 0; at < length; at++, shift += 8)
		last |= (uint64_t)(unsigned char)text[at] << shift;
	rls_text_take(v, last);
	v[2] ^= 0xff;
	rls_text_round(v);
	rls_text_round(v);
	rls_text_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
