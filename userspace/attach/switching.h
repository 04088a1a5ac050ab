/* Switching: what is called while many probes are enabled or disabled. */
#ifndef RLS_SWITCHING_H
#define RLS_SWITCHING_H

/* Called around each time that many probes are put on or taken off, the last one excepted, on the thread that does
 * it: from where it is done matters to the target (cpu/cpu_affinity.h). Not at all until it is set. */
struct rls_kernel_switching {
	void (*begin)(void *context); /* again every so often while it goes on */
	void (*end)(void *context);
	void *context;
};

#endif
