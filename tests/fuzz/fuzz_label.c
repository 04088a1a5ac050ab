/* What a target names things, as a label of a page: any bytes. */
#include <stdlib.h>
#include <string.h>

#include "analysis/base/utf8.h"
#include "fuzz.h"
#include "userspace/metrics/label.h"

/* name="…": quotes, backslashes and line ends only as escapes, valid UTF-8 throughout. */
static void require_well_formed(const char *text, size_t bytes)
{
	fuzz_require(bytes >= 4 && !memcmp(text, "l=\"", 3) && text[bytes - 1] == '"', "quoted");
	for (size_t i = 3; i < bytes - 1;) {
		size_t step = rls_utf8_bytes(text + i, bytes - 1 - i);

		fuzz_require(step && text[i] != '"' && text[i] != '\n', "escaped UTF-8");
		if (text[i] == '\\') {
			fuzz_require(i + 2 < bytes && strchr("\\\"n", text[i + 1]),
				     "a known escape");
			step++;
		}
		i += step;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1), *text = NULL;
	char clean[RLS_LABEL_BYTES], again[RLS_LABEL_BYTES];
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	fuzz_require(name && out, "memory");
	memcpy(name, data, size);
	name[size] = '\0';
	rls_label_write(out, "l", name);
	fclose(out);
	require_well_formed(text, bytes);
	rls_label_clean(name, clean);
	rls_label_clean(clean, again);
	fuzz_require(!strcmp(clean, again), "cleaning is idempotent");
	free(text);
	free(name);
	return 0;
}
