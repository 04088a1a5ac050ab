#include "tests/analysis/writers/full_report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

char *render(const struct rls_report *report, const char *format,
	     const struct rls_write_options *options)
{
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	assert_int_equal(rls_report_write(report, rls_report_writer_find(format), out, options), 0);
	fclose(out);
	return text;
}

struct rls_report *full_report(struct script *script)
{
	struct rls_event *event;

	script_begin(script);
	add_process(script, 10, 1, "name, \"quoted\"\n\x1b[31m and \xe2\x80\xae turned");
	event = script_add(script, RLS_EVENT_PROCESS, 10, 1, 0);
	event->process.cmdline = script_string(script, "[\"a\", 1, \"b \\\"c\\\"\"]");
	event->process.container = script_string(script, "c0ffee");
	event->process.ns_pid = 5;
	event = script_add(script, RLS_EVENT_LIBRARY, 0, 1, 0);
	event->library.path = script_string(script, "/lib/a b\\.so");
	event->library.role = script_string(script, "backend");
	event = script_add(script, RLS_EVENT_HOST, 0, 0, 0);
	event->host.gpus = script_string(script, "[\"H100\", {\"x\": 1}]");
	event = script_add(script, RLS_EVENT_CALIBRATION, 0, 0, 0);
	event->calibration.name = script_string(script, "nop5.entry");
	event->calibration.value_ns = 470.25;
	event->calibration.error_ns = 3.5;
	event = script_add(script, RLS_EVENT_LOSS, 90, 0, 0);
	event->loss.buffer = script_string(script, "control");
	event->loss.dropped = 1;
	add_thread(script, 10, 1, 1);
	add_category(script, 10, 1, 1, RLS_CATEGORY_PYTHON);
	add_operation(script, 20, 1, 1, "op,\"\xc3\xa9\"");
	add_launch(script, 25, 1, 1, 7);
	add_gpu(script, 30, 40, 1, RLS_GPU_KERNEL, 7);
	add_category(script, 50, 1, 1, RLS_CATEGORY_CUDA_API);
	add_hits(script, 50, 1, 1, 3, 5);
	add_gpu(script, 98, 120, 1, RLS_GPU_KERNEL, 8);
	add_end(script, 100);
	return script_report(script);
}
