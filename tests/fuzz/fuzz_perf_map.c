/* What a process says that it compiled. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "userspace/names/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_perf_map *map;
	char *text = malloc(size + 1);
	uint64_t address = 0, start;

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (rls_perf_map_parse(text, size, &map))
		abort();
	for (size_t i = 0; i + sizeof(address) <= size && i < 512; i++) {
		const char *name;

		memcpy(&address, data + i, sizeof(address));
		address >>= i % 64; /* those near 0 too, where digits that were read make lines */
		name = rls_perf_map_find(map, address, &start);
		fuzz_require(!name || (start <= address && *name && strlen(name) < size),
			     "a name is of the text, and its code begins before the address");
	}
	rls_perf_map_free(map);
	return 0;
}
