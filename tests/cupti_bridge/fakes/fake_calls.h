/* The fakes' entry points as a program calls them: looked up by name, as those of the real
 * libraries would be, so that nothing is linked to.
 */
#ifndef RLS_TESTS_FAKE_CALLS_H
#define RLS_TESTS_FAKE_CALLS_H

#include "fake_cuda.h"

struct fake_calls {
	int (*driver_launch)(const void *, unsigned int, unsigned int, unsigned int, unsigned int,
			     unsigned int, unsigned int, unsigned int, void *, void **, void **);
	int (*launch)(const void *, struct fake_dim3, struct fake_dim3, void **, size_t, void *);
	int (*launch_graph)(const void *, void *);
	int (*copy)(void *, const void *, size_t, int, void *);
	int (*set)(void *, int, size_t, void *);
	int (*make_stream)(void **);
	int (*end_stream)(void *);
	int (*wait_stream)(void *);
	int (*set_device)(int);
	int (*count)(int *);
	int (*last_error)(void);
	uint32_t (*last_correlation)(void); /* of the fakes alone */
};

/* Loads them, libcupti too when asked (PyTorch does). Ends the program when it cannot. Calls
 * none of them: CUDA is initialised by the first call, of any. */
void fake_calls_load(struct fake_calls *calls, bool loads_cupti);

/* The libcupti that is loaded, NULL when none is. */
void *fake_calls_cupti(void);

#endif
