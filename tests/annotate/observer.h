/* An annotated process and its observer: reads the way the recorder does, from outside,
 * through process_vm_readv, following addresses only. */
#ifndef RLS_TEST_OBSERVER_H
#define RLS_TEST_OBSERVER_H

#include <sys/types.h>

#include "userspace/annotate/annotate_wire.h"

/* A forked child that ran scenario() and now waits to be looked at. */
struct target {
	pid_t pid;
	uint64_t thread_pointer;
	int release_fd;
};

struct target target_start(void (*scenario)(void));
/* Lets the child go and returns its exit status; 0 when all its own checks held. */
int target_end(struct target *target);

uint64_t own_thread_pointer(void);

/* By name, as tools find it: a program that linked to it would get a copy of its own. */
struct rls_annotate_descriptor *own_descriptor(void);

int read_memory(pid_t pid, uint64_t address, void *out, size_t length);
struct rls_annotate_descriptor read_descriptor(pid_t pid);
/* Address of a thread's record, 0 when it has none. */
uint64_t record_address(pid_t pid, uint64_t thread_pointer);
/* The record of the target's main thread; fails the test when there is none. */
struct rls_thread_record read_record(const struct target *target);
/* Text behind a name's address, "" for 0. Static storage, several at a time. */
const char *read_name(pid_t pid, uint64_t address);

#endif
