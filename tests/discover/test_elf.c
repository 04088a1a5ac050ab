#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elf.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "userspace/discover/harvest.h"
#include "userspace/discover/library.h"
#include "userspace/elf/elf.h"
#include "userspace/process/space.h"

static struct rls_elf *open_or_fail(const char *path)
{
	struct rls_elf *elf = NULL;

	assert_int_equal(rls_elf_open(path, &elf), 0);
	assert_non_null(elf);
	return elf;
}

static void finds_exported_and_static_symbols(void **state)
{
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	struct rls_elf_symbol symbol;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	assert_true(symbol.exported && symbol.function && symbol.defined);
	assert_true(rls_elf_is_executable(elf, symbol.vaddr));
	assert_int_equal(rls_elf_find_symbol(elf, "plain_static", &symbol), 0);
	assert_false(symbol.exported);
	assert_true(symbol.function && symbol.defined);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_data", &symbol), 0);
	assert_false(symbol.function);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_nowhere", &symbol), -ENOENT);
	assert_int_equal(rls_elf_find_symbol(elf, "getpid", &symbol), -ENOENT);
	rls_elf_close(elf);
}

static void stripping_leaves_the_dynamic_symbols(void **state)
{
	struct rls_elf *elf = open_or_fail(STRIPPED_LIBRARY);
	struct rls_elf_symbol symbol;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_static", &symbol), -ENOENT);
	rls_elf_close(elf);
}

static void offsets_and_addresses_are_inverse(void **state)
{
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	struct rls_elf_symbol symbol;
	uint64_t offset, vaddr;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	assert_int_equal(rls_elf_file_offset(elf, symbol.vaddr, &offset), 0);
	assert_int_equal(rls_elf_vaddr_of_offset(elf, offset, &vaddr), 0);
	assert_int_equal(vaddr, symbol.vaddr);
	assert_int_equal(rls_elf_file_offset(elf, UINT64_MAX, &offset), -ERANGE);
	assert_int_equal(rls_elf_vaddr_of_offset(elf, UINT64_MAX, &vaddr), -ERANGE);
	rls_elf_close(elf);
}

/* The first page of an executable segment also holds the end of the segment before it:
 * asking for that page must give the executable segment's address. */
static void shared_page_belongs_to_the_executable_segment(void **state)
{
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments), executables = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t vaddr;

		if (!segments[i].executable)
			continue;
		executables++;
		assert_int_equal(
			rls_elf_vaddr_of_offset(elf, segments[i].offset & ~4095ULL, &vaddr), 0);
		assert_int_equal(vaddr, segments[i].vaddr - (segments[i].offset & 4095));
	}
	assert_true(executables >= 1);
	rls_elf_close(elf);
}

static void bytes_end_with_their_segment(void **state)
{
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	struct rls_elf_symbol symbol;
	size_t left;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	left = rls_elf_bytes_left(elf, symbol.vaddr);
	assert_true(left >= symbol.size_bytes);
	assert_non_null(rls_elf_bytes(elf, symbol.vaddr, left));
	assert_null(rls_elf_bytes(elf, symbol.vaddr, left + 1));
	assert_null(rls_elf_bytes(elf, symbol.vaddr, SIZE_MAX));
	assert_null(rls_elf_bytes(elf, UINT64_MAX - 4, 8));
	assert_int_equal(rls_elf_bytes_left(elf, UINT64_MAX), 0);
	rls_elf_close(elf);
}

static void extents_agree_with_symbol_sizes(void **state)
{
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	const struct rls_elf_extent *extents, *extent;
	struct rls_elf_symbol symbol;
	size_t count = rls_elf_extents(elf, &extents);

	assert_true(count >= 2);
	for (size_t i = 1; i < count; i++)
		assert_true(extents[i - 1].vaddr <= extents[i].vaddr);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	extent = rls_elf_extent_at(elf, symbol.vaddr + symbol.size_bytes - 1);
	assert_non_null(extent);
	assert_int_equal(extent->vaddr, symbol.vaddr);
	assert_int_equal(extent->size_bytes, symbol.size_bytes);
	extent = rls_elf_extent_at(elf, symbol.vaddr + symbol.size_bytes);
	assert_true(!extent || extent->vaddr != symbol.vaddr);
	assert_null(rls_elf_extent_at(elf, 0));
	rls_elf_close(elf);
}

/* As the directives in plain.c say. */
static void frames_are_as_large_as_stated(void **state)
{
	static const struct {
		uint64_t at, bytes; /* 0: not given */
	} expected[] = {
		{0, 8},  {1, 8},   {2, 16},    {5, 16},    {6, 80},   {9, 80},    {10, 16},
		{11, 8}, {12, 80}, {1012, 80}, {1013, 88}, {1016, 0}, {1017, 96}, {1018, 0},
	};
	struct rls_elf *elf = open_or_fail(PLAIN_LIBRARY);
	struct rls_elf_symbol symbol;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_frames", &symbol), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(*expected); i++) {
		uint64_t bytes = 0;
		int r = rls_elf_frame_bytes(elf, symbol.vaddr + expected[i].at, &bytes);

		assert_int_equal(r, expected[i].bytes ? 0 : -ENOENT);
		assert_int_equal(bytes, expected[i].bytes);
	}
	assert_int_equal(rls_elf_frame_bytes(elf, 0, &(uint64_t){0}), -ENOENT);
	assert_int_equal(rls_elf_frame_bytes(elf, UINT64_MAX, &(uint64_t){0}), -ENOENT);
	rls_elf_close(elf);
}

struct pointer_search {
	uint64_t table, function;
	size_t found, plt_getpid;
};

static int find_pointer(const struct rls_elf_relocation *relocation, void *context)
{
	struct pointer_search *search = context;

	if (relocation->vaddr >= search->table && relocation->vaddr < search->table + 16 &&
	    relocation->type == R_X86_64_RELATIVE &&
	    (uint64_t)relocation->addend == search->function)
		search->found++;
	if (relocation->plt && relocation->symbol && !strcmp(relocation->symbol, "getpid"))
		search->plt_getpid++;
	return 0;
}

static void check_relocations(const char *path)
{
	struct rls_elf *elf = open_or_fail(path);
	struct pointer_search search = {0};
	struct rls_elf_symbol symbol;

	assert_int_equal(rls_elf_find_symbol(elf, "plain_table", &symbol), 0);
	search.table = symbol.vaddr;
	assert_int_equal(rls_elf_find_symbol(elf, "plain_static", &symbol), 0);
	search.function = symbol.vaddr;
	assert_int_equal(rls_elf_each_relocation(elf, find_pointer, &search), 0);
	assert_int_equal(search.found, 2);
	assert_int_equal(search.plt_getpid, 1);
	rls_elf_close(elf);
}

static void relocations_carry_pointers_and_plt_names(void **state)
{
	check_relocations(PLAIN_LIBRARY);
}

static void packed_relative_relocations_are_the_same(void **state)
{
#ifdef RELR_LIBRARY
	check_relocations(RELR_LIBRARY);
#else
	skip();
#endif
}

static void knows_who_can_throw(void **state)
{
	struct rls_elf *plain = open_or_fail(PLAIN_LIBRARY);

	assert_false(rls_elf_has_section(plain, ".gcc_except_table"));
	assert_true(rls_elf_has_section(plain, ".text"));
	assert_false(rls_library_may_throw(plain));
	rls_elf_close(plain);
}

/* It is what a library calls that counts, not what it is linked with. */
static void knows_who_is_but_linked_with_cxx(void **state)
{
	struct rls_elf *linked = open_or_fail(LINKED_LIBRARY),
		       *calling = open_or_fail(CALLING_LIBRARY);
	struct rls_elf *cxx = open_or_fail(CXX_RUNTIME);

	assert_false(rls_library_may_throw(linked));
	assert_false(rls_elf_has_section(calling, ".gcc_except_table"));
	assert_true(rls_library_may_throw(calling));
	assert_true(rls_library_may_throw(cxx));
	rls_elf_close(linked);
	rls_elf_close(calling);
	rls_elf_close(cxx);
}

static void refuses_what_is_no_elf(void **state)
{
	struct rls_elf *elf = NULL;

	assert_int_equal(rls_elf_open("/etc/passwd", &elf), -ENOEXEC);
	assert_int_equal(rls_elf_open("/nowhere/at/all", &elf), -ENOENT);
	assert_int_equal(rls_elf_open("/dev/zero", &elf), -ENOEXEC);
	assert_int_equal(rls_elf_open("/", &elf), -ENOEXEC);
	assert_null(elf);
}

/* --- hostile files ------------------------------------------------------------------- */

struct copy {
	uint8_t *bytes;
	size_t size_bytes;
	int fd;
	char path[64];
};

static struct copy copy_library(const char *from)
{
	struct copy copy;
	_cleanup_close_ int source = open(from, O_RDONLY | O_CLOEXEC);
	struct stat status;

	assert_true(source >= 0);
	assert_int_equal(fstat(source, &status), 0);
	copy.size_bytes = status.st_size;
	copy.bytes = malloc(copy.size_bytes);
	assert_int_equal(read(source, copy.bytes, copy.size_bytes), copy.size_bytes);
	copy.fd = memfd_create("mutant", MFD_CLOEXEC);
	assert_true(copy.fd >= 0);
	snprintf(copy.path, sizeof(copy.path), "/proc/self/fd/%d", copy.fd);
	return copy;
}

static void drop_copy(struct copy *copy)
{
	close(copy->fd);
	free(copy->bytes);
}

static void write_copy(const struct copy *copy, size_t size_bytes)
{
	assert_int_equal(ftruncate(copy->fd, 0), 0);
	assert_int_equal(pwrite(copy->fd, copy->bytes, size_bytes, 0), size_bytes);
}

static int touch_symbol(const struct rls_elf_symbol *symbol, void *context)
{
	*(size_t *)context += strlen(symbol->name) + symbol->vaddr;
	return 0;
}

static int touch_relocation(const struct rls_elf_relocation *relocation, void *context)
{
	*(size_t *)context += relocation->vaddr;
	if (relocation->symbol)
		*(size_t *)context += strlen(relocation->symbol);
	return 0;
}

static size_t methods_seen;

/* The tables of a file that may be anything, as discovery reads them. */
static void search_tables(struct rls_elf *elf)
{
	static const uint64_t bias = 0x7f0000000000;
	struct rls_scan_target target = {.begin = bias, .end = bias + 0x100000};
	const char *const everything[] = {"*", NULL};
	const struct rls_role_rule rule = {
		.file_glob = "*", .methods = RLS_METHODS_ALL, .symbols = everything};
	const struct rls_role_match match = {.rules = {&rule}, .count = 1};
	struct rls_harvest_library library = {.elf = elf, .load_bias = bias, .match = &match};
	struct rls_image_space image;
	const struct rls_elf_segment *segments;
	size_t count = rls_elf_segments(elf, &segments);
	struct rls_scan scan;

	for (size_t i = 0; i < count; i++) {
		if (!segments[i].executable)
			continue;
		target.code_begin = bias + segments[i].vaddr;
		target.code_end = target.code_begin + segments[i].file_bytes;
	}
	assert_int_equal(rls_image_space_init(&image, elf, bias), 0);
	rls_scan_init(&scan, &target, 1);
	scan.objects = true;
	for (size_t i = 0; i < image.segment_count; i++)
		rls_scan_block(&scan, image.segments[i].address, image.segments[i].bytes,
			       image.segments[i].length_bytes);
	assert_int_equal(rls_scan_finish(&scan), 0);
	assert_int_equal(rls_harvest(&scan, &image.space, &library, RLS_SOURCE_METHOD_FILE, 11), 0);
	for (size_t i = 0; i < library.functions.finds.count; i++)
		assert_true(rls_elf_is_executable(elf, library.functions.finds.items[i].vaddr));
	methods_seen += library.functions.finds.count;
	rls_function_set_release(&library.functions);
	rls_scan_release(&scan);
	rls_image_space_release(&image);
}

/* Every accessor, every byte it hands out. Crashes and sanitizer reports are the failure. */
static size_t exercise(struct rls_elf *elf)
{
	const struct rls_elf_extent *extents;
	const struct rls_elf_segment *segments;
	size_t sum = 0, count = rls_elf_segments(elf, &segments);

	for (size_t i = 0; i < count; i++) {
		size_t left = rls_elf_bytes_left(elf, segments[i].vaddr);
		const uint8_t *bytes = rls_elf_bytes(elf, segments[i].vaddr, left);

		for (size_t at = 0; bytes && at < left; at += 512)
			sum += bytes[at];
	}
	rls_elf_each_symbol(elf, touch_symbol, &sum);
	rls_elf_each_relocation(elf, touch_relocation, &sum);
	sum += rls_elf_has_section(elf, ".text") + rls_library_may_throw(elf);
	count = rls_elf_extents(elf, &extents);
	for (size_t i = 0; i < count; i++) {
		assert_true(rls_elf_bytes_left(elf, extents[i].vaddr) >= extents[i].size_bytes);
		sum += rls_elf_extent_at(elf, extents[i].vaddr)->size_bytes;
	}
	search_tables(elf);
	return sum;
}

static void survives_truncation_at_any_length(void **state)
{
	struct copy copy = copy_library(PLAIN_LIBRARY);
	size_t opened = 0;

	for (size_t length = 0; length < copy.size_bytes; length += 61) {
		struct rls_elf *elf;

		write_copy(&copy, length);
		if (rls_elf_open(copy.path, &elf))
			continue;
		exercise(elf);
		rls_elf_close(elf);
		opened++;
	}
	assert_true(opened > 10);
	drop_copy(&copy);
}

static void survives_changed_bytes(void **state)
{
	struct copy copy = copy_library(PLAIN_LIBRARY);
	size_t opened = 0;

	srandom(1);
	for (int round = 0; round < 3000; round++) {
		/* Half the changes go where the tables of contents are. */
		size_t range = round % 2 ? 1024 : copy.size_bytes;
		size_t at = random() % range;
		uint8_t old = copy.bytes[at];
		struct rls_elf *elf;

		copy.bytes[at] = round % 3 ? random() : 0xff;
		write_copy(&copy, copy.size_bytes);
		copy.bytes[at] = old;
		if (rls_elf_open(copy.path, &elf))
			continue;
		exercise(elf);
		rls_elf_close(elf);
		opened++;
	}
	assert_true(opened > 1000);
	assert_true(methods_seen > 1000);
	drop_copy(&copy);
}

static void a_file_cut_while_open_reads_as_zeros(void **state)
{
	struct copy copy = copy_library(PLAIN_LIBRARY);
	struct rls_elf_symbol symbol;
	struct rls_elf *elf;

	write_copy(&copy, copy.size_bytes);
	elf = open_or_fail(copy.path);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), 0);
	assert_int_equal(ftruncate(copy.fd, 100), 0);
	exercise(elf);
	assert_int_equal(rls_elf_find_symbol(elf, "plain_exported", &symbol), -ENOENT);
	rls_elf_close(elf);
	drop_copy(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_exported_and_static_symbols),
		cmocka_unit_test(stripping_leaves_the_dynamic_symbols),
		cmocka_unit_test(offsets_and_addresses_are_inverse),
		cmocka_unit_test(shared_page_belongs_to_the_executable_segment),
		cmocka_unit_test(bytes_end_with_their_segment),
		cmocka_unit_test(extents_agree_with_symbol_sizes),
		cmocka_unit_test(frames_are_as_large_as_stated),
		cmocka_unit_test(relocations_carry_pointers_and_plt_names),
		cmocka_unit_test(packed_relative_relocations_are_the_same),
		cmocka_unit_test(knows_who_can_throw),
		cmocka_unit_test(knows_who_is_but_linked_with_cxx),
		cmocka_unit_test(refuses_what_is_no_elf),
		cmocka_unit_test(survives_truncation_at_any_length),
		cmocka_unit_test(survives_changed_bytes),
		cmocka_unit_test(a_file_cut_while_open_reads_as_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
