/* USDT notes: found in a real library, and read with care in spoilt ones. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/elf/elf.h"

static struct rls_elf_usdt usdt;

static int find_probe(const char *path, const char *provider, const char *probe)
{
	struct rls_elf *elf;
	int r;

	assert_int_equal(rls_elf_open(path, &elf), 0);
	usdt = (struct rls_elf_usdt){0};
	r = rls_elf_find_usdt(elf, provider, probe, &usdt);
	assert_true(!r || r == -ENOENT);
	rls_elf_close(elf);
	return r;
}

static void finds_the_site_and_its_semaphore(void **state)
{
	static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	struct rls_elf *elf;
	uint64_t offset;

	assert_int_equal(find_probe(STANDIN, "rlscope_cupti", "batch"), 0);
	assert_int_equal(rls_elf_open(STANDIN, &elf), 0);
	assert_true(rls_elf_is_executable(elf, usdt.site_vaddr));
	assert_memory_equal(rls_elf_bytes(elf, usdt.site_vaddr, 5), nop5, 5);
	assert_int_equal(rls_elf_file_offset(elf, usdt.semaphore_vaddr, &offset), 0);
	rls_elf_close(elf);
}

static void knows_a_site_by_both_names(void **state)
{
	assert_int_equal(find_probe(STANDIN, "rlscope_cupti", "batc"), -ENOENT);
	assert_int_equal(find_probe(STANDIN, "rlscope_cupti", "batches"), -ENOENT);
	assert_int_equal(find_probe(STANDIN, "rlscope", "batch"), -ENOENT);
	assert_int_equal(find_probe("/proc/self/exe", "rlscope_cupti", "batch"), -ENOENT);
}

/* Every byte of the note section spoilt in turn, three ways: nothing but an answer comes of it. */
static void reads_spoilt_notes(void **state)
{
	char path[] = "/tmp/rls-usdt-XXXXXX";
	static uint8_t file[1 << 20];
	FILE *in = fopen(STANDIN, "re");
	size_t bytes = fread(file, 1, sizeof(file), in), first = 0;
	int out = mkstemp(path);

	fclose(in);
	assert_true(out >= 0 && bytes < sizeof(file));
	while (first + 7 < bytes && memcmp(file + first, "stapsdt", 8))
		first++;
	assert_true(first > 12 && first + 80 < bytes);
	for (size_t at = first - 12; at < first + 80; at++) {
		for (unsigned int way = 0; way < 3; way++) {
			uint8_t kept = file[at];

			file[at] = (uint8_t[]){0, 0xff, (uint8_t)(kept ^ 4)}[way];
			assert_int_equal(pwrite(out, file, bytes, 0), bytes);
			file[at] = kept;
			find_probe(path, "rlscope_cupti", "batch");
		}
	}
	close(out);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_site_and_its_semaphore),
		cmocka_unit_test(knows_a_site_by_both_names),
		cmocka_unit_test(reads_spoilt_notes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
