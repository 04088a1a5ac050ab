/* libtruthengine: work in a thread of its own, as autograd's engine has: none of Python's, though it may have a state there. */
#ifndef TRUTHENGINE_H
#define TRUTHENGINE_H

#include <stdint.h>

struct truthengine_work {
	uint64_t (*call)(uint64_t ns);  /* of another library, `count` times */
	long count;
	uint64_t each_ns;               /* in the call, and after it in the engine itself */
	int (*ensure)(void);            /* PyGILState_Ensure and PyEval_SaveThread; NULL for neither */
	void *(*save)(void);
};

int truthengine_start(const struct truthengine_work *wanted);
int truthengine_join(void);

#endif
