#include "userspace/record/gpu/batch_validate.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

enum rls_batch_fault rls_batch_validate(const void *bytes, size_t size, struct rls_batch_view *out)
{
	const size_t record_bytes = sizeof(struct rls_cupti_record);
	struct rls_batch_view view;
	size_t records_bytes;

	if (size < sizeof(view.header))
		return RLS_BATCH_SHORT;
	memcpy(&view.header, bytes, sizeof(view.header));
	if (view.header.magic != RLS_CUPTI_MAGIC)
		return RLS_BATCH_FOREIGN;
	if (view.header.version != RLS_CUPTI_VERSION || view.header.record_bytes != record_bytes)
		return RLS_BATCH_VERSION;
	if (view.header.count > RLS_CUPTI_RECORDS_MAX ||
	    view.header.string_bytes > RLS_CUPTI_STRING_BYTES_MAX)
		return RLS_BATCH_SIZE;
	records_bytes = view.header.count * record_bytes;
	if (size != sizeof(view.header) + records_bytes + view.header.string_bytes)
		return RLS_BATCH_SIZE;
	view.records = (const uint8_t *)bytes + sizeof(view.header);
	view.strings = (const char *)view.records + records_bytes;
	if (view.header.string_bytes && view.strings[view.header.string_bytes - 1])
		return RLS_BATCH_STRINGS;
	view.clock_ahead_ns = 0;
	*out = view;
	return RLS_BATCH_SOUND;
}

const char *rls_batch_fault_text(enum rls_batch_fault fault)
{
	switch (fault) {
	case RLS_BATCH_SOUND:
		return "sound";
	case RLS_BATCH_SHORT:
		return "too short";
	case RLS_BATCH_FOREIGN:
		return "not a batch";
	case RLS_BATCH_VERSION:
		return "of a bridge of another version";
	case RLS_BATCH_SIZE:
		return "of a size that cannot be";
	case RLS_BATCH_STRINGS:
		return "with names that do not end";
	}
	return "unknown";
}

static bool is_span(const struct rls_cupti_record *record)
{
	return record->kind != RLS_CUPTI_STATUS;
}

static bool is_possible(const struct rls_cupti_record *record)
{
	if (record->kind < RLS_CUPTI_KERNEL || record->kind > RLS_CUPTI_STATUS)
		return false;
	return !is_span(record) || (record->start_ns && record->end_ns >= record->start_ns &&
				    record->end_ns <= INT64_MAX);
}

static void to_our_clock(uint64_t *time_ns, int64_t clock_ahead_ns)
{
	if (*time_ns)
		*time_ns -= (uint64_t)clock_ahead_ns;
}

void rls_batch_shift(struct rls_batch_view *view, int64_t clock_ahead_ns)
{
	view->clock_ahead_ns = clock_ahead_ns;
	to_our_clock(&view->header.clock_ns, clock_ahead_ns);
	to_our_clock(&view->header.clock_cupti_ns, clock_ahead_ns);
	to_our_clock(&view->header.flushed_ns, clock_ahead_ns);
}

int rls_batch_record(const struct rls_batch_view *view, size_t i, struct rls_batch_record *out)
{
	struct rls_batch_record result = {.name = ""};

	memcpy(&result.record, view->records + i * sizeof(result.record), sizeof(result.record));
	to_our_clock(&result.record.start_ns, view->clock_ahead_ns);
	to_our_clock(&result.record.end_ns, view->clock_ahead_ns);
	if (!is_possible(&result.record) || result.record.name > view->header.string_bytes)
		return -EINVAL;
	if (result.record.name) {
		result.name = view->strings + result.record.name - 1;
		result.name_bytes = strlen(result.name); /* the last string has its NUL */
		if (result.name_bytes >= RLS_CUPTI_NAME_BYTES_MAX)
			return -EINVAL;
	}
	*out = result;
	return 0;
}
