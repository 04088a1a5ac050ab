/* The text form's reader on any bytes. */
#include "fuzz.h"

#include <stdlib.h>

#include "analysis/trace/text_form.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct rls_event_source *source;
	char message[200] = "";

	if (!rls_text_reader_open(fuzz_file(data, size), NULL, &source, message, sizeof(message)))
		fuzz_drain(source);
	else if (!*message)
		abort();
	return 0;
}
