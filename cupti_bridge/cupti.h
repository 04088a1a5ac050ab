/* CUPTI: the library of this process, opened at run time. Only what is called of NVIDIA's interface
 * is declared here, in our own words; results are CUptiResult, 0 for success.
 */
#ifndef RLS_CUPTI_CUPTI_H
#define RLS_CUPTI_CUPTI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti_bridge/decode.h"

#define RLS_CUPTI_RESULT_SLOT_TAKEN 39
#define RLS_CUPTI_FLUSH_FORCED 1
#define RLS_CUPTI_THREAD_ID_SYSTEM 1
#define RLS_CUPTI_PATH_BYTES 256

typedef void (*rls_buffer_requested)(uint8_t **buffer, size_t *size, size_t *records_max);
typedef void (*rls_buffer_completed)(void *context, uint32_t stream, uint8_t *buffer, size_t size,
				     size_t valid_bytes);

struct rls_cupti {
	uint32_t version; /* cuptiGetVersion's: 18 is 11.8, 130000 is 13.0 */
	char path[RLS_CUPTI_PATH_BYTES];
	int (*get_version)(uint32_t *version);
	int (*get_timestamp)(uint64_t *timestamp_ns);
	int (*subscribe)(void **subscriber, void *callback, void *userdata);
	int (*unsubscribe)(void *subscriber);
	int (*set_thread_id_type)(uint32_t type);
	int (*get_thread_id_type)(uint32_t *type);
	int (*register_clock)(uint64_t (*clock)(void));
	int (*register_buffers)(rls_buffer_requested requested, rls_buffer_completed completed);
	int (*enable)(uint32_t kind);
	int (*disable)(uint32_t kind);
	int (*flush_all)(uint32_t flag);
	int (*get_dropped)(void *context, uint32_t stream, size_t *dropped);
	rls_next_record next_record;
	/* Since 12.5; NULL before. */
	int (*enable_runtime_call)(uint32_t cbid, uint8_t is_on);
	int (*enable_driver_call)(uint32_t cbid, uint8_t is_on);
	/* For leave.h; NULL where there is none. */
	int (*enable_callback)(uint32_t is_on, void *subscriber, int domain, uint32_t cbid);
	int (*finalize)(void);
};

/* Is libcuda loaded? Asked before any call to CUPTI: 13.2 overruns its stack without. */
bool rls_driver_is_loaded(void);

/* Takes the libcupti that is mapped or, where none is, loads the one that belongs to the CUDA
 * that is; it then stays loaded. Makes one call to it, for its version.
 *
 * -ENOENT: none to be found. -ENOTSUP: `cupti->path` is older than 11.8 or lacks a function,
 * and, being mapped, may not be passed over for another. */
int rls_cupti_find(struct rls_cupti *cupti);

#endif
