/* Executables that are known to run Python. The kernel side is the test's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "userspace/record/samples/interpreter_images.h"

static struct rls_interpreter_images images;
static struct {
	unsigned int set;
	ino_t inode;
	struct rls_wire_interpreter wire;
} world;

void __wrap_rls_kernel_set_image(struct rls_kernel *kernel, dev_t device, ino_t inode,
				 const struct rls_wire_interpreter *interpreter);
void __wrap_rls_kernel_set_image(struct rls_kernel *kernel, dev_t device, ino_t inode,
				 const struct rls_wire_interpreter *interpreter)
{
	(void)kernel, (void)device;
	world.set++;
	world.inode = inode;
	world.wire = *interpreter;
}

static struct rls_wire_interpreter wire_of(const struct rls_frame_layout *layout, uint32_t slot,
					   const struct rls_python *found)
{
	return (struct rls_wire_interpreter){
		.slot = slot, .code_type = found->code_type, .frame_code = layout->frame_code};
}

static char folder[] = "/tmp/rls-images-XXXXXX";

static const char *file(const char *name)
{
	static char path[64];
	FILE *made;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	made = fopen(path, "a");
	assert_non_null(made);
	fclose(made);
	return path;
}

static int begin(void **state)
{
	(void)state;
	memset(&images, 0, sizeof(images));
	memset(&world, 0, sizeof(world));
	strcpy(folder, "/tmp/rls-images-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static void a_name_gives_the_version(void **state)
{
	static const struct {
		const char *name;
		bool known;
	} rows[] = {
		{"python3.8", true},          {"python3.14", true}, {"python3.13t", true},
		{"python3.14t", false},       {"python3.7", false}, {"python3", false},
		{"python3.11-config", false}, {"python2.7", false}, {"bash", false},
	};
	unsigned int known = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		rls_interpreter_images_expect(&images, NULL, file(rows[i].name), wire_of);
		known += rows[i].known;
		assert_int_equal(world.set, known);
	}
	rls_interpreter_images_expect(&images, NULL, "/nowhere/python3.11", wire_of);
	assert_int_equal(world.set, known);
}

static void links_lead_to_the_name(void **state)
{
	struct stat status;
	char link[64];

	(void)state;
	snprintf(link, sizeof(link), "%s/python", folder);
	assert_int_equal(symlink("python3.12", link), 0);
	assert_int_equal(stat(file("python3.12"), &status), 0);
	rls_interpreter_images_expect(&images, NULL, link, wire_of);
	assert_int_equal(world.set, 1);
	assert_int_equal(world.inode, status.st_ino);
	assert_int_equal(world.wire.slot, 0x318);
	rls_interpreter_images_expect(&images, NULL, file("python3.12"), wire_of);
	assert_int_equal(world.set, 1); /* the same */
}

static void what_a_process_shows_holds_for_its_executable(void **state)
{
	const struct rls_python python = {.major = 3, .minor = 11, .runtime = 1};
	const struct rls_wire_interpreter wire = {.slot = 0x328, .code_type = 0x1000};
	const struct rls_interpreter_image *image;

	(void)state;
	assert_null(rls_interpreter_images_of(&images, getpid()));
	rls_interpreter_images_learn(&images, NULL, getpid(), rls_frame_layout_of(&python), &wire);
	image = rls_interpreter_images_of(&images, getpid());
	assert_non_null(image);
	assert_int_equal(image->layout->minor, 11);
	assert_int_equal(image->wire.slot, 0x328);
	assert_int_equal(image->wire.code_type, 0); /* elsewhere in each process */
	assert_int_equal(world.wire.code_type, 0);
	rls_interpreter_images_learn(&images, NULL, getpid(), rls_frame_layout_of(&python), &wire);
	assert_int_equal(images.count, 1);
}

static void no_more_are_kept_than_there_is_room_for(void **state)
{
	char name[32], sub[64];

	(void)state;
	for (unsigned int i = 0; i < RLS_INTERPRETER_IMAGES_MAX + 2; i++) {
		snprintf(sub, sizeof(sub), "%s/%u", folder, i);
		assert_int_equal(mkdir(sub, 0700), 0);
		snprintf(name, sizeof(name), "%u/python3.11", i);
		rls_interpreter_images_expect(&images, NULL, file(name), wire_of);
	}
	assert_int_equal(images.count, RLS_INTERPRETER_IMAGES_MAX);
	assert_int_equal(world.set, RLS_INTERPRETER_IMAGES_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_name_gives_the_version, begin, end),
		cmocka_unit_test_setup_teardown(links_lead_to_the_name, begin, end),
		cmocka_unit_test_setup_teardown(what_a_process_shows_holds_for_its_executable,
						begin, end),
		cmocka_unit_test_setup_teardown(no_more_are_kept_than_there_is_room_for, begin,
						end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
