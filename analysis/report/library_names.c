#include "analysis/report/library_names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 8 /* that auditwheel puts behind a name */
#define DELETED " (deleted)"

const char *rls_library_base(const char *path)
{
	static const char memory[] = "/memfd:";
	const char *slash;

	/* Its maker's name of a file in memory, which may have slashes of its own. */
	if (!strncmp(path, memory, strlen(memory)))
		path += strlen(memory);
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static bool matches_any(const char *const *globs, const char *text)
{
	for (; *globs; globs++)
		if (!fnmatch(*globs, text, 0))
			return true;
	return false;
}

enum rls_library_kind rls_library_kind_of(const char *path)
{
	static const char *const runtime[] = {
		"libc.so*",
		"libc-2*.so",
		"libm.so*",
		"libm-2*.so",
		"libmvec.so*",
		"libdl.so*",
		"librt.so*",
		"libpthread*.so*",
		"libutil.so*",
		"ld-*.so*",
		"ld.so*",
		"libgcc_s*.so*",
		"libstdc++*.so*",
		"libc++*.so*",
		"libpython*.so*",
		"python",
		"python[23]*",
		"pypy*",
		"libmusl*.so*",
		"libresolv.so*",
		"libjemalloc*.so*",
		"libtcmalloc*.so*",
		"libmimalloc*.so*",
		"ld-linux*",
		NULL,
	};
	static const char *const fine[] = {
		"*/numpy/*.so",
		"*/numpy.libs/*",
		"*/pandas/*.so",
		"*/scipy/*.so",
		"*/scipy.libs/*",
		"_multiarray_*.so",
		"*/_multiarray_*.so",
		"*/_umath_*.so",
		"*_sentencepiece*.so",
		"*lib*blas*.so*",
		"*libmkl_*.so*",
		"*libgomp*.so*",
		"*libomp*.so*",
		"*libiomp*.so*",
		"*libtbb*.so*",
		"*liblapack*.so*",
		NULL,
	};
	static const char *const module[] = {"*.cpython-*.so*", "*.abi3.so*", NULL};
	const char *base = rls_library_base(path);

	if (!*path || path[0] == '[' || !strncmp(path, "//anon", strlen("//anon")))
		return path[0] == '[' && strcmp(path, "[compiled]") != 0 ? RLS_LIBRARY_RUNTIME
									 : RLS_LIBRARY_COMPILED;
	if (matches_any(runtime, base))
		return RLS_LIBRARY_RUNTIME;
	if (matches_any(fine, path))
		return RLS_LIBRARY_FINE;
	return matches_any(module, base) ? RLS_LIBRARY_MODULE : RLS_LIBRARY_PLAIN;
}

/* "-6cdc3b4a" at the end. */
static size_t without_hash(const char *name, size_t length)
{
	size_t start = length - HASH_DIGITS;

	if (length <= HASH_DIGITS + 1 || name[start - 1] != '-')
		return length;
	for (size_t i = start; i < length; i++)
		if (!isxdigit((unsigned char)name[i]))
			return length;
	return start - 1;
}

size_t rls_library_package(const char *path)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};

	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++) {
		const char *folder = strstr(path, folders[i]), *slash;

		slash = folder ? strchr(folder + strlen(folders[i]), '/') : NULL;
		if (slash)
			return (size_t)(slash - path) + 1;
	}
	return 0;
}

/* The name up to what differs between builds. *versioned: something follows ".so". */
static size_t stem_length(const char *base, bool *versioned)
{
	const char *so = strstr(base, ".so"), *end = strstr(base, ".cpython-");
	size_t length = strlen(base), deleted = strlen(DELETED);

	if (length > deleted && !strcmp(base + length - deleted, DELETED))
		length -= deleted;
	if (!end)
		end = strstr(base, ".abi3.");
	*versioned = !end && so && (size_t)(so - base) + strlen(".so") < length;
	if (!end)
		end = so;
	return without_hash(base, end ? (size_t)(end - base) : length);
}

void rls_library_glob(const char *path, bool of_package, char out[static RLS_LIBRARY_GLOB_BYTES])
{
	const char *start = rls_library_base(path);
	size_t length = 0, room = RLS_LIBRARY_GLOB_BYTES - sizeof("/*.so*");
	bool versioned = false, package = of_package && rls_library_package(path);

	if (package) {
		size_t end = rls_library_package(path) - 1;

		while (length < end && path[end - length - 1] != '/')
			length++;
		start = path + end - length;
	} else {
		length = stem_length(start, &versioned);
	}
	if (length > room)
		length = room;
	snprintf(out, RLS_LIBRARY_GLOB_BYTES, "%.*s%s*.so%s", (int)length, start,
		 package ? "/" : "", versioned ? "*" : "");
	for (size_t i = 0; i < length; i++)
		if (strchr("*?[]\\:' ", out[i]) || !isprint((unsigned char)out[i]))
			out[i] = '?';
}
