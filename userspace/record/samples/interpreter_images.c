#include "userspace/record/samples/interpreter_images.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/process/living_thread.h"

/* Of a process's first thread-specific key, which CPython makes before anything else does: in
 * glibc's thread descriptor. */
#define FIRST_KEY_SLOT 0x318

static struct rls_interpreter_image *image_find(const struct rls_interpreter_images *images,
						const struct stat *file)
{
	for (size_t i = 0; i < images->count; i++) {
		if (images->all[i].device == file->st_dev && images->all[i].inode == file->st_ino)
			return (struct rls_interpreter_image *)&images->all[i];
	}
	return NULL;
}

static void image_set(struct rls_interpreter_images *images, struct rls_kernel *kernel,
		      const struct stat *file, const struct rls_frame_layout *layout,
		      const struct rls_wire_interpreter *wire)
{
	struct rls_interpreter_image *image = image_find(images, file);

	if (!image && images->count == RLS_INTERPRETER_IMAGES_MAX)
		return;
	if (!image)
		image = &images->all[images->count++];
	*image = (struct rls_interpreter_image){file->st_dev, file->st_ino, layout, *wire};
	image->wire.code_type = 0;
	image->wire.interpreters = image->wire.holders[0] = image->wire.holders[1] = 0;
	rls_kernel_set_image(kernel, file->st_dev, file->st_ino, &image->wire);
}

static bool executable_of(pid_t pid, struct stat *out)
{
	char path[RLS_PROCESS_PATH_BYTES];

	rls_process_path(path, pid, "exe");
	return !stat(path, out);
}

void rls_interpreter_images_learn(struct rls_interpreter_images *images, struct rls_kernel *kernel,
				  pid_t pid, const struct rls_frame_layout *layout,
				  const struct rls_wire_interpreter *wire)
{
	struct stat file;

	if (executable_of(pid, &file))
		image_set(images, kernel, &file, layout, wire);
}

void rls_interpreter_images_expect(
	struct rls_interpreter_images *images, struct rls_kernel *kernel, const char *path,
	struct rls_wire_interpreter (*wire)(const struct rls_frame_layout *layout, uint32_t slot,
					    const struct rls_python *found))
{
	struct rls_python python = {.runtime = 1}; /* it will have one */
	struct rls_wire_interpreter found;
	char real[PATH_MAX], *name, suffix[4] = "";
	struct stat file;
	const struct rls_frame_layout *layout;

	if (!realpath(path, real) || stat(real, &file) || image_find(images, &file))
		return;
	name = strrchr(real, '/');
	if (!name || sscanf(name, "/python%1u.%2u%3s", &python.major, &python.minor, suffix) < 2 ||
	    (*suffix && strcmp(suffix, "t")))
		return;
	python.free_threaded = *suffix;
	layout = rls_frame_layout_of(&python);
	if (!layout)
		return;
	found = wire(layout, FIRST_KEY_SLOT, &python);
	image_set(images, kernel, &file, layout, &found);
}

const struct rls_interpreter_image *
rls_interpreter_images_of(const struct rls_interpreter_images *images, pid_t pid)
{
	struct stat file;

	return executable_of(pid, &file) ? image_find(images, &file) : NULL;
}
