/* Sites of allocators' reports, in samples and in what is installed here. */
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "userspace/plan/memory_sites.h"

static const char *const labels[RLS_MEMORY_REPORT_MAX] = {
	[RLS_MEMORY_TENSOR_NEW] = "site_new",    [RLS_MEMORY_TENSOR_DELETE] = "site_delete",
	[RLS_MEMORY_DEVICE] = "site_device",     [RLS_MEMORY_DEVICE_FULL] = "site_full",
	[RLS_MEMORY_TRACK] = "site_track",       [RLS_MEMORY_UNTRACK] = "site_untrack",
	[RLS_MEMORY_FINALIZE] = "site_finalize", [RLS_MEMORY_EXIT] = "site_exit",
	[RLS_MEMORY_COPY_TENSOR] = "site_copy",
};

static void each_is_where_arguments_still_are(void **state)
{
	struct rls_memory_site sites[RLS_MEMORY_SITES_MAX];
	unsigned int seen = 0;
	struct rls_elf *elf;
	size_t count;

	assert_int_equal(rls_elf_open(SAMPLES, &elf), 0);
	count = rls_memory_sites(elf, sites);
	assert_int_equal(count, RLS_MEMORY_SITES_MAX);
	for (size_t i = 0; i < count; i++) {
		struct rls_elf_symbol label;
		uint64_t offset;

		print_message("%s\n", labels[sites[i].report]);
		assert_int_equal(rls_elf_find_symbol(elf, labels[sites[i].report], &label), 0);
		assert_int_equal(rls_elf_file_offset(elf, label.vaddr, &offset), 0);
		assert_int_equal(sites[i].file_offset, offset);
		seen |= 1u << sites[i].report;
	}
	assert_int_equal(seen, (1u << (RLS_MEMORY_SITES_MAX + 1)) - 2);
	rls_elf_close(elf);
}

static void beginnings_without_ends_are_left_alone(void **state)
{
	struct rls_memory_site sites[RLS_MEMORY_SITES_MAX];
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(SAMPLES_WITHOUT_ENDS, &elf), 0);
	assert_int_equal(rls_memory_sites(elf, sites), 0);
	rls_elf_close(elf);
}

/* What is installed: none of them is stepped singly. */
static void real_libraries_have_cheap_sites(void **state)
{
	static const struct {
		const char *pattern;
		size_t sites;
	} libraries[] = {
		{"/usr/lib/x86_64-linux-gnu/libc10.so.*.*.*", 4},
		{"/usr/lib/x86_64-linux-gnu/libpython3.*.so.1.0", 4},
		{"~/.pyenv/versions/3.[89]*/lib/libpython3.*.so.1.0", 4},
		{"~/.pyenv/versions/3.1*/lib/libpython3.*.so.1.0", 4},
	};

	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		glob_t found = {0};

		if (glob(libraries[i].pattern, GLOB_TILDE, NULL, &found))
			continue;
		for (size_t k = 0; k < found.gl_pathc; k++) {
			struct rls_memory_site sites[RLS_MEMORY_SITES_MAX];
			struct rls_elf *elf;

			print_message("%s\n", found.gl_pathv[k]);
			assert_int_equal(rls_elf_open(found.gl_pathv[k], &elf), 0);
			assert_int_equal(rls_memory_sites(elf, sites), libraries[i].sites);
			for (size_t s = 0; s < libraries[i].sites; s++)
				if (sites[s].report < RLS_MEMORY_FINALIZE)
					assert_int_equal(sites[s].site_class, RLS_SITE_EMULATED);
			rls_elf_close(elf);
		}
		globfree(&found);
	}
}

static void names_tell_which_files_may_have_some(void **state)
{
	assert_true(rls_memory_sites_library("libc10.so"));
	assert_true(rls_memory_sites_library("libc10-4f5a.so.1.13"));
	assert_true(rls_memory_sites_library("libpython3.12.so.1.0"));
	assert_true(rls_memory_sites_library("python3.8"));
	assert_false(rls_memory_sites_library("libtorch_python.so"));
	assert_false(rls_memory_sites_library("libc.so.6"));
}

/* Each bucket begins where the one before it ends, and ages are in theirs. */
static void buckets_of_ages_have_no_gaps(void **state)
{
	uint64_t random = 1;

	assert_int_equal(rls_age_from_ns(0), 0);
	assert_int_equal(rls_age_from_ns(1), 1 << RLS_AGE_FIRST);
	assert_int_equal(rls_age_from_ns(RLS_AGES - 1), 1ULL << RLS_AGE_LAST);
	for (uint32_t i = 1; i < RLS_AGES; i++) {
		uint64_t from_ns = rls_age_from_ns(i);

		assert_true(from_ns > rls_age_from_ns(i - 1));
		assert_int_equal(rls_age_bucket(from_ns), i);
		assert_int_equal(rls_age_bucket(from_ns - 1), i - 1);
	}
	assert_int_equal(rls_age_bucket(UINT64_MAX), RLS_AGES - 1);
	for (int i = 0; i < 10000; i++) {
		uint64_t ns = (random = random * 6364136223846793005ULL + 1442695040888963407ULL) >>
			      (i % 64);
		uint32_t bucket = rls_age_bucket(ns);

		assert_true(rls_age_from_ns(bucket) <= ns);
		assert_true(bucket == RLS_AGES - 1 || ns < rls_age_from_ns(bucket + 1));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_is_where_arguments_still_are),
		cmocka_unit_test(beginnings_without_ends_are_left_alone),
		cmocka_unit_test(real_libraries_have_cheap_sites),
		cmocka_unit_test(names_tell_which_files_may_have_some),
		cmocka_unit_test(buckets_of_ages_have_no_gaps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
