#include "userspace/record/gpu/gpu_status.h"

#include <inttypes.h>
#include <stdio.h>

#define SAID_BYTES 200

static const char *const troubles[] = {
	[RLS_CUPTI_NO_CUPTI] = "has no CUPTI library that can be used",
	[RLS_CUPTI_SLOT_TAKEN] = "is being traced by another tool (torch.profiler, nsys), and "
				 "CUPTI serves one at a time",
	[RLS_CUPTI_STOLEN] = "had its GPU records taken over by another tool (torch.profiler) "
			     "while it was recorded",
	[RLS_CUPTI_FAILED] = "was refused by CUPTI",
	[RLS_CUPTI_FORKED] = "is a child of a process that used CUDA, in which CUPTI does not work",
};

/* Of the target, so it may hold anything, a terminal's control sequences too. */
static void copy_printable(const char *text, size_t bytes, char out[SAID_BYTES])
{
	size_t length = bytes < SAID_BYTES - 1 ? bytes : SAID_BYTES - 1;

	for (size_t i = 0; i < length; i++)
		out[i] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
	out[length] = '\0';
}

bool rls_gpu_status_text(uint32_t pid, const struct rls_batch_record *record,
			 char out[RLS_GPU_STATUS_BYTES])
{
	uint8_t status = record->record.subkind;
	char said[SAID_BYTES], code[40] = "";

	if (status >= sizeof(troubles) / sizeof(troubles[0]) || !troubles[status])
		return false;
	copy_printable(record->name, record->name_bytes, said);
	if (status == RLS_CUPTI_FAILED)
		snprintf(code, sizeof(code), " (result %" PRIu64 ")", record->record.value);
	snprintf(out, RLS_GPU_STATUS_BYTES,
		 "process %u %s%s%s%s: its GPU times are missing or incomplete, all else is "
		 "recorded",
		 pid, troubles[status], code, said[0] ? ": " : "", said);
	return true;
}

const char *rls_gpu_work_name(const struct rls_cupti_record *record)
{
	/* CUPTI's copy kinds. */
	static const char *const copies[] = {
		"memcpy",
		"memcpy host to device",
		"memcpy device to host",
		"memcpy host to array",
		"memcpy array to host",
		"memcpy array to array",
		"memcpy array to device",
		"memcpy device to array",
		"memcpy device to device",
		"memcpy host to host",
		"memcpy peer to peer",
	};

	switch (record->kind) {
	case RLS_CUPTI_MEMCPY:
		return record->subkind < sizeof(copies) / sizeof(copies[0])
			       ? copies[record->subkind]
			       : copies[0];
	case RLS_CUPTI_MEMSET:
		return "memset";
	case RLS_CUPTI_SYNC:
		return "synchronize";
	case RLS_CUPTI_GRAPH:
		return "graph";
	default:
		return "";
	}
}
