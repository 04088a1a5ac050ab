#include "batch_maker.h"

#include <string.h>

void batch_begin(struct batch_maker *maker, uint64_t sequence)
{
	*maker = (struct batch_maker){
		.header = {.magic = RLS_CUPTI_MAGIC,
			   .version = RLS_CUPTI_VERSION,
			   .record_bytes = sizeof(struct rls_cupti_record),
			   .sequence = sequence},
	};
}

struct rls_cupti_record *batch_add(struct batch_maker *maker, struct rls_cupti_record record,
				   const char *name)
{
	struct rls_cupti_record *added = &maker->records[maker->header.count++];

	*added = record;
	if (name) {
		added->name = maker->header.string_bytes + 1;
		strcpy(maker->strings + maker->header.string_bytes, name);
		maker->header.string_bytes += (uint32_t)strlen(name) + 1;
	}
	return added;
}

size_t batch_bytes(const struct batch_maker *maker, void *out)
{
	size_t records = maker->header.count * sizeof(maker->records[0]);
	char *at = out;

	memcpy(at, &maker->header, sizeof(maker->header));
	memcpy(at + sizeof(maker->header), maker->records, records);
	memcpy(at + sizeof(maker->header) + records, maker->strings, maker->header.string_bytes);
	return sizeof(maker->header) + records + maker->header.string_bytes;
}
