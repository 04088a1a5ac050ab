/* What the kernel side sends, as any bytes: records in a row, each as long as its own header
 * says.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/event_fields.h"
#include "analysis/trace/text_form.h"
#include "userspace/record/events/translate.h"

struct memory_sink {
	struct rls_string_pool *strings;
	FILE *text;
};

/* As the trace's own sink: what no trace may hold is left out, it alone. */
static int add(void *context, const struct rls_event *event)
{
	struct memory_sink *sink = context;

	if (rls_event_check(event))
		return 0;
	fuzz_require(!rls_text_write_event(sink->text, event, sink->strings), "events are text");
	return 0;
}

static int intern(void *context, const char *text, size_t length, rls_string_id *out)
{
	struct memory_sink *sink = context;

	return rls_string_pool_add(sink->strings, text, length, out);
}

static void translate_all(struct rls_translator *translator, const uint8_t *data, size_t size)
{
	while (size) {
		struct rls_wire_header header = {.size = sizeof(header)};
		size_t bytes;
		void *record;

		memcpy(&header, data, size < sizeof(header) ? size : sizeof(header));
		bytes = header.size && header.size < size ? header.size : size;
		/* Exactly that many, so that sanitizers see a byte read beyond. */
		record = malloc(bytes);
		if (!record)
			return;
		memcpy(record, data, bytes);
		fuzz_require(!rls_translate(translator, record, bytes), "no record is an error");
		free(record);
		data += bytes;
		size -= bytes;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *nowhere;
	struct memory_sink memory = {.strings = rls_string_pool_new()};
	const struct rls_event_sink sink = {add, intern, &memory};
	const struct rls_process_watcher watcher = {0};
	struct rls_translator *translator;

	if (!nowhere)
		nowhere = fopen("/dev/null", "we");
	memory.text = nowhere;
	if (!nowhere || !memory.strings || rls_translator_new(&sink, &watcher, &translator))
		abort();
	translate_all(translator, data, size);
	rls_translator_free(translator);
	rls_string_pool_free(memory.strings);
	return 0;
}
