/* Older C libraries: what lets a program that was built with glibc 2.36 run with 2.34. Linked into the
 * program only, in place of two functions of newer versions. */
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#define GETENTROPY_MAX 256

/* Version 2.35 of hypot() differs from the one before by leaving errno alone. */
double rls_older_hypot(double x, double y);
__asm__(".symver rls_older_hypot, hypot@GLIBC_2.2.5");

/* The linker's name for what replaces hypot (--wrap). */
double __wrap_hypot(double x, double y);

double __wrap_hypot(double x, double y)
{
	return rls_older_hypot(x, y);
}

#if __GLIBC_PREREQ(2, 36)
/* For libcrypt's salts. Nothing here makes salts, but the static library is all of one piece. */
void arc4random_buf(void *buffer, size_t size)
{
	char *next = buffer;

	while (size) {
		size_t part = size < GETENTROPY_MAX ? size : GETENTROPY_MAX;

		if (getentropy(next, part))
			abort(); /* never a salt that can be predicted */
		next += part;
		size -= part;
	}
}
#endif
