/* Discovery in living interpreters, one per CPython version that is installed, on the
 * ground truth's extension module: it has every method convention and slot, in static
 * and heap types, and is built with symbols, which discovery does not read, and without.
 */
#include <errno.h>
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/discover/discover.h"
#include "userspace/elf/elf.h"

#define PROGRAM                                                                                    \
	"import sys, platform\n"                                                                   \
	"sys.path.insert(0, '.')\n"                                                                \
	"print('ready', flush=True)\n"                                                             \
	"print(platform.python_version(), flush=True)\n"                                           \
	"sys.stdin.readline()\n"                                                                   \
	"import truthsim\n"                                                                        \
	"kept = truthsim.Heap()\n"                                                                 \
	"print('imported', flush=True)\n"                                                          \
	"sys.stdin.readline()\n"

/* What Python calls in truthsim, the end of an object included. */
static const char *const expected_symbols[] = {
	"meth_o",           "meth_noargs",
	"meth_varargs",     "meth_keywords",
	"meth_fastcall",    "meth_fastcall_keywords",
	"meth_raises",      "heap_noargs",
	"heap_o",           "heap_varargs",
	"heap_fastcall",    "meth_callback",
	"meth_recurse",     "slot_init",
	"slot_hash",        "slot_iter",
	"slot_iternext",    "slot_bool",
	"slot_length",      "slot_contains",
	"slot_subscript",   "slot_ass_subscript",
	"slot_call",        "slot_add",
	"slot_richcompare", "slot_str",
	"slot_repr",        "type_class",
	"type_static",      "type_fastcall",
	"type_noargs",      "type_o",
	"get_value",        "set_value",
	"seq_item",         "seq_ass_item",
	"attr_getattro",    "attr_setattro",
	"lifetime_new",     "lifetime_dealloc",
};
/* Called in C only. */
static const char *const unexpected_symbols[] = {
	"PyInit_truthsim",
	"truth_methods_add",
	"call_object",
	"drop_last",
};

struct interpreter {
	char path[512], folder[512];
};

static bool find_interpreter(const char *tag, struct interpreter *out)
{
	char pattern[512];
	const char *home = getenv("PYENV_ROOT");
	glob_t found;
	bool ok;

	if (!strcmp(tag, "system")) {
		snprintf(out->path, sizeof(out->path), "/usr/bin/python3");
		return !access(out->path, X_OK);
	}
	if (home)
		snprintf(pattern, sizeof(pattern), "%s/versions/%s.*/bin/python3", home, tag);
	else
		snprintf(pattern, sizeof(pattern), "%s/.pyenv/versions/%s.*/bin/python3",
			 getenv("HOME"), tag);
	ok = !glob(pattern, 0, NULL, &found);
	if (ok)
		snprintf(out->path, sizeof(out->path), "%s", found.gl_pathv[0]);
	globfree(&found);
	return ok;
}

/* The modules of a tag ("3.12", "3.12-stripped") and the interpreter they are for. */
static void find_or_skip(const char *tag, struct interpreter *out)
{
	char bare[32], pattern[600];
	glob_t found;

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(tag, "-"), tag);
	snprintf(out->folder, sizeof(out->folder), "%s/%s", TRUTH_FOLDER, tag);
	snprintf(pattern, sizeof(pattern), "%s/truthsim*.so", out->folder);
	if (glob(pattern, 0, NULL, &found)) {
		print_message("no truthsim was built for %s: skipped\n", tag);
		skip();
	}
	globfree(&found);
	if (!find_interpreter(bare, out)) {
		print_message("no Python %s is installed: skipped\n", bare);
		skip();
	}
}

static struct rls_library *find_library(const struct rls_process_image *image, const char *part)
{
	for (size_t i = 0; i < image->library_count; i++)
		if (strstr(image->libraries[i]->path, part))
			return image->libraries[i];
	return NULL;
}

static const struct rls_boundary_function *function_at(const struct rls_library *library,
						       uint64_t vaddr)
{
	for (size_t i = 0; i < library->function_count; i++)
		if (library->functions[i].vaddr == vaddr)
			return &library->functions[i];
	return NULL;
}

static const struct rls_boundary_function *function_named(const struct rls_library *library,
							  const char *name)
{
	for (size_t i = 0; i < library->function_count; i++)
		if (!strcmp(library->functions[i].name, name))
			return &library->functions[i];
	return NULL;
}

struct symbol_check {
	const struct rls_library *library;
	size_t expected, missing, unwanted;
};

static bool is_in(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

#define COUNT_OF(array) (sizeof(array) / sizeof(*(array)))

static int check_symbol(const struct rls_elf_symbol *symbol, void *context)
{
	struct symbol_check *check = context;

	if (!symbol->function || !symbol->defined)
		return 0;
	if (is_in(expected_symbols, COUNT_OF(expected_symbols), symbol->name)) {
		const struct rls_boundary_function *function =
			function_at(check->library, symbol->vaddr);
		enum rls_boundary_kind kind = strstr(symbol->name, "_dealloc")
						      ? RLS_BOUNDARY_DROPPED
						      : RLS_BOUNDARY_PYTHON_CALLS;

		check->expected++;
		if (!function || function->kind != kind ||
		    function->size_bytes != symbol->size_bytes) {
			print_error("%s was not found\n", symbol->name);
			check->missing++;
		}
	}
	if (is_in(unexpected_symbols, COUNT_OF(unexpected_symbols), symbol->name) &&
	    function_at(check->library, symbol->vaddr)) {
		print_error("%s was found\n", symbol->name);
		check->unwanted++;
	}
	return 0;
}

/* Both types have their own slot_* and type_*: those names stand there twice. */
static void check_against_symbols(const struct rls_library *library)
{
	struct symbol_check check = {.library = library};
	struct rls_elf *elf;

	assert_int_equal(rls_elf_open(library->host_path, &elf), 0);
	rls_elf_each_symbol(elf, check_symbol, &check);
	rls_elf_close(elf);
	assert_true(check.expected > COUNT_OF(expected_symbols));
	assert_int_equal(check.missing, 0);
	assert_int_equal(check.unwanted, 0);
}

static void check_names(const struct rls_library *library)
{
	static const struct {
		const char *name;
		unsigned int source;
	} cases[] = {
		{"keywords", RLS_SOURCE_METHOD_LIVE},
		{"heap_varargs", RLS_SOURCE_METHOD_LIVE},
		{"truthsim.Static.fastcall", RLS_SOURCE_METHOD_LIVE},
		{"truthsim.Static.nb_add", RLS_SOURCE_SLOT},
		{"truthsim.Static.value", RLS_SOURCE_GETTER},
		{"truthsim.Static.value (set)", RLS_SOURCE_GETTER},
		{"truthsim.Heap.tp_call", RLS_SOURCE_SLOT},
		{"truthsim.Heap.mp_subscript", RLS_SOURCE_SLOT},
		{"truthsim.Heap.value", RLS_SOURCE_GETTER},
		{"truthsim.Seq.sq_item", RLS_SOURCE_SLOT},
		{"PyObject_CallObject", RLS_SOURCE_CALLBACK},
	};

	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		const struct rls_boundary_function *function =
			function_named(library, cases[i].name);

		if (!function || !(function->sources & cases[i].source))
			fail_msg("no %s of source %x", cases[i].name, cases[i].source);
	}
	/* Built at import in malloc'ed memory: the file has no trace of it. */
	assert_false(function_named(library, "heap_varargs")->sources & RLS_SOURCE_METHOD_FILE);
	assert_true(function_named(library, "keywords")->sources & RLS_SOURCE_METHOD_FILE);
}

static struct rls_roles *truthsim_roles(void)
{
	struct rls_roles *roles;

	assert_int_equal(rls_roles_new(&roles), 0);
	assert_int_equal(rls_roles_add(roles, RLS_ROLE_SIMULATOR, "truthsim*.so"), 0);
	return roles;
}

static void check_order(const struct rls_library *library)
{
	for (size_t i = 1; i < library->function_count; i++)
		assert_true(library->functions[i - 1].vaddr < library->functions[i].vaddr);
}

/* Attach first, import later, then again: what is found in steps is what is found at once.
 * (Up to 3.10 truthsim calls inline, and the interpreter gains its evaluation loop.) */
static void discovers(const char *tag)
{
	struct interpreter interpreter;
	struct rls_process_image *image, *added, *whole;
	struct rls_library *library, *later;
	struct rls_roles *roles;
	struct child child;
	char line[64];
	size_t first_new;

	find_or_skip(tag, &interpreter);
	roles = truthsim_roles();
	assert_true(child_start(&child, interpreter.path, interpreter.folder, PROGRAM));
	assert_true(child_line(&child, line, sizeof(line)));
	assert_int_equal(rls_discover_process(child.pid, roles, &image), 0);
	assert_string_equal(image->python.version, line);
	assert_true(image->python.layout_known);
	assert_int_equal(rls_process_image_known_libraries(image), 0);
	assert_int_equal(rls_discover_new_libraries(image, roles, &first_new), 0);
	assert_int_equal(first_new, image->library_count);
	assert_true(image->modules > 10);
	assert_false(rls_discover_imported(image));

	child_say(&child, "import");
	assert_true(child_line(&child, line, sizeof(line)));
	assert_int_equal(rls_discover_new_libraries(image, roles, &first_new), 0);
	assert_int_equal(first_new + 1, image->library_count);
	library = image->libraries[first_new];
	assert_non_null(strstr(library->path, "truthsim"));
	assert_int_equal(library->role, RLS_ROLE_SIMULATOR);
	assert_false(library->may_throw);
	assert_null(function_named(library, "heap_varargs"));
	assert_true(rls_discover_imported(image));
	assert_int_equal(rls_discover_again(image, roles, &added), 0);
	later = find_library(added, "truthsim");
	assert_non_null(later);
	assert_non_null(function_named(later, "heap_varargs"));
	assert_null(function_named(later, "keywords"));
	assert_ptr_equal(find_library(image, "truthsim"), library);
	rls_process_image_free(added);
	assert_int_equal(rls_discover_again(image, roles, &added), 0);
	assert_int_equal(added->library_count, 0);
	assert_false(rls_discover_imported(image));
	rls_process_image_free(added);

	assert_int_equal(rls_discover_process(child.pid, roles, &whole), 0);
	check_order(library);
	check_names(find_library(whole, "truthsim"));
	assert_int_equal(find_library(whole, "truthsim")->function_count, library->function_count);
	if (!strstr(tag, "stripped"))
		check_against_symbols(library);
	rls_process_image_free(whole);
	rls_process_image_free(image);
	rls_roles_free(roles);
	child_stop(&child);
}

#define VERSION(name, tag)                                                                         \
	static void name(void **state)                                                             \
	{                                                                                          \
		discovers(tag);                                                                    \
	}
VERSION(discovers_in_3_8, "3.8")
VERSION(discovers_in_3_9, "3.9")
VERSION(discovers_in_3_10, "3.10")
VERSION(discovers_in_3_11, "3.11")
VERSION(discovers_in_3_12, "3.12")
VERSION(discovers_in_3_13, "3.13")
VERSION(discovers_in_3_14, "3.14")
VERSION(discovers_in_the_systems, "system")
VERSION(discovers_stripped_in_3_12, "3.12-stripped")
VERSION(discovers_stripped_in_the_systems, "system-stripped")

static void narrowing_leaves_only_what_is_asked_for(void **state)
{
	struct interpreter interpreter;
	struct rls_process_image *image;
	struct rls_library *library;
	struct rls_roles *roles;
	struct child child;

	find_or_skip("system", &interpreter);
	assert_int_equal(rls_roles_new(&roles), 0);
	assert_int_equal(rls_roles_add(roles, RLS_ROLE_NATIVE, "truthsim*.so:*fastcall*"), 0);
	assert_true(
		child_start(&child, interpreter.path, interpreter.folder,
			    "import sys, truthsim; print('ready', flush=True); sys.stdin.read()"));
	assert_int_equal(rls_discover_process(child.pid, roles, &image), 0);
	library = find_library(image, "truthsim");
	assert_non_null(library);
	assert_int_equal(library->role, RLS_ROLE_NATIVE);
	assert_non_null(function_named(library, "fastcall_keywords"));
	assert_non_null(function_named(library, "truthsim.Heap.fastcall"));
	assert_null(function_named(library, "keywords"));
	assert_null(function_named(library, "truthsim.Heap.tp_call"));
	rls_process_image_free(image);
	rls_roles_free(roles);
	child_stop(&child);
}

/* Cython calls Python functions through a pointer: only the interpreter's own entry sees all
 * of that, so it comes with the module, even when that is imported later. */
static void inline_calls_bring_the_evaluation_loop(void **state)
{
	struct interpreter interpreter;
	struct rls_process_image *image, *added;
	struct rls_library *python;
	struct rls_roles *roles;
	struct child child;
	size_t first_new;
	char line[64];

	find_or_skip("system", &interpreter);
	assert_int_equal(rls_roles_new(&roles), 0);
	assert_int_equal(rls_roles_add(roles, RLS_ROLE_SIMULATOR, "truthcy*.so"), 0);
	assert_true(child_start(&child, interpreter.path, interpreter.folder,
				"import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n"
				"import truthcy\nprint('imported', flush=True)\n"
				"sys.stdin.readline()\n"));
	assert_int_equal(rls_discover_process(child.pid, roles, &image), 0);
	python = find_library(image, image->python_path);
	assert_non_null(python);
	assert_int_equal(python->role, RLS_ROLE_PYTHON);
	assert_int_equal(python->function_count, 0);
	child_say(&child, "import");
	if (!child_line(&child, line, sizeof(line))) {
		print_message("no truthcy was built: skipped\n");
		skip();
	}
	assert_int_equal(rls_discover_new_libraries(image, roles, &first_new), 0);
	assert_int_equal(rls_discover_again(image, roles, &added), 0);
	assert_int_equal(python->function_count, 1);
	assert_int_equal(python->functions[0].kind, RLS_BOUNDARY_CALLBACK_ENTRY);
	assert_non_null(find_library(added, image->python_path));
	rls_process_image_free(added);
	rls_process_image_free(image);
	rls_roles_free(roles);
	child_stop(&child);
}

static void no_python_is_no_error(void **state)
{
	struct rls_process_image *image;
	struct rls_roles *roles = truthsim_roles();

	assert_int_equal(rls_discover_process(getpid(), roles, &image), 0);
	assert_string_equal(image->python.version, "");
	assert_int_equal(image->library_count, 0);
	assert_true(rls_discover_imported(image)); /* it cannot be known */
	rls_process_image_free(image);
	assert_int_equal(rls_discover_process(0x3fffffff, roles, &image), -ESRCH);
	rls_roles_free(roles);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(discovers_in_3_8),
		cmocka_unit_test(discovers_in_3_9),
		cmocka_unit_test(discovers_in_3_10),
		cmocka_unit_test(discovers_in_3_11),
		cmocka_unit_test(discovers_in_3_12),
		cmocka_unit_test(discovers_in_3_13),
		cmocka_unit_test(discovers_in_3_14),
		cmocka_unit_test(discovers_in_the_systems),
		cmocka_unit_test(discovers_stripped_in_3_12),
		cmocka_unit_test(discovers_stripped_in_the_systems),
		cmocka_unit_test(narrowing_leaves_only_what_is_asked_for),
		cmocka_unit_test(inline_calls_bring_the_evaluation_loop),
		cmocka_unit_test(no_python_is_no_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
