/* What samples of stacks are taken of, instead of processes: interpreters, files and mappings, by wrapped functions.
 * What is reported of them is text. */
#ifndef RLS_TEST_STACK_WORLD_H
#define RLS_TEST_STACK_WORLD_H

#include <stdbool.h>
#include <sys/types.h>

#include "analysis/base/string_pool.h"

#define PID 7
#define TID 8
/* Code by what it is. */
enum {
	LOOP = 0x1000,
	RUNTIME = 0x2000,
	LIBRARY = 0x3000,
	NAMELESS = 0x4000,
	COMPILED = 0x5000,
	NOWHERE = 0x6000,
	SITE = 0x3080
};
/* Frames by the addresses of their code. */
enum { CODE_INTERNAL = 98, CODE_GONE = 99 };

struct stack_world {
	char text[4096]; /* of what was reported, a line each */
	char strings[32][64];
	rls_string_id string_count;
	unsigned int missed, sampled, consumed, refused;
	int fail_with; /* what the sink says */
	bool known; /* how to walk stacks, by now */
	void (*found)(void *context, pid_t pid); /* an interpreter */
	void *found_context;
};

/* Zeroed at a test's beginning, but for string_count: 1. */
extern struct stack_world world;

#endif
