/* What a CUPTI bridge hands over, as any bytes: the first two say how many there are of each
 * batch, so that one input can hold several.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "analysis/event/event_fields.h"
#include "userspace/record/gpu/batch_validate.h"
#include "userspace/record/gpu/gpu_activity.h"

#define NOW 2000000000ULL

/* Exactly that many bytes, so that sanitizers see one read beyond. */
static void check(const uint8_t *data, size_t size)
{
	uint8_t *exact = malloc(size + 1);
	struct rls_batch_record record;
	struct rls_batch_view view;

	if (!exact)
		abort();
	exact = realloc(exact, size ? size : 1);
	memcpy(exact, data, size);
	if (!rls_batch_validate(exact, size, &view)) {
		for (size_t i = 0; i < view.header.count; i++) {
			if (rls_batch_record(&view, i, &record))
				continue;
			fuzz_require(record.name_bytes < RLS_CUPTI_NAME_BYTES_MAX &&
					     strlen(record.name) == record.name_bytes,
				     "a name ends where it is said to");
		}
	}
	free(exact);
}

static void hand_over(struct rls_gpu *gpu, uint32_t pid, const uint8_t *data, size_t size)
{
	struct rls_wire_gpu_batch *wire = malloc(sizeof(*wire) + size);

	if (!wire)
		abort();
	*wire = (struct rls_wire_gpu_batch){
		.header = {.kind = RLS_WIRE_GPU_BATCH, .pid = pid, .time_ns = NOW},
		.bytes = (uint32_t)size,
	};
	memcpy(wire + 1, data, size);
	fuzz_require(!rls_gpu_add(gpu, &wire->header, sizeof(*wire) + size),
		     "no batch is an error");
	free(wire);
}

/* No such processes, so that nothing is looked up of them that is there. */
#define PID 70000000u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct rls_process_watcher watcher = {0};
	struct rls_event_output output;
	struct rls_translator *translator;
	struct rls_event_sink sink;
	uint64_t batches = 0;
	struct rls_gpu *gpu;
	uint32_t pid = PID;

	if (rls_event_output_init(&output))
		abort();
	sink = rls_event_output_sink(&output);
	if (rls_translator_new(&sink, &watcher, &translator) ||
	    rls_gpu_new(&output, translator, &gpu))
		abort();
	rls_gpu_begin(gpu, 1);
	while (size > 2) {
		size_t bytes = (size_t)data[0] << 8 | data[1];

		data += 2;
		size -= 2;
		bytes = bytes < size ? bytes : size;
		check(data, bytes);
		hand_over(gpu, pid ^= size & 1, data, bytes);
		data += bytes;
		size -= bytes;
	}
	rls_gpu_stop(gpu, NOW);
	fuzz_require(!rls_gpu_report(gpu, &batches), "the end is no error");
	for (size_t i = 0; i < output.waiting_count; i++)
		fuzz_require(output.waiting[i].time_ns <= NOW + 10000, "nothing is of the future");
	rls_gpu_free(gpu);
	rls_translator_free(translator);
	rls_event_output_close(&output);
	return 0;
}
