/* Live spaces: memory of another process, which is to be as it was after it has been read. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/process/space.h"

#define SHARED_BYTES (16UL << 20)
#define BLOCK_BYTES (1UL << 18)
#define FILL 0x5a

/* A child that has all of this from us since the fork and does nothing. */
static pid_t fork_sharing(uint8_t **memory)
{
	pid_t child;

	*memory = mmap(NULL, SHARED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	assert_ptr_not_equal(*memory, MAP_FAILED);
	madvise(*memory, SHARED_BYTES, MADV_NOHUGEPAGE);
	memset(*memory, FILL, SHARED_BYTES);
	child = fork();
	if (!child) {
		for (;;)
			pause();
	}
	assert_true(child > 0);
	return child;
}

static void end(pid_t child, uint8_t *memory)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	munmap(memory, SHARED_BYTES);
}

/* What it shares with others. */
static size_t shared_bytes(pid_t pid)
{
	size_t total = 0, kib;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "Shared_Dirty: %zu", &kib) == 1 ||
		    sscanf(line, "Shared_Clean: %zu", &kib) == 1)
			total += kib << 10;
	fclose(file);
	return total;
}

static void reading_leaves_shared_pages_shared(void **state)
{
	uint8_t *memory, *block = malloc(BLOCK_BYTES);
	pid_t child = fork_sharing(&memory);
	size_t before = shared_bytes(child);
	struct rls_live_space live;

	(void)state;
	assert_true(before >= SHARED_BYTES);
	rls_live_space_open(&live, child);
	assert_int_equal(rls_live_space_probe(&live, (uintptr_t)memory), 0);
	for (size_t at = 0; at < SHARED_BYTES; at += BLOCK_BYTES) {
		assert_int_equal(
			live.space.read(&live.space, (uintptr_t)memory + at, block, BLOCK_BYTES),
			BLOCK_BYTES);
		assert_int_equal(block[0], FILL);
		assert_int_equal(block[BLOCK_BYTES - 1], FILL);
	}
	rls_live_space_close(&live);
	assert_true(shared_bytes(child) + SHARED_BYTES / 2 > before);
	end(child, memory);
	free(block);
}

static void what_is_not_there_is_not_read(void **state)
{
	uint8_t *memory, bytes[100];
	pid_t child = fork_sharing(&memory);
	struct rls_live_space live;
	uint64_t last = (uintptr_t)memory + SHARED_BYTES;
	uint8_t byte;

	(void)state;
	rls_live_space_open(&live, child);
	assert_int_equal(live.space.read(&live.space, 8, &byte, 1), 0);
	assert_int_equal(live.space.read(&live.space, UINT64_MAX - 8, &byte, 1), 0);
	assert_int_equal(live.space.read(&live.space, last - sizeof(bytes), bytes, sizeof(bytes)),
			 sizeof(bytes));
	assert_int_equal(rls_live_read(child, last - sizeof(bytes), bytes, sizeof(bytes)), 0);
	assert_int_equal(rls_live_read(child, 8, &byte, 1), -EFAULT);
	end(child, memory);
	assert_int_equal(live.space.read(&live.space, last - sizeof(bytes), bytes, sizeof(bytes)),
			 0);
	assert_int_not_equal(rls_live_read(child, last - sizeof(bytes), bytes, sizeof(bytes)), 0);
	rls_live_space_close(&live);
}

/* Where /proc/PID/mem is not for us to open. */
static void without_the_file_the_call_reads(void **state)
{
	uint8_t *memory, bytes[100];
	pid_t child = fork_sharing(&memory);
	struct rls_live_space live;

	(void)state;
	rls_live_space_open(&live, child);
	rls_live_space_close(&live);
	assert_int_equal(rls_live_space_probe(&live, (uintptr_t)memory), 0);
	assert_true(rls_space_read(&live.space, (uintptr_t)memory, bytes, sizeof(bytes)));
	assert_int_equal(bytes[99], FILL);
	end(child, memory);
	assert_int_equal(rls_live_space_probe(&live, (uintptr_t)memory), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reading_leaves_shared_pages_shared),
		cmocka_unit_test(what_is_not_there_is_not_read),
		cmocka_unit_test(without_the_file_the_call_reads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
