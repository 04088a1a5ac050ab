/* Spaces: bytes at runtime addresses, whether of a live process or of a file laid out as
 * the loader would. One scanner reads both.
 */
#ifndef RLS_SPACE_H
#define RLS_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/elf/elf.h"

struct rls_space {
	/* Up to length bytes, as many as can be had in one piece; 0 when none. */
	size_t (*read)(const struct rls_space *space, uint64_t address, void *buffer,
		       size_t length);
};

/* All of it or false. */
bool rls_space_read(const struct rls_space *space, uint64_t address, void *buffer, size_t length);

/* A printable ASCII string shorter than size_bytes, or false (nothing else is a name). */
bool rls_space_read_name(const struct rls_space *space, uint64_t address, char *buffer,
			 size_t size_bytes);

/* Reads through /proc/PID/mem. process_vm_readv() pins pages, and the kernel first copies those that the process
 * shares since a fork: a worker would grow by everything that is read, and wait meanwhile. It is used only where
 * the file cannot be opened, as for another user's process without CAP_DAC_OVERRIDE. */
struct rls_live_space {
	struct rls_space space;
	pid_t pid;
	int memory; /* -1: not opened */
};
/* Nothing can be read of a process that is not there. To be closed in any case. */
void rls_live_space_open(struct rls_live_space *live, pid_t pid);
void rls_live_space_close(struct rls_live_space *live);
/* Whether its memory may be read: 0, -ESRCH, -EPERM. */
int rls_live_space_probe(const struct rls_live_space *live, uint64_t address);
/* All of it, at once: 0, -EFAULT where there is less, or -errno. */
int rls_live_read(pid_t pid, uint64_t address, void *buffer, size_t length);

#define _cleanup_live_space_ __attribute__((cleanup(rls_live_space_close)))

/* A library's file with its writable segments relocated, as at load_bias. */
struct rls_image_segment {
	uint64_t address;
	size_t length_bytes;
	uint8_t *bytes;
};
struct rls_image_space {
	struct rls_space space;
	const struct rls_elf *elf;
	uint64_t load_bias;
	struct rls_image_segment *segments;
	size_t segment_count;
};
/* 0 or -ENOMEM; elf is borrowed. */
int rls_image_space_init(struct rls_image_space *image, const struct rls_elf *elf,
			 uint64_t load_bias);
void rls_image_space_release(struct rls_image_space *image);

#endif
