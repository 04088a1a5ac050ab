/* Library names: what a file's name says of a library without a role. Pure. */
#ifndef RLS_LIBRARY_NAMES_H
#define RLS_LIBRARY_NAMES_H

#include <stdbool.h>
#include <stddef.h>

enum rls_library_kind {
	RLS_LIBRARY_MODULE, /* an extension module: Python calls it */
	RLS_LIBRARY_PLAIN, /* a library that something else calls */
	RLS_LIBRARY_FINE, /* Python calls it for so little at a time that probes would slow it manyfold */
	RLS_LIBRARY_RUNTIME, /* the C library, the interpreter, the kernel's pages: everybody's */
	RLS_LIBRARY_COMPILED, /* no file: code that the process has made */
};

enum rls_library_kind rls_library_kind_of(const char *path);

/* The name behind the last slash, and behind "memfd:" of a file in memory. */
const char *rls_library_base(const char *path);

/* How much of the path is the folder of its package, behind site-packages or dist-packages, with the
 * slash. 0: it is in none. */
size_t rls_library_package(const char *path);

#define RLS_LIBRARY_GLOB_BYTES 256
/* A glob of the file's name, without what differs between builds: "cv2*.so" of cv2.abi3.so,
 * "libfoo*.so*" of libfoo-6cdc3b4a.so.1. Of its package, where it is in one: of all files there.
 * What a glob would take as a pattern becomes "?". */
void rls_library_glob(const char *path, bool of_package, char out[static RLS_LIBRARY_GLOB_BYTES]);

#endif
