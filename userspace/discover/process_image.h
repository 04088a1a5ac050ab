/* Process image: what discovery found in a process. */
#ifndef RLS_PROCESS_IMAGE_H
#define RLS_PROCESS_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/discover/roles/boundary.h"
#include "userspace/python/interpreter.h"

struct rls_seen_files;

struct rls_process_image {
	pid_t pid;
	struct rls_python python; /* version "" when it runs no Python; mapping is NULL */
	char *python_path; /* its library or executable, as the target sees it */
	/* Those with a role, the interpreter among them, in the order of their addresses
	 * (later ones behind). A library stays where it is until the image is freed. */
	struct rls_library **libraries;
	size_t library_count;
	char **warnings; /* a sentence each */
	size_t warning_count;
	struct rls_seen_files *seen;
	uint64_t modules; /* imported before all its memory was last read; 0: unknown */
};

void rls_process_image_free(struct rls_process_image *image);

/* Libraries other than the interpreter. */
size_t rls_process_image_known_libraries(const struct rls_process_image *image);

/* Adds a sentence to the warnings. */
void rls_image_warn(struct rls_process_image *image, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
