/* Processes: what the recorder follows, and when each is to be looked at again. */
#ifndef RLS_FOLLOWED_H
#define RLS_FOLLOWED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct rls_followed {
	pid_t pid;
	bool root;              /* named by the user: recording ends when all of these have */
	uint64_t look_ns;       /* when to scan its mappings next; 0: not by itself */
	uint64_t looked_ns;
	uint64_t called_ns;     /* when it was first found to have called CUDA, with no bridge; 0: not */
	bool told_blind;        /* that its GPU times are not known */
};

struct rls_processes {
	struct rls_followed *entries;
	size_t count, room;
};

void rls_processes_clear(struct rls_processes *processes);
/* 0 (also when it is there already) or -ENOMEM. */
int rls_processes_add(struct rls_processes *processes, pid_t pid, bool root);
void rls_processes_remove(struct rls_processes *processes, pid_t pid);
struct rls_followed *rls_processes_find(const struct rls_processes *processes, pid_t pid);
size_t rls_processes_roots(const struct rls_processes *processes);
/* Asks for a look at pid (0: at all) not later than when_ns. */
void rls_processes_look(struct rls_processes *processes, pid_t pid, uint64_t when_ns);

#endif
