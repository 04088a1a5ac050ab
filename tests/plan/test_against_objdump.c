/* Instruction boundaries of a whole library, against another decoder: binutils' objdump. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/elf/elf.h"
#include "userspace/machine_code/decoder.h"

static const char *const candidates[] = {
	"/usr/lib/x86_64-linux-gnu/libelf.so.1",
	"/usr/lib64/libelf.so.1",
	"/usr/lib/libelf.so.1",
};

static const char *library_here(void)
{
	for (size_t i = 0; i < sizeof(candidates) / sizeof(candidates[0]); i++)
		if (access(candidates[i], R_OK) == 0)
			return candidates[i];
	return NULL;
}

/* objdump prints "    1234:\t<instruction>", one a line. */
static size_t read_boundaries(const char *path, uint64_t **out)
{
	size_t count = 0, capacity = 1 << 20;
	uint64_t *boundaries = calloc(capacity, sizeof(*boundaries));
	char command[256], line[512];
	FILE *pipe;

	assert_non_null(boundaries);
	snprintf(command, sizeof(command), "objdump -d --no-show-raw-insn %s", path);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	while (fgets(line, sizeof(line), pipe)) {
		char *end;
		uint64_t vaddr = strtoull(line, &end, 16);

		if (line[0] == ' ' && end != line && end[0] == ':' && count < capacity)
			boundaries[count++] = vaddr;
	}
	assert_int_equal(pclose(pipe), 0);
	*out = boundaries;
	return count;
}

static bool is_boundary(const uint64_t *boundaries, size_t count, uint64_t vaddr)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (boundaries[middle] < vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && boundaries[low] == vaddr;
}

static size_t check_extent(const struct rls_elf *elf, const struct rls_elf_extent *extent,
			   const uint64_t *boundaries, size_t count)
{
	const uint8_t *bytes = rls_elf_bytes(elf, extent->vaddr, extent->size_bytes);
	struct rls_instruction instruction;
	size_t checked = 0;

	assert_non_null(bytes);
	for (uint64_t at = 0; at < extent->size_bytes; at += instruction.length, checked++) {
		if (!is_boundary(boundaries, count, extent->vaddr + at))
			fail_msg("objdump sees no instruction at %" PRIx64, extent->vaddr + at);
		assert_int_equal(rls_decode(bytes + at, extent->size_bytes - at, extent->vaddr + at,
					    &instruction),
				 0);
	}
	return checked;
}

static void agrees_on_every_boundary(void **state)
{
	const char *path = library_here();
	const struct rls_elf_extent *extents;
	size_t count, extent_count, checked = 0;
	uint64_t *boundaries;
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(path, &elf), 0);
	count = read_boundaries(path, &boundaries);
	extent_count = rls_elf_extents(elf, &extents);
	assert_true(extent_count > 100);
	for (size_t i = 0; i < extent_count; i++)
		checked += check_extent(elf, &extents[i], boundaries, count);
	print_message("%zu instructions in %s\n", checked, path);
	assert_true(checked > 10000);
	free(boundaries);
	rls_elf_close(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_on_every_boundary),
	};

	if (!library_here() || system("objdump --version >/dev/null 2>&1") != 0) {
		printf("skipped: needs libelf.so.1 and objdump\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
