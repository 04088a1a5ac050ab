/* Folded stacks: process;thread;operation;...;category NANOSECONDS, one stack a line.
 *
 * What flamegraph.pl, inferno and speedscope read. None of them knows comments: warnings are left
 * to the caller.
 *
 * Sampled stacks, which are asked for apart: process;operation;...;category;frame;...;[kind].
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "analysis/event/sample_kind.h"
#include "analysis/writers/writer.h"

/* A frame: no separator, no line break, nothing invisible. */
static void print_frame(FILE *out, const char *text)
{
	for (; *text; text++) {
		unsigned char c = *text;

		if (c == ';')
			putc(':', out);
		else
			putc(c < 0x20 || c == 0x7f ? ' ' : c, out);
	}
}

static void print_owner(FILE *out, const char *name, const char *otherwise, uint32_t id)
{
	print_frame(out, *name ? name : otherwise);
	fprintf(out, " (%" PRIu32 ");", id);
}

static bool same_stack(const struct rls_stack_row *a, const struct rls_stack_row *b)
{
	if (a->pid != b->pid || a->tid != b->tid || a->depth != b->depth ||
	    a->category != b->category)
		return false;
	for (size_t i = 0; i < a->depth; i++) {
		if (strcmp(a->operations[i], b->operations[i]))
			return false;
	}
	return true;
}

static void print_stack(FILE *out, const struct rls_report *report, const struct rls_stack_row *row,
			uint64_t wall_ns)
{
	print_owner(out, rls_report_process_name(report, row->pid), "process", row->pid);
	print_owner(out, rls_report_thread_name(report, row->pid, row->tid), "thread", row->tid);
	for (size_t i = 0; i < row->depth; i++) {
		print_frame(out, row->operations[i]);
		putc(';', out);
	}
	fprintf(out, "%s %" PRIu64 "\n", rls_category_name(row->category), wall_ns);
}

static void print_place(FILE *out, const struct rls_stack_frame *frame)
{
	print_frame(out, *frame->function ? frame->function : "(unnamed)");
	if (*frame->file) {
		fputs(" (", out);
		print_frame(out, frame->file);
		if (frame->line)
			fprintf(out, ":%" PRIu32, frame->line);
		putc(')', out);
	}
	putc(';', out);
}

static void print_sampled(FILE *out, const struct rls_report *report,
			  const struct rls_sampled_stack_row *row)
{
	const struct rls_stack_frame *frames[RLS_STACK_FRAMES_MAX];
	size_t count = rls_report_frames(report, row, frames);

	print_owner(out, rls_report_process_name(report, row->pid), "process", row->pid);
	for (size_t i = 0; i < row->depth; i++) {
		print_frame(out, row->operations[i]);
		putc(';', out);
	}
	fprintf(out, "%s;", rls_category_name(row->category));
	while (count--)
		print_place(out, frames[count]);
	fprintf(out, "[%s] %" PRIu64 "\n", rls_sample_kind_name(row->kind), row->ns);
}

static void print_all_sampled(FILE *out, const struct rls_report *report)
{
	for (size_t i = 0; i < report->sampled_stack_count; i++) {
		const struct rls_sampled_stack_row *row = &report->sampled_stacks[i];

		if (row->ns)
			print_sampled(out, report, row);
	}
}

static void print_all_traced(FILE *out, const struct rls_report *report)
{
	for (size_t i = 0; i < report->stack_count;) {
		const struct rls_stack_row *row = &report->stacks[i];
		uint64_t wall_ns = 0;

		/* Those that differ in the phase alone stand side by side. */
		for (; i < report->stack_count && same_stack(row, &report->stacks[i]); i++)
			wall_ns += report->stacks[i].wall_ns;
		if (wall_ns)
			print_stack(out, report, row, wall_ns);
	}
}

static int write_folded(const struct rls_report *report, FILE *out,
			const struct rls_write_options *options)
{
	if (options->stacks == RLS_STACKS_SAMPLED)
		print_all_sampled(out, report);
	else
		print_all_traced(out, report);
	return 0;
}

int rls_stacks_parse(const char *name, enum rls_stacks *out)
{
	bool sampled = !strcmp(name, "sampled");

	if (!sampled && strcmp(name, "traced"))
		return -EINVAL;
	*out = sampled ? RLS_STACKS_SAMPLED : RLS_STACKS_TRACED;
	return 0;
}

const struct rls_report_writer rls_folded_writer = {
	.name = "folded", .write = write_folded, .unwarned = true};
