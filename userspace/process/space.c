#include "userspace/process/space.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/living_thread.h"

/* Whole data segments of real libraries are a few MB; a hostile header is not believed. */
#define MAX_SEGMENT_BYTES (256UL << 20)

bool rls_space_read(const struct rls_space *space, uint64_t address, void *buffer, size_t length)
{
	return space->read(space, address, buffer, length) == length;
}

bool rls_space_read_name(const struct rls_space *space, uint64_t address, char *buffer,
			 size_t size_bytes)
{
	size_t got = space->read(space, address, buffer, size_bytes);

	for (size_t i = 0; i < got; i++) {
		if (!buffer[i])
			return true;
		if (buffer[i] < ' ' || buffer[i] > '~')
			return false;
	}
	return false;
}

/* --- a live process -------------------------------------------------------------------- */

/* Addresses beyond what an offset can be are nobody's. */
static ssize_t read_memory(const struct rls_live_space *live, uint64_t address, void *buffer,
			   size_t length)
{
	struct iovec local = {.iov_base = buffer, .iov_len = length};
	struct iovec remote = {.iov_base = (void *)address, .iov_len = length};

	if (live->memory >= 0)
		return pread(live->memory, buffer, length, (off_t)address);
	return process_vm_readv(rls_living_thread(live->pid), &local, 1, &remote, 1, 0);
}

static size_t read_live(const struct rls_space *space, uint64_t address, void *buffer,
			size_t length)
{
	ssize_t got = read_memory((const struct rls_live_space *)space, address, buffer, length);

	return got > 0 ? got : 0;
}

void rls_live_space_open(struct rls_live_space *live, pid_t pid)
{
	char path[RLS_PROCESS_PATH_BYTES];

	rls_process_path(path, pid, "mem");
	*live = (struct rls_live_space){.space.read = read_live, .pid = pid};
	live->memory = open(path, O_RDONLY | O_CLOEXEC);
}

void rls_live_space_close(struct rls_live_space *live)
{
	rls_cleanup_close(&live->memory);
	live->memory = -1;
}

int rls_live_space_probe(const struct rls_live_space *live, uint64_t address)
{
	uint8_t byte;

	if (read_memory(live, address, &byte, 1) < 0 &&
	    (errno == EPERM || errno == ESRCH || errno == ENOSYS))
		return -errno;
	return 0;
}

int rls_live_read(pid_t pid, uint64_t address, void *buffer, size_t length)
{
	_cleanup_live_space_ struct rls_live_space live;
	ssize_t got;

	rls_live_space_open(&live, pid);
	got = read_memory(&live, address, buffer, length);
	if (got < 0)
		return errno == EIO ? -EFAULT : -errno;
	return (size_t)got == length ? 0 : -EFAULT;
}

/* --- a file -------------------------------------------------------------------------- */

static size_t read_image(const struct rls_space *space, uint64_t address, void *buffer,
			 size_t length)
{
	const struct rls_image_space *image = (const struct rls_image_space *)space;
	uint64_t vaddr = address - image->load_bias;
	size_t left;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct rls_image_segment *segment = &image->segments[i];

		if (address < segment->address ||
		    address - segment->address >= segment->length_bytes)
			continue;
		left = segment->length_bytes - (address - segment->address);
		if (length > left)
			length = left;
		memcpy(buffer, segment->bytes + (address - segment->address), length);
		return length;
	}
	left = rls_elf_bytes_left(image->elf, vaddr);
	if (length > left)
		length = left;
	if (length)
		memcpy(buffer, rls_elf_bytes(image->elf, vaddr, length), length);
	return length;
}

/* What the loader would store; references to other libraries stay as they are. */
static int apply_relocation(const struct rls_elf_relocation *relocation, void *context)
{
	struct rls_image_space *image = context;
	uint64_t address = relocation->vaddr + image->load_bias;
	uint64_t value = image->load_bias + relocation->addend;

	if (relocation->type == R_X86_64_64 && relocation->symbol_vaddr)
		value += relocation->symbol_vaddr;
	else if (relocation->type != R_X86_64_RELATIVE)
		return 0;
	for (size_t i = 0; i < image->segment_count; i++) {
		struct rls_image_segment *segment = &image->segments[i];

		if (segment->length_bytes >= 8 && address >= segment->address &&
		    address - segment->address <= segment->length_bytes - 8)
			memcpy(segment->bytes + (address - segment->address), &value, 8);
	}
	return 0;
}

static int copy_segment(struct rls_image_space *image, const struct rls_elf_segment *from)
{
	struct rls_image_segment *segment = &image->segments[image->segment_count];
	const uint8_t *bytes = rls_elf_bytes(image->elf, from->vaddr, from->file_bytes);

	if (!bytes || from->file_bytes > MAX_SEGMENT_BYTES)
		return 0;
	segment->bytes = malloc(from->file_bytes);
	if (!segment->bytes)
		return -ENOMEM;
	memcpy(segment->bytes, bytes, from->file_bytes);
	segment->address = from->vaddr + image->load_bias;
	segment->length_bytes = from->file_bytes;
	image->segment_count++;
	return 0;
}

int rls_image_space_init(struct rls_image_space *image, const struct rls_elf *elf,
			 uint64_t load_bias)
{
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments);
	int error = 0;

	*image = (struct rls_image_space){.elf = elf, .load_bias = load_bias};
	image->space.read = read_image;
	image->segments = calloc(count, sizeof(*image->segments));
	if (!image->segments)
		return -ENOMEM;
	for (size_t i = 0; i < count && !error; i++)
		if (segments[i].writable && segments[i].file_bytes)
			error = copy_segment(image, &segments[i]);
	if (error) {
		rls_image_space_release(image);
		return error;
	}
	rls_elf_each_relocation(elf, apply_relocation, image);
	return 0;
}

void rls_image_space_release(struct rls_image_space *image)
{
	for (size_t i = 0; i < image->segment_count; i++)
		free(image->segments[i].bytes);
	free(image->segments);
	*image = (struct rls_image_space){0};
}
