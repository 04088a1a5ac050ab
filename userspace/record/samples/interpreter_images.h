/* Interpreter images: executables that are known to run Python, and how its stacks are walked.
 *
 * What a process executes decides where its threads' states will be, before any is there. So the
 * kernel side walks the stacks of a process from its exec on, if the file was met before, in an
 * earlier process or as the command of `run`. All of it is an assumption until the process's own
 * interpreter has been found. Files are known by device and inode.
 */
#ifndef RLS_INTERPRETER_IMAGES_H
#define RLS_INTERPRETER_IMAGES_H

#include <stddef.h>
#include <sys/types.h>

#include "bpf/wire/stack.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/python/python_frames.h"

#define RLS_INTERPRETER_IMAGES_MAX 256 /* as many as the kernel side keeps; more are not kept */

struct rls_interpreter_image {
	dev_t device;
	ino_t inode;
	const struct rls_frame_layout *layout;
	struct rls_wire_interpreter wire; /* without addresses: they depend on where it is loaded */
};

/* Zeroed: empty. */
struct rls_interpreter_images {
	struct rls_interpreter_image all[RLS_INTERPRETER_IMAGES_MAX];
	size_t count;
};

/* The process's executable runs this Python: any process that executes it will. */
void rls_interpreter_images_learn(struct rls_interpreter_images *images, struct rls_kernel *kernel,
				  pid_t pid, const struct rls_frame_layout *layout,
				  const struct rls_wire_interpreter *wire);
/* A file that may be executed soon, judged by its name behind all links (python3.11): of such a name it is not
 * if that is no interpreter's. wire: of a layout, as on_the_wire has it. */
void rls_interpreter_images_expect(
	struct rls_interpreter_images *images, struct rls_kernel *kernel, const char *path,
	struct rls_wire_interpreter (*wire)(const struct rls_frame_layout *layout, uint32_t slot,
					    const struct rls_python *found));
/* What the process executes; NULL: nothing that is known. */
const struct rls_interpreter_image *
rls_interpreter_images_of(const struct rls_interpreter_images *images, pid_t pid);

#endif
