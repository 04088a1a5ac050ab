#include "probed.h"

#include <stddef.h>
#include <stdint.h>

#include "userspace/attach/features.h"

#define PROBED __attribute__((noinline, noclone))

PROBED void into_backend(body_function body, void *context)
{
	body(context);
}

PROBED void into_simulator(body_function body, void *context)
{
	body(context);
	asm volatile("" ::"i"(1)); /* not the same code as above: nobody may fold them */
}

PROBED void into_python(body_function body, void *context)
{
	body(context);
	asm volatile("" ::"i"(2));
}

PROBED void into_unseen(body_function body, void *context)
{
	body(context);
	asm volatile("" ::"i"(3));
}

/* In assembler, so that it stays a jump. */
asm(".text\n.p2align 4\n.globl into_jump\n.type into_jump, @function\n"
    "into_jump:\n\tpush %rbp\n\tpop %rbp\n\tjmp into_simulator\n"
    ".size into_jump, . - into_jump\n");

void nothing(void *context)
{
}

static const struct {
	void (*function)(body_function body, void *context);
	enum rls_category category;
	enum rls_site_exit exit;
	bool from_python;
} probed[SITES] = {
	[SITE_BACKEND] = {.function = into_backend,
			  .category = RLS_CATEGORY_BACKEND,
			  .exit = RLS_EXIT_RETURN_PROBE,
			  .from_python = true},
	[SITE_SIMULATOR] = {.function = into_simulator,
			    .category = RLS_CATEGORY_SIMULATOR,
			    .exit = RLS_EXIT_RETURN_PROBE},
	[SITE_PYTHON] = {.function = into_python,
			 .category = RLS_CATEGORY_PYTHON,
			 .exit = RLS_EXIT_RETURN_PROBE},
	[SITE_UNSEEN] = {.function = into_unseen,
			 .category = RLS_CATEGORY_BACKEND,
			 .exit = RLS_EXIT_UNSEEN,
			 .from_python = true},
	[SITE_JUMP] = {.function = into_jump,
		       .category = RLS_CATEGORY_BACKEND,
		       .exit = RLS_EXIT_RETURN_PROBE,
		       .from_python = true},
};

const void *probed_address(enum probed_site site)
{
	return (const void *)(uintptr_t)probed[site].function;
}

int probed_sites(struct rls_site sites[SITES])
{
	for (int i = 0; i < SITES; i++) {
		unsigned long offset;
		int r = rls_own_file_offset(probed_address((enum probed_site)i), &offset);

		if (r)
			return r;
		sites[i] = (struct rls_site){
			.file_offset = offset,
			.kind = RLS_SITE_ENTER,
			.site_class = RLS_SITE_EMULATED,
			.exit = probed[i].exit,
			.category = probed[i].category,
			.from_python = probed[i].from_python,
		};
	}
	return 0;
}
