#include "fake_records.h"

#include <string.h>

#if FAKE_CUPTI_MAJOR == 11
enum { KERNEL = 200, MEMCPY = 88, OVERHEAD = 40, SYNC = 40, GRAPH = 48 };
#elif FAKE_CUPTI_MAJOR == 12
enum { KERNEL = 208, MEMCPY = 88, OVERHEAD = 56, SYNC = 40, GRAPH = 56 };
#elif defined(FAKE_CUPTI_MINOR) && FAKE_CUPTI_MINOR >= 2
enum { KERNEL = 224, MEMCPY = 96, OVERHEAD = 56, SYNC = 56, GRAPH = 56 };
#else
enum { KERNEL = 216, MEMCPY = 96, OVERHEAD = 56, SYNC = 56, GRAPH = 56 };
#endif
enum { API = 40, MEMSET = 88, MEMCPY2 = 96, EXTERNAL = 24 };

size_t fake_record_bytes(uint32_t kind)
{
	switch (kind) {
	case 3:
	case FAKE_KERNEL:
		return KERNEL;
	case FAKE_MEMCPY:
		return MEMCPY;
	case FAKE_MEMSET:
		return MEMSET;
	case FAKE_MEMCPY2:
		return MEMCPY2;
	case FAKE_SYNC:
		return SYNC;
	case FAKE_GRAPH:
		return GRAPH;
	case FAKE_OVERHEAD:
		return OVERHEAD;
	case FAKE_DRIVER_API:
	case FAKE_RUNTIME_API:
		return API;
	case FAKE_EXTERNAL_CORRELATION:
		return EXTERNAL;
	}
	return 0;
}

static void put32(void *record, size_t offset, uint32_t value)
{
	memcpy((char *)record + offset, &value, sizeof(value));
}

static void put64(void *record, size_t offset, uint64_t value)
{
	memcpy((char *)record + offset, &value, sizeof(value));
}

static void put_kernel(const struct fake_work *work, void *record)
{
	put64(record, 16, work->start_ns);
	put64(record, 24, work->end_ns);
	put32(record, 40, work->device);
	put32(record, 44, work->context);
	put32(record, 48, work->stream);
	put32(record, 52, 1);
	put32(record, 64, 32);
	put32(record, 92, work->correlation);
	put64(record, 104, (uintptr_t)work->name);
	put64(record, 144, work->graph_node);
	put32(record, 156, work->graph);
}

/* Copies and sets share their layout; a copy's kind is one byte. */
static void put_transfer(const struct fake_work *work, void *record)
{
	put32(record, 4, work->subkind);
	put64(record, 8, work->bytes);
	put64(record, 16, work->start_ns);
	put64(record, 24, work->end_ns);
	put32(record, 32, work->device);
	put32(record, 36, work->context);
	put32(record, 40, work->stream);
	put32(record, 44, work->correlation);
	put64(record, 64, work->graph_node);
	put32(record, 72, work->graph);
}

static void put_sync(const struct fake_work *work, void *record)
{
	put32(record, 4, work->subkind);
	put64(record, 8, work->start_ns);
	put64(record, 16, work->end_ns);
	put32(record, 24, work->correlation);
	put32(record, 28, work->context);
	put32(record, 32, work->stream);
}

static void put_graph(const struct fake_work *work, void *record)
{
	put32(record, 4, work->correlation);
	put64(record, 8, work->start_ns);
	put64(record, 16, work->end_ns);
	put32(record, 24, work->device);
	put32(record, 28, work->graph);
	put32(record, 32, work->context);
	put32(record, 36, work->stream);
}

size_t fake_record_work(const struct fake_work *work, void *record)
{
	memset(record, 0, FAKE_RECORD_BYTES_MAX);
	put32(record, 0, work->kind);
	switch (work->kind) {
	case FAKE_KERNEL:
		put_kernel(work, record);
		break;
	case FAKE_MEMCPY:
	case FAKE_MEMSET:
		put_transfer(work, record);
		break;
	case FAKE_SYNC:
		put_sync(work, record);
		break;
	case FAKE_GRAPH:
		put_graph(work, record);
		break;
	}
	return fake_record_bytes(work->kind);
}

size_t fake_record_api(const struct fake_api_record *api, void *record)
{
	uint32_t kind = api->domain == FAKE_RUNTIME ? FAKE_RUNTIME_API : FAKE_DRIVER_API;

	memset(record, 0, FAKE_RECORD_BYTES_MAX);
	put32(record, 0, kind);
	put32(record, 4, api->cbid);
	put64(record, 8, api->start_ns);
	put64(record, 16, api->end_ns);
	put32(record, 24, api->pid);
	put32(record, 28, api->tid);
	put32(record, 32, api->correlation);
	return fake_record_bytes(kind);
}

size_t fake_record_overhead(uint32_t overhead_kind, uint32_t pid, uint32_t tid, uint64_t start_ns,
			    uint64_t end_ns, void *record)
{
	memset(record, 0, FAKE_RECORD_BYTES_MAX);
	put32(record, 0, FAKE_OVERHEAD);
	put32(record, 4, overhead_kind);
	put32(record, 8, 2); /* of a thread */
	put32(record, 12, pid);
	put32(record, 16, tid);
	put64(record, 24, start_ns);
	put64(record, 32, end_ns);
	return OVERHEAD;
}

int fake_record_next(uint8_t *buffer, size_t valid_size, uint8_t **record)
{
	size_t offset = 0, bytes;
	uint32_t kind;

	if (*record) {
		memcpy(&kind, *record, sizeof(kind));
		offset = *record - buffer + fake_record_bytes(kind);
	}
	if (offset + sizeof(kind) > valid_size)
		return FAKE_END_OF_BUFFER;
	memcpy(&kind, buffer + offset, sizeof(kind));
	bytes = fake_record_bytes(kind);
	if (!bytes)
		return FAKE_INVALID_KIND;
	if (offset + bytes > valid_size)
		return FAKE_END_OF_BUFFER;
	*record = buffer + offset;
	return 0;
}
