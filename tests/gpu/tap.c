/* CUPTI's buffers as they come back, before anything of ours has read them, into a file: what a
 * test of decoding is to be fed once there has been a GPU. The linker puts these two functions
 * before the bridge's own (--wrap).
 *
 *     RLS_TAP_FILE=path   at most RLS_TAP_BYTES of entries, each
 *
 *         u32 length │ u32 name_bytes │ the record │ what its pointer to a name pointed to
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cupti_bridge/buffers.h"

#define RLS_TAP_BYTES (512u << 10)

void __real_rls_buffers_set_walk(rls_next_record next);
void __wrap_rls_buffers_set_walk(rls_next_record next);
size_t __real_rls_buffers_take(struct rls_buffer **taken);
size_t __wrap_rls_buffers_take(struct rls_buffer **taken);

static rls_next_record next_record;
static size_t written;
static int file = -1;

__attribute__((constructor)) static void read_settings(void)
{
	const char *path = getenv("RLS_TAP_FILE");

	if (path)
		file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* Of a string that may be gone. */
static uint32_t read_name(const char *name, char text[RLS_CUPTI_NAME_BYTES_MAX])
{
	struct iovec local = {text, RLS_CUPTI_NAME_BYTES_MAX};
	struct iovec remote = {(void *)name, RLS_CUPTI_NAME_BYTES_MAX};
	ssize_t got = name ? process_vm_readv(getpid(), &local, 1, &remote, 1, 0) : 0;

	return got > 0 ? (uint32_t)strnlen(text, (size_t)got) : 0;
}

static void keep(const uint8_t *bytes, size_t length)
{
	char text[RLS_CUPTI_NAME_BYTES_MAX];
	struct rls_cupti_record record;
	const char *name = NULL;
	uint32_t head[2] = {(uint32_t)length, 0};
	struct iovec parts[] = {{head, sizeof(head)}, {(void *)bytes, length}, {text, 0}};

	if (rls_record_decode(bytes, length, &record, &name) == RLS_DECODED)
		head[1] = read_name(name, text);
	parts[2].iov_len = head[1];
	written += sizeof(head) + length + head[1];
	if (written <= RLS_TAP_BYTES && writev(file, parts, 3) < 0)
		file = -1;
}

void __wrap_rls_buffers_set_walk(rls_next_record next)
{
	next_record = next;
	__real_rls_buffers_set_walk(next);
}

size_t __wrap_rls_buffers_take(struct rls_buffer **taken)
{
	size_t count = __real_rls_buffers_take(taken);

	for (size_t i = 0; file >= 0 && i < count && written < RLS_TAP_BYTES; i++) {
		struct rls_walk walk = {.next = next_record,
					.buffer = taken[i]->bytes,
					.valid_bytes = taken[i]->valid_bytes};
		const uint8_t *bytes;
		size_t length;

		while (rls_walk_step(&walk, &bytes, &length) > 0)
			keep(bytes, length);
	}
	return count;
}
