/* The text of /proc/PID/maps: the kernel's form, with paths that the target chose. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/process/mappings.h"

static void check_entry(const struct rls_mappings *mappings, size_t i)
{
	const struct rls_mapping *entry = &mappings->entries[i];

	fuzz_require(entry->start < entry->end, "a mapping is not empty");
	fuzz_require(!i || mappings->entries[i - 1].end <= entry->start,
		     "mappings ascend and are disjoint");
	fuzz_require(rls_mappings_at(mappings, entry->start) == entry &&
			     rls_mappings_at(mappings, entry->end - 1) == entry,
		     "a mapping is found by its addresses");
	fuzz_require(!rls_mapping_is_file(entry) || strlen(entry->path) > 0, "a file has a path");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_mappings mappings;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (rls_mappings_parse(text, size, &mappings))
		return 0;
	for (size_t i = 0; i < mappings.count; i++)
		check_entry(&mappings, i);
	rls_mappings_at(&mappings, 0);
	rls_mappings_at(&mappings, UINT64_MAX);
	rls_mappings_release(&mappings);
	return 0;
}
