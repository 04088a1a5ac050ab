/* libtruthengine: work in a thread of its own, as autograd's engine has: none of Python's, though it may have a state there. */
#ifndef TRUTHENGINE_H
#define TRUTHENGINE_H

#include <stdint.h>

struct truthengine_work {
	uint64_t (*call)(
		uint64_t
			ns); /* of another library, `count` times through yet another and as often directly */
	uint64_t (*through)(uint64_t (*call)(uint64_t ns), uint64_t ns);
	long count;
	uint64_t each_ns; /* in either call, and after them in the engine itself */
	int (*ensure)(void); /* PyGILState_Ensure and PyEval_SaveThread; NULL for neither */
	void *(*save)(void);
};

/* What `through` may be, of a library that nobody knows. */
uint64_t truthengine_through(uint64_t (*call)(uint64_t ns), uint64_t ns);

int truthengine_start(const struct truthengine_work *wanted);
int truthengine_join(void);

#endif
