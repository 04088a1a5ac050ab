#include "fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "analysis/event/event_fields.h"
#include "analysis/event/event_order.h"
#include "analysis/trace/text_form.h"

void fuzz_require(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "broken promise: %s\n", what);
	abort();
}

void fuzz_drain(struct rls_event_source *source)
{
	struct rls_event before, event;
	FILE *sink = fopen("/dev/null", "we");
	bool first = true, warned = false;
	int got;

	fuzz_require(sink, "/dev/null opens");
	while ((got = source->next(source, &event)) > 0) {
		fuzz_require(!rls_event_check(&event), "events are valid");
		fuzz_require(first || rls_event_order(&before, &event, source->strings) <= 0,
			     "events come in order");
		fuzz_require(!rls_text_write_event(sink, &event, source->strings),
			     "events are text");
		warned |= event.kind == RLS_EVENT_WARNING;
		before = event;
		first = false;
	}
	fuzz_require(!got, "reading does not fail");
	fuzz_require(warned || !source->damaged, "damage is reported");
	fclose(sink);
	source->free(source);
}

int fuzz_file(const uint8_t *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	fuzz_require(fd >= 0 && write(fd, data, size) == (ssize_t)size && !lseek(fd, 0, SEEK_SET),
		     "a memory file is made");
	return fd;
}

void fuzz_file_path(int fd, char *path)
{
	snprintf(path, FUZZ_PATH_BYTES, "/proc/self/fd/%d", fd);
}
