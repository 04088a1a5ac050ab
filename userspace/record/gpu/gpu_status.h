/* GPU status: what a bridge says of itself and of work without a name, in words. */
#ifndef RLS_GPU_STATUS_H
#define RLS_GPU_STATUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "userspace/record/gpu/batch_validate.h"

#define RLS_GPU_STATUS_BYTES 400

/* The sentence for a status that is trouble, and true; false for one that is none. The
 * bridge's own words follow ours, with what is not printable replaced. */
bool rls_gpu_status_text(uint32_t pid, const struct rls_batch_record *record,
			 char out[RLS_GPU_STATUS_BYTES]);

/* What a piece of work is called that has no name of its own. Static storage. */
const char *rls_gpu_work_name(const struct rls_cupti_record *record);

#endif
