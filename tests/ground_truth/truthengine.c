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
		work.through(work.call, work.each_ns);
		work.call(work.each_ns);
		truth_spin(work.each_ns);
	}
	return NULL;
}

uint64_t truthengine_through(uint64_t (*call)(uint64_t ns), uint64_t ns)
{
	return call(ns) + 1; /* no tail call: it is to come back here */
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
