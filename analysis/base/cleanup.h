/* Cleanup attributes: a local that frees itself, and hand-over.
 *
 *     _cleanup_free_ char *text = strdup("x");
 *     *out = rls_take(text);      // ownership goes to *out, nothing is freed here
 */
#ifndef RLS_CLEANUP_H
#define RLS_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void rls_cleanup_free(void *pointer)
{
	free(*(void **)pointer);
}

static inline void rls_cleanup_close(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void rls_cleanup_fclose(FILE **file)
{
	if (*file)
		fclose(*file);
}

#define _cleanup_free_ __attribute__((cleanup(rls_cleanup_free)))
#define _cleanup_close_ __attribute__((cleanup(rls_cleanup_close)))
#define _cleanup_fclose_ __attribute__((cleanup(rls_cleanup_fclose)))

#define rls_take(pointer)                                                                          \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})

#define rls_take_fd(fd)                                                                            \
	({                                                                                         \
		int taken_fd_ = (fd);                                                              \
		(fd) = -1;                                                                         \
		taken_fd_;                                                                         \
	})

#endif
