#include "userspace/names/debug_file.h"

#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/target_file.h"

#define DEBUG_FOLDER "/usr/lib/debug"
#define BUILD_ID_BYTES_MIN 8 /* fewer tell nothing apart */
#define BUILD_ID_BYTES_MAX 64
#define UNPACK_MEMORY_BYTES (64U << 20) /* the dictionary of xz -9 */

/* What a stripped file says of its other half. */
struct wanted {
	const uint8_t *build_id;
	size_t build_id_bytes; /* 0: none */
	const char *link; /* a file name, or NULL */
	uint32_t link_checksum;
};

/* .gnu_debuglink: a name, padded with NULs to four bytes, and the file's CRC-32. */
static void read_link(const struct rls_elf *elf, struct wanted *wanted)
{
	const uint8_t *bytes;
	size_t count, length;

	if (rls_elf_section(elf, ".gnu_debuglink", &bytes, &count))
		return;
	length = strnlen((const char *)bytes, count);
	if (!length || length > NAME_MAX || ((length + 4) & ~(size_t)3) + 4 > count ||
	    memchr(bytes, '/', length))
		return;
	wanted->link = (const char *)bytes;
	memcpy(&wanted->link_checksum, bytes + ((length + 4) & ~(size_t)3), 4);
}

static bool checksum_matches(int fd, uint32_t expected)
{
	_cleanup_free_ uint8_t *buffer = malloc(1U << 16);
	uLong checksum = crc32(0, NULL, 0);
	off_t at = 0;
	ssize_t got;

	while (buffer && (got = pread(fd, buffer, 1U << 16, at)) > 0) {
		checksum = crc32(checksum, buffer, (uInt)got);
		at += got;
	}
	return buffer && !got && checksum == expected;
}

/* Whether it is of the same build: by identity where both have one, else by the checksum. */
static bool is_wanted(const struct wanted *wanted, const struct rls_elf *debug, int fd)
{
	const uint8_t *build_id;
	size_t bytes = rls_elf_build_id(debug, &build_id);

	if (!rls_elf_has_static_symbols(debug))
		return false;
	if (bytes && wanted->build_id_bytes)
		return bytes == wanted->build_id_bytes &&
		       !memcmp(build_id, wanted->build_id, bytes);
	return wanted->link && checksum_matches(fd, wanted->link_checksum);
}

static int open_at(const struct wanted *wanted, pid_t pid, const char *path, struct rls_elf **out)
{
	_cleanup_close_ int fd = rls_target_file_open(pid, path);
	int r = fd < 0 ? -ENOENT : rls_elf_open_fd(fd, out);

	if (r)
		return r == -ENOMEM ? r : -ENOENT;
	if (is_wanted(wanted, *out, fd))
		return 0;
	rls_elf_close(*out);
	return -ENOENT;
}

static int open_by_build_id(const struct wanted *wanted, pid_t pid, struct rls_elf **out)
{
	char path[sizeof(DEBUG_FOLDER "/.build-id/xx/.debug") + 2 * BUILD_ID_BYTES_MAX], *at = path;

	if (wanted->build_id_bytes < BUILD_ID_BYTES_MIN ||
	    wanted->build_id_bytes > BUILD_ID_BYTES_MAX)
		return -ENOENT;
	at += sprintf(at, "%s/.build-id/%02x/", DEBUG_FOLDER, wanted->build_id[0]);
	for (size_t i = 1; i < wanted->build_id_bytes; i++)
		at += sprintf(at, "%02x", wanted->build_id[i]);
	strcpy(at, ".debug");
	return open_at(wanted, pid, path, out);
}

static int open_by_link(const struct wanted *wanted, pid_t pid, const char *path,
			struct rls_elf **out)
{
	static const char *const places[][2] = {
		{"", ""},
		{"", "/.debug"},
		{DEBUG_FOLDER, ""},
	};
	const char *slash = strrchr(path, '/');
	int r = -ENOENT;

	if (!wanted->link || !slash)
		return -ENOENT;
	for (size_t i = 0; r == -ENOENT && i < sizeof(places) / sizeof(places[0]); i++) {
		_cleanup_free_ char *candidate = NULL;

		if (asprintf(&candidate, "%s%.*s%s/%s", places[i][0], (int)(slash - path), path,
			     places[i][1], wanted->link) < 0)
			return -ENOMEM;
		r = open_at(wanted, pid, candidate, out);
	}
	return r;
}

int rls_debug_file_open(const struct rls_elf *elf, pid_t pid, const char *path,
			struct rls_elf **out)
{
	struct wanted wanted = {0};
	int r = -ENOENT;

	wanted.build_id_bytes = rls_elf_build_id(elf, &wanted.build_id);
	read_link(elf, &wanted);
	for (int ours = 0; r == -ENOENT && ours <= (pid != 0); ours++) {
		r = open_by_build_id(&wanted, ours ? 0 : pid, out);
		if (r == -ENOENT)
			r = open_by_link(&wanted, ours ? 0 : pid, path, out);
	}
	return r;
}

/* ---- packed symbols ---- */

static int debug_file_unpack(lzma_stream *stream, uint8_t **out, size_t *count)
{
	_cleanup_free_ uint8_t *bytes = NULL;
	size_t capacity = 0;
	lzma_ret state = LZMA_OK;

	while (state == LZMA_OK) {
		if (!stream->avail_out) {
			size_t larger = capacity ? capacity * 2 : 1U << 16;
			uint8_t *moved =
				capacity < RLS_DEBUG_DATA_BYTES_MAX ? realloc(bytes, larger) : NULL;

			if (!moved)
				return capacity < RLS_DEBUG_DATA_BYTES_MAX ? -ENOMEM : -EINVAL;
			bytes = moved;
			stream->next_out = bytes + capacity;
			stream->avail_out = larger - capacity;
			capacity = larger;
		}
		state = lzma_code(stream, LZMA_FINISH);
	}
	if (state != LZMA_STREAM_END)
		return state == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
	*out = rls_take(bytes);
	*count = stream->total_out;
	return 0;
}

int rls_debug_data_open(const struct rls_elf *elf, struct rls_elf **out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	const uint8_t *packed;
	uint8_t *bytes;
	size_t count;
	int r;

	if (rls_elf_section(elf, ".gnu_debugdata", &packed, &count))
		return -ENOENT;
	if (lzma_stream_decoder(&stream, UNPACK_MEMORY_BYTES, 0) != LZMA_OK)
		return -ENOMEM;
	stream.next_in = packed;
	stream.avail_in = count;
	r = debug_file_unpack(&stream, &bytes, &count);
	lzma_end(&stream);
	if (!r)
		r = rls_elf_open_bytes(bytes, count, out);
	return r && r != -ENOMEM ? -EINVAL : r;
}
