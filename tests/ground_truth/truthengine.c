#include "truthengine.h"
#include "spin.h"

#include <pthread.h>

static pthread_t thread;
static struct truthengine_work work;

static void *engine_main(void *unused)
{
	(void)unused;
	if (work.ensure) {
		work.ensure();
		work.save();
	}
	for (long i = 0; i < work.count; i++) {
		work.call(work.each_ns);
		truth_spin(work.each_ns);
	}
	return NULL;
}

int truthengine_start(const struct truthengine_work *wanted)
{
	work = *wanted;
	return pthread_create(&thread, NULL, engine_main, NULL);
}

int truthengine_join(void)
{
	return pthread_join(thread, NULL);
}
