#include "analysis/correct/cupti_error.h"

#include <stdlib.h>

#include "analysis/base/grow.h"

#define INSIDE_NS 4000
#define AROUND_NS 4000
#define ALL_THREADS 0

void rls_cupti_error_free(struct rls_cupti_error *error)
{
	free(error->entries);
	rls_index_map_free(&error->map);
	*error = (struct rls_cupti_error){0};
}

static uint64_t place_of(rls_string_id phase, rls_string_id operation)
{
	return (uint64_t)phase << 32 | operation;
}

static int cupti_error_add(struct rls_cupti_error *error, uint32_t tid,
			   const struct rls_call_total *calls,
			   const struct rls_cupti_error_sum *more)
{
	uint64_t place = place_of(calls->phase, calls->operation);
	size_t index = (uintptr_t)rls_index_map_get(&error->map, tid, place);
	int err = 0;

	if (!index) {
		err = rls_grow(&error->entries, &error->capacity, error->count);
		if (!err)
			err = rls_index_map_put(&error->map, tid, place,
						(void *)(error->count + 1));
		if (err)
			return err;
		error->entries[error->count++] = (struct rls_cupti_error_sum){0};
		index = error->count;
	}
	error->entries[index - 1].inside_ns += more->inside_ns;
	error->entries[index - 1].around_ns += more->around_ns;
	return 0;
}

int rls_cupti_error_add(struct rls_cupti_error *error, const struct rls_call_total *calls,
			bool is_charged)
{
	const struct rls_cupti_error_sum more = {
		.inside_ns = is_charged ? 0 : INSIDE_NS * (double)calls->count,
		.around_ns = AROUND_NS * (double)calls->count,
	};
	int err = cupti_error_add(error, calls->tid, calls, &more);

	return err ? err : cupti_error_add(error, ALL_THREADS, calls, &more);
}

struct rls_cupti_error_sum rls_cupti_error_own(const struct rls_cupti_error *error, uint32_t tid,
					       rls_string_id phase, rls_string_id operation)
{
	size_t index = (uintptr_t)rls_index_map_get(&error->map, tid, place_of(phase, operation));

	return index ? error->entries[index - 1] : (struct rls_cupti_error_sum){0};
}

double rls_cupti_error_others_ns(const struct rls_cupti_error *error, uint32_t tid,
				 rls_string_id phase, rls_string_id operation)
{
	struct rls_cupti_error_sum all = rls_cupti_error_own(error, ALL_THREADS, phase, operation);
	struct rls_cupti_error_sum own = rls_cupti_error_own(error, tid, phase, operation);

	return all.inside_ns + all.around_ns - own.inside_ns - own.around_ns;
}
