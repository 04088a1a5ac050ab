/* Names of a library's functions equal the truth, wherever they are kept: in its own tables or,
 * stripped, in each of the ways of strip.sh. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/cleanup.h"
#include "userspace/elf/elf.h"
#include "userspace/names/debug_file.h"
#include "userspace/names/native_file.h"
#include "userspace/record/samples/code_map.h"

struct truth {
	struct rls_native_file *file;
	unsigned int functions;
};

static int check_function(const struct rls_elf_symbol *symbol, void *context)
{
	struct truth *truth = context;
	uint64_t start = 0;

	if (strncmp(symbol->name, "named_", 6))
		return 0;
	for (uint64_t at = 0; at < symbol->size_bytes; at++) {
		assert_string_equal(
			rls_native_file_function(truth->file, symbol->vaddr + at, &start),
			symbol->name);
		assert_int_equal(start, symbol->vaddr);
	}
	truth->functions++;
	return 0;
}

/* As the process sees it at seen_path. */
static void check_names(const char *path, pid_t pid, const char *seen_path)
{
	struct truth truth = {0};
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(NAMED_LIBRARY, &elf), 0);
	assert_int_equal(rls_native_file_open(path, pid, seen_path, &truth.file), 0);
	assert_int_equal(rls_elf_each_static_symbol(elf, check_function, &truth), 0);
	assert_int_equal(truth.functions, 4);
	assert_false(rls_native_file_is_interpreter(truth.file));
	rls_native_file_close(truth.file);
	rls_elf_close(elf);
}

static void names_are_found_wherever_they_are_kept(void **state)
{
	(void)state;
	check_names(NAMED_LIBRARY, 0, NAMED_LIBRARY);
	check_names(NAMED_FOLDER "/packed.so", 0, NAMED_FOLDER "/packed.so");
	check_names(NAMED_FOLDER "/beside.so", 0, NAMED_FOLDER "/beside.so");
	check_names(NAMED_FOLDER "/below.so", 0, NAMED_FOLDER "/below.so");
}

/* The truth must not come out where the names are not. */
static void check_nameless(const char *path)
{
	struct rls_native_file *file;
	struct rls_elf_symbol symbol;
	struct rls_elf *elf;
	uint64_t start = 0;

	assert_int_equal(rls_elf_open(NAMED_LIBRARY, &elf), 0);
	assert_int_equal(rls_elf_find_symbol(elf, "named_static", &symbol), 0);
	assert_int_equal(rls_native_file_open(path, 0, path, &file), 0);
	assert_string_equal(rls_native_file_function(file, symbol.vaddr + 1, &start), "");
	assert_int_equal(start, symbol.vaddr); /* by its extent */
	rls_native_file_close(file);
	rls_elf_close(elf);
}

static void another_builds_names_are_not_used(void **state)
{
	(void)state;
	check_nameless(NAMED_FOLDER "/stripped.so");
	check_nameless(NAMED_FOLDER "/other.so");
}

/* ---- stubs ---- */

/* Where a function first calls to. */
static uint64_t called_first(const struct rls_elf *elf, const char *function)
{
	struct rls_elf_symbol symbol;
	const uint8_t *bytes, *call;
	int32_t distance;

	assert_int_equal(rls_elf_find_symbol(elf, function, &symbol), 0);
	bytes = rls_elf_bytes(elf, symbol.vaddr, symbol.size_bytes);
	assert_non_null(bytes);
	call = memchr(bytes, 0xe8, symbol.size_bytes);
	assert_non_null(call);
	memcpy(&distance, call + 1, sizeof(distance));
	return symbol.vaddr + (call + 5 - bytes) + (int64_t)distance;
}

/* with_names is where the calling function is known; the same code in path may lack it. */
static void check_stub(const char *with_names, const char *path)
{
	struct rls_native_file *file;
	struct rls_elf *elf;
	uint64_t stub, start = 0;

	assert_int_equal(rls_elf_open(with_names, &elf), 0);
	stub = called_first(elf, "named_caller");
	assert_int_equal(rls_native_file_open(path, 0, path, &file), 0);
	for (uint64_t at = 0; at < 11; at++) { /* the least that stubs of three instructions have */
		assert_string_equal(rls_native_file_function(file, stub + at, &start),
				    "getppid@plt");
		assert_int_equal(start, stub);
	}
	assert_string_not_equal(rls_native_file_function(file, stub - 1, &start), "getppid@plt");
	assert_string_not_equal(rls_native_file_function(file, stub + 16, &start), "getppid@plt");
	rls_native_file_close(file);
	rls_elf_close(elf);
}

static void stubs_are_called_after_what_they_jump_to(void **state)
{
	(void)state;
	check_stub(NAMED_LIBRARY, NAMED_LIBRARY);
	check_stub(NAMED_LIBRARY, NAMED_FOLDER "/stripped.so");
	check_stub(NAMED_IBT_LIBRARY, NAMED_IBT_LIBRARY);
}

/* ---- interpreters without a loop ---- */

static void check_steps(const char *path, bool known)
{
	struct rls_native_file *file;
	struct rls_elf_symbol step;
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(STEPS_LIBRARY, &elf), 0);
	assert_int_equal(rls_elf_find_symbol(elf, "_TAIL_CALL_NOP", &step), 0);
	assert_int_equal(rls_native_file_open(path, 0, path, &file), 0);
	assert_true(rls_native_file_is_interpreter(file));
	assert_int_equal(rls_native_file_evaluates(file, step.vaddr + 1), known);
	assert_int_equal(rls_native_file_hides_evaluation(file), !known);
	rls_native_file_close(file);
	rls_elf_close(elf);
}

static void steps_of_evaluation_are_known_by_their_names_only(void **state)
{
	(void)state;
	check_steps(STEPS_LIBRARY, true);
	check_steps(STRIPPED_STEPS_LIBRARY, false);
}

/* ---- below another root ---- */

static void make_folders(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(path, 0755))
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
}

/* The library's debug file where its build's identity says, in a root of its own. */
static void place_by_identity(const char *root)
{
	char path[4096], command[2 * sizeof(path)], *at = path;
	const uint8_t *identity;
	struct rls_elf *elf;
	size_t bytes;

	assert_int_equal(rls_elf_open(NAMED_LIBRARY, &elf), 0);
	bytes = rls_elf_build_id(elf, &identity);
	assert_int_equal(bytes, 20);
	at += sprintf(at, "%s/usr/lib/debug/.build-id/%02x/", root, identity[0]);
	for (size_t i = 1; i < bytes; i++)
		at += sprintf(at, "%02x", identity[i]);
	strcpy(at, ".debug");
	rls_elf_close(elf);
	make_folders(path);
	snprintf(command, sizeof(command), "cp %s/whole.debug %s && cp %s/stripped.so %s/lib.so",
		 NAMED_FOLDER, path, NAMED_FOLDER, root);
	assert_int_equal(system(command), 0); /* NOLINT: a test's own paths */
}

/* A process whose root is a folder, or 0 where that is not allowed. */
static pid_t start_below(const char *root)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* root needs no name space of users, others may have one */
		if ((!geteuid() || !unshare(CLONE_NEWUSER)) && !chroot(root) && !chdir("/"))
			(void)!write(ready[1], "y", 1);
		close(ready[1]);
		pause();
		_exit(0);
	}
	close(ready[1]);
	assert_true(pid > 0);
	if (read(ready[0], &byte, 1) != 1) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		pid = 0;
	}
	close(ready[0]);
	return pid;
}

static void the_process_sees_files_below_its_own_root(void **state)
{
	char root[] = "/tmp/rls-names-XXXXXX", path[64], command[64];
	pid_t pid;

	(void)state;
	assert_non_null(mkdtemp(root));
	place_by_identity(root);
	pid = start_below(root);
	if (pid) {
		snprintf(path, sizeof(path), "/proc/%d/root/lib.so", pid);
		check_names(path, pid, "/lib.so");
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	/* Where it is not, its build's names are not known. */
	snprintf(path, sizeof(path), "%s/lib.so", root);
	check_nameless(path);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0); /* NOLINT */
	if (!pid) {
		print_message("nobody may change a process's root here\n");
		skip();
	}
}

/* ---- packed symbols ---- */

/* Whatever becomes of the packed bytes, at worst there are no names. */
static void broken_packed_symbols_are_none(void **state)
{
	uint8_t bytes[65536], changed[sizeof(bytes)];
	FILE *from = fopen(NAMED_FOLDER "/packed.so", "re");
	size_t count, opened = 0;

	(void)state;
	assert_non_null(from);
	count = fread(bytes, 1, sizeof(bytes), from);
	fclose(from);
	assert_true(count > 1000 && count < sizeof(bytes));
	srand(5);
	for (int round = 0; round < 2000; round++) {
		struct rls_elf *elf, *mini;
		uint8_t *copy = malloc(count);
		uint8_t *packed = memmem(bytes, count,
					 "\xfd"
					 "7zXZ",
					 6);
		size_t at = (size_t)(packed - bytes);

		assert_true(packed && copy);
		memcpy(changed, bytes, count);
		for (int i = rand() % 4; i >= 0; i--)
			changed[at + rand() % 600] = rand();
		memcpy(copy, changed, count);
		if (rls_elf_open_bytes(copy, count, &elf))
			continue;
		if (!rls_debug_data_open(elf, &mini)) {
			opened++;
			rls_elf_close(mini);
		}
		rls_elf_close(elf);
	}
	assert_true(opened < 2000); /* checksums of xz find nearly all */
}

/* ---- what the kernel maps ---- */

static void the_vdso_has_names(void **state)
{
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = vdso ? dlsym(vdso, "__vdso_clock_gettime") : NULL;
	struct rls_code_place place = {0};
	struct rls_native_file *file;
	struct rls_code_map *map;
	uint64_t vaddr, start;

	(void)state;
	if (!function) {
		print_message("there is no vdso here\n");
		skip();
	}
	assert_int_equal(rls_code_map_new(NULL, &map), 0);
	assert_int_equal(rls_code_map_find(map, getpid(), 1, (uintptr_t)function + 1, true, &place),
			 0);
	assert_string_equal(place.mapping->path, RLS_VDSO_PATH);
	file = rls_code_map_native(map, getpid(), &place, &vaddr);
	assert_non_null(file);
	assert_non_null(strstr(rls_native_file_function(file, vaddr, &start), "clock_gettime"));
	assert_int_equal(vaddr, start + 1);
	rls_code_map_free(map);
	dlclose(vdso);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found_wherever_they_are_kept),
		cmocka_unit_test(another_builds_names_are_not_used),
		cmocka_unit_test(stubs_are_called_after_what_they_jump_to),
		cmocka_unit_test(steps_of_evaluation_are_known_by_their_names_only),
		cmocka_unit_test(the_process_sees_files_below_its_own_root),
		cmocka_unit_test(broken_packed_symbols_are_none),
		cmocka_unit_test(the_vdso_has_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
