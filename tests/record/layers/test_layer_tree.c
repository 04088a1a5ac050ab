/* Names of layers, read from each interpreter that is installed, are those that the program itself gives them
 * (tree.py); and memory that changes meanwhile, or that is made up, does no harm. */
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/discover/child.h"
#include "userspace/plan/layer_sites.h"
#include "userspace/process/mappings.h"
#include "userspace/python/interpreter.h"
#include "userspace/record/layers/layer_tree.h"

#define PROGRAM "exec(compile(open('tree.py', encoding='utf-8').read(), 'tree.py', 'exec'))\n"

static const char *const interpreters[] = {INTERPRETERS};

struct opened {
	struct child child;
	struct rls_live_space live;
	struct rls_python python;
	struct rls_object_reader reader;
	uint64_t part, whole; /* addresses of the outermost layers */
};

/* False: there is no such interpreter. */
static bool open_program(struct opened *opened, const char *interpreter)
{
	struct rls_mappings mappings;
	char line[4096];

	if (!child_start(&opened->child, interpreter, ".", PROGRAM))
		return false;
	assert_true(child_line(&opened->child, line, sizeof(line)));
	assert_int_equal(sscanf(line, "%" SCNu64 " %" SCNu64, &opened->part, &opened->whole), 2);
	assert_int_equal(rls_mappings_read(opened->child.pid, &mappings), 0);
	assert_int_equal(rls_python_find(opened->child.pid, &mappings, &opened->python), 0);
	rls_mappings_release(&mappings);
	rls_live_space_open(&opened->live, opened->child.pid);
	opened->reader = (struct rls_object_reader){&opened->live.space,
						    rls_frame_layout_of(&opened->python)};
	return true;
}

static void close_program(struct opened *opened)
{
	rls_live_space_close(&opened->live);
	child_stop(&opened->child);
}

/* Returns how many there are. */
static size_t check_names(struct opened *opened, const struct rls_layer_tree *tree, uint64_t root)
{
	char line[4096];
	size_t count = 0;

	while (child_line(&opened->child, line, sizeof(line)) && strcmp(line, "end") != 0) {
		char *at = line;
		uint64_t address = strtoull(strsep(&at, "\t"), NULL, 10);
		const char *path = strsep(&at, "\t"), *raw_path = strsep(&at, "\t");
		const struct rls_layer_node *node = rls_layer_tree_find(
			tree, address, rls_object_class(&opened->reader, address));

		assert_non_null(node);
		assert_string_equal(node->path, path);
		assert_string_equal(node->raw_path, raw_path);
		assert_string_equal(node->class_name, at);
		assert_int_equal(node->root, root);
		count++;
	}
	return count;
}

static void names_are_the_programs_own(void **unused)
{
	size_t found = 0;

	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		struct rls_layer_tree tree = {0};
		struct opened opened;

		if (!open_program(&opened, interpreters[i]))
			continue;
		assert_true(rls_objects_known(opened.reader.layout));
		assert_int_equal(rls_layer_tree_walk(&tree, &opened.reader, opened.part), 0);
		assert_int_equal(check_names(&opened, &tree, opened.part), 2);
		assert_int_equal(tree.count, 2);
		/* The larger tree has the smaller one within. */
		assert_int_equal(rls_layer_tree_walk(&tree, &opened.reader, opened.whole), 0);
		assert_int_equal(check_names(&opened, &tree, opened.whole), tree.count);
		assert_true(tree.count > 340);
		/* And keeps it. */
		assert_int_equal(rls_layer_tree_walk(&tree, &opened.reader, opened.part), 0);
		assert_string_equal(
			rls_layer_tree_find(&tree, opened.part,
					    rls_object_class(&opened.reader, opened.part))
				->path,
			"late");
		rls_layer_tree_clear(&tree);
		close_program(&opened);
		found++;
	}
	assert_true(found > 0);
}

static void modules_are_found_by_name(void **unused)
{
	struct rls_dict dict;
	struct opened opened;

	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		uint64_t object;

		if (!open_program(&opened, interpreters[i]))
			continue;
		assert_true(
			rls_module_open(&opened.reader, opened.python.runtime, "builtins", &dict));
		assert_true(rls_dict_find(&opened.reader, &dict, "print") != 0);
		object = rls_dict_find(&opened.reader, &dict, "print");
		assert_int_equal(rls_object_class(&opened.reader, object), 0);
		assert_int_equal(rls_dict_find(&opened.reader, &dict, "prin"), 0);
		assert_false(
			rls_module_open(&opened.reader, opened.python.runtime, "nothing", &dict));
		close_program(&opened);
	}
}

/* The function by which objects are called is that of every class that has a __call__ of its own. */
static void calls_of_objects_can_be_probed(void **unused)
{
	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		struct rls_layer_sites sites;
		struct rls_mappings mappings;
		const struct rls_mapping *mapping;
		struct rls_dict builtins;
		struct opened opened;
		struct rls_elf *elf;
		uint64_t call;

		if (!open_program(&opened, interpreters[i]))
			continue;
		assert_true(rls_module_open(&opened.reader, opened.python.runtime, "builtins",
					    &builtins));
		call = rls_class_call(
			&opened.reader,
			rls_object_class(&opened.reader,
					 rls_dict_find(&opened.reader, &builtins, "exit")));
		assert_int_equal(call,
				 rls_class_call(&opened.reader,
						rls_object_class(&opened.reader, opened.whole)));
		assert_int_equal(rls_mappings_read(opened.child.pid, &mappings), 0);
		mapping = rls_mappings_at(&mappings, call);
		assert_non_null(mapping);
		assert_int_equal(rls_elf_open(mapping->path, &elf), 0);
		assert_int_equal(rls_layer_sites_find(elf, call - opened.python.load_bias, &sites),
				 0);
		assert_false(sites.items[0].ends);
		assert_int_equal(sites.items[0].site_class, RLS_SITE_EMULATED);
		assert_true(sites.all_ends && sites.count > 1 && sites.items[1].ends);
		/* Within a function there is none that begins. */
		assert_int_equal(
			rls_layer_sites_find(elf, call - opened.python.load_bias + 1, &sites),
			-ENOENT);
		rls_elf_close(elf);
		rls_mappings_release(&mappings);
		close_program(&opened);
	}
}

/* ---- made-up memory ---- */

/* The program's memory, with words of it replaced at random. */
struct damaged_space {
	struct rls_space space;
	const struct rls_space *whole;
	uint64_t state;
	unsigned int one_of;
};

static uint64_t draw(struct damaged_space *damaged)
{
	damaged->state = damaged->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return damaged->state >> 16;
}

static size_t read_damaged(const struct rls_space *space, uint64_t address, void *buffer,
			   size_t length)
{
	struct damaged_space *damaged = (struct damaged_space *)(uintptr_t)space; /* first member */
	size_t got = damaged->whole->read(damaged->whole, address, buffer, length);

	if (got && !(draw(damaged) % damaged->one_of)) {
		size_t bytes = got < 8 ? got : 8, at = draw(damaged) % (got - bytes + 1);
		uint64_t word = draw(damaged) << (draw(damaged) % 48);

		memcpy((char *)buffer + at, &word, bytes);
	}
	return got;
}

static void damaged_memory_does_no_harm(void **unused)
{
	struct opened opened;

	for (size_t i = 0; i < sizeof(interpreters) / sizeof(*interpreters); i++) {
		if (!open_program(&opened, interpreters[i]))
			continue;
		for (uint64_t seed = 1; seed <= 6; seed++) {
			struct damaged_space damaged = {.space = {read_damaged},
							.whole = &opened.live.space,
							.state = seed,
							.one_of = 3 + (unsigned int)seed * 7};
			const struct rls_object_reader reader = {&damaged.space,
								 opened.reader.layout};
			struct rls_layer_tree tree = {0};

			for (int k = 0; k < 4; k++)
				assert_int_equal(
					rls_layer_tree_walk(&tree, &reader,
							    k % 2 ? opened.part : opened.whole),
					0);
			assert_true(tree.count <= RLS_LAYERS_MAX);
			rls_layer_tree_clear(&tree);
		}
		close_program(&opened);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_the_programs_own),
		cmocka_unit_test(modules_are_found_by_name),
		cmocka_unit_test(calls_of_objects_can_be_probed),
		cmocka_unit_test(damaged_memory_does_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
