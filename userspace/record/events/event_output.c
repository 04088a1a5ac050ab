#include "userspace/record/events/event_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "userspace/base/log.h"

#define FLUSH_EVERY_NS 1000000000ULL

int rls_event_output_init(struct rls_event_output *output)
{
	*output = (struct rls_event_output){.strings = rls_string_pool_new()};
	return output->strings ? 0 : -ENOMEM;
}

void rls_event_output_listen(struct rls_event_output *output,
			     int (*listener)(void *context, const struct rls_event *event),
			     void *context)
{
	output->listener = listener;
	output->listener_context = context;
}

int rls_event_output_open(struct rls_event_output *output, const char *path)
{
	int r = rls_trace_writer_open(path, output->strings, &output->writer);

	if (r)
		return rls_error_r(r, "cannot create the trace file %s: %s", path,
				   r == -EBUSY ? "another recording is writing it" : strerror(-r));
	for (size_t i = 0; !r && i < output->waiting_count; i++)
		r = rls_event_output_add(output, &output->waiting[i]);
	free(output->waiting);
	output->waiting = NULL;
	output->waiting_count = output->waiting_room = 0;
	return r ? rls_error_r(r, "cannot write the trace file %s: %s", path, strerror(-r)) : 0;
}

int rls_event_output_close(struct rls_event_output *output)
{
	int r = output->error;

	if (output->writer) {
		int closed = rls_trace_writer_close(output->writer);

		r = r ? r : closed;
	}
	free(output->waiting);
	rls_string_pool_free(output->strings);
	*output = (struct rls_event_output){.error = r};
	return r;
}

static int wait_for_file(struct rls_event_output *output, const struct rls_event *event)
{
	if (rls_grow(&output->waiting, &output->waiting_room, output->waiting_count))
		return -ENOMEM;
	output->waiting[output->waiting_count++] = *event;
	return 0;
}

int rls_event_output_add(struct rls_event_output *output, const struct rls_event *event)
{
	int r;

	if (output->error)
		return output->error;
	if (output->listener)
		return output->listener(output->listener_context, event);
	if (!output->writer)
		return wait_for_file(output, event);
	r = rls_trace_writer_add(output->writer, event);
	if (r && r != -EINVAL)
		output->error = r;
	/* -EINVAL: an impossible event, made of the target's memory; it alone is left out. */
	return r == -EINVAL ? 0 : r;
}

static int event_output_intern(struct rls_event_output *output, const char *text, size_t length,
			       rls_string_id *out)
{
	if (!output->listener)
		return rls_string_pool_add(output->strings, text, length, out);
	*out = 0;
	return 0;
}

static int sink_add(void *context, const struct rls_event *event)
{
	return rls_event_output_add(context, event);
}

static int sink_intern(void *context, const char *text, size_t length, rls_string_id *out)
{
	return event_output_intern(context, text, length, out);
}

struct rls_event_sink rls_event_output_sink(struct rls_event_output *output)
{
	return (struct rls_event_sink){sink_add, sink_intern, output};
}

int rls_event_output_string(struct rls_event_output *output, const char *text, rls_string_id *out)
{
	return event_output_intern(output, text, strlen(text), out);
}

static int event_output_add_warning(struct rls_event_output *output, uint64_t time_ns,
				    const char *text)
{
	struct rls_event event = {.kind = RLS_EVENT_WARNING, .time_ns = time_ns};
	int r = rls_event_output_string(output, text, &event.warning.text);

	return r ? r : rls_event_output_add(output, &event);
}

int rls_event_output_warn(struct rls_event_output *output, uint64_t time_ns, const char *format,
			  ...)
{
	va_list arguments;

	va_start(arguments, format);
	rls_warning_list(format, arguments);
	va_end(arguments);
	return rls_event_output_said(output, time_ns);
}

int rls_event_output_said(struct rls_event_output *output, uint64_t time_ns)
{
	const char *text;
	int r = 0;

	while (!r && !output->listener && (text = rls_log_take_warning()))
		r = event_output_add_warning(output, time_ns, text);
	return r;
}

int rls_event_output_loss(struct rls_event_output *output, uint64_t time_ns, const char *buffer,
			  uint64_t dropped)
{
	struct rls_event event = {.kind = RLS_EVENT_LOSS, .time_ns = time_ns};
	int r = rls_event_output_string(output, buffer, &event.loss.buffer);

	event.loss.dropped = dropped;
	return r ? r : rls_event_output_add(output, &event);
}

int rls_event_output_tick(struct rls_event_output *output, uint64_t now_ns)
{
	int r;

	if (output->error)
		return output->error;
	if (!output->writer || now_ns - output->flushed_ns < FLUSH_EVERY_NS)
		return 0;
	output->flushed_ns = now_ns;
	r = rls_trace_writer_flush(output->writer);
	if (r)
		output->error = r;
	return r;
}
