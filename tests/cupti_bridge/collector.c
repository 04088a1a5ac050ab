#include "collector.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "userspace/record/gpu/batch_validate.h"

struct collector collector;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the sentence */
static uint64_t last_sequence;
static pid_t owner;

void require(bool holds, const char *what, const char *file, int line)
{
	if (holds)
		return;
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	fprintf(stderr, "last status %u (code %u): %s\n", collector.last_status,
		collector.last_code, collector.sentence);
	fprintf(stderr, "dropped %lu, refused %lu, unpooled %lu, unclaimed %lu; by kind:",
		collector.dropped, collector.refused, collector.unpooled, collector.unclaimed);
	for (int kind = 1; kind < COLLECTOR_KINDS; kind++)
		fprintf(stderr, " %lu", collector.count[kind]);
	fprintf(stderr, "\n");
	_exit(1);
}

static void keep_status(const struct rls_batch_record *status)
{
	pthread_mutex_lock(&lock);
	snprintf(collector.sentence, sizeof(collector.sentence), "%s", status->name);
	pthread_mutex_unlock(&lock);
	REQUIRE(status->name_bytes > 0);
	atomic_store(&collector.last_code, status->record.value);
	atomic_store(&collector.last_status, status->record.subkind);
	atomic_fetch_add(&collector.status_count, 1);
}

static void keep_launch(const struct rls_batch_record *got)
{
	const struct rls_cupti_record *record = &got->record;
	struct collected_launch *launch = &collector.launches[record->correlation];
	const char *number = strrchr(got->name, '_');

	switch (record->kind) {
	case RLS_CUPTI_API:
		launch->tid = record->tid;
		if (!launch->call_ns || record->start_ns < launch->call_ns)
			launch->call_ns = record->start_ns;
		if (record->subkind == RLS_CUPTI_RUNTIME)
			launch->runtime_calls++;
		else
			launch->driver_calls++;
		break;
	case RLS_CUPTI_KERNEL:
		REQUIRE(number != NULL);
		launch->name = strtoul(number + 1, NULL, 10);
		/* fall through */
	case RLS_CUPTI_MEMCPY:
	case RLS_CUPTI_MEMSET:
	case RLS_CUPTI_GRAPH:
		launch->works++;
		launch->start_ns = record->start_ns;
		launch->end_ns = record->end_ns;
	}
}

static void keep_header(const struct rls_cupti_batch *header)
{
	if (getpid() != owner) { /* a forked child counts anew */
		owner = getpid();
		last_sequence = 0;
	}
	REQUIRE(header->sequence == last_sequence + 1);
	last_sequence = header->sequence;
	atomic_store(&collector.dropped, header->dropped);
	atomic_store(&collector.refused, header->refused);
	atomic_store(&collector.unpooled, header->unpooled);
	atomic_store(&collector.unclaimed, header->unclaimed);
	atomic_store(&collector.cupti_version, header->cupti_version);
	atomic_store(&collector.clock_gap_ns, header->clock_cupti_ns - header->clock_ns);
}

void collector_receive(const void *batch, uint32_t bytes)
{
	struct rls_batch_view view;
	struct rls_batch_record record;

	REQUIRE(rls_batch_validate(batch, bytes, &view) == RLS_BATCH_SOUND);
	keep_header(&view.header);
	for (size_t i = 0; i < view.header.count; i++) {
		REQUIRE(!rls_batch_record(&view, i, &record));
		if (record.record.kind == RLS_CUPTI_STATUS)
			keep_status(&record);
		else if (record.record.correlation < COLLECTOR_CORRELATIONS)
			keep_launch(&record);
		atomic_fetch_add(&collector.count[record.record.kind], 1);
	}
	atomic_fetch_add(&collector.batches, 1);
	atomic_store(&collector.flushed_ns, view.header.flushed_ns); /* last: all is in by then */
}

void collector_reset(void)
{
	if (!collector.launches) /* a page is there once it is used */
		collector.launches = calloc(COLLECTOR_CORRELATIONS, sizeof(*collector.launches));
	REQUIRE(collector.launches != NULL);
	for (int kind = 0; kind < COLLECTOR_KINDS; kind++)
		atomic_store(&collector.count[kind], 0);
}

unsigned long collector_records(void)
{
	unsigned long sum = 0;

	for (int kind = 1; kind < RLS_CUPTI_STATUS; kind++)
		sum += atomic_load(&collector.count[kind]);
	return sum;
}
