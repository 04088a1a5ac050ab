#include "recording.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "analysis/base/grow.h"
#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "probed.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sites.h"

#define RING_BYTES (16U << 20)
#define PATH_BYTES 65536

enum rls_attach_way multi_way = RLS_ATTACH_MULTI, perf_way = RLS_ATTACH_PERF;

pid_t own_tid(void)
{
	return (pid_t)syscall(SYS_gettid);
}

int recording_possible(void)
{
	const struct rls_kernel_options options = {.way = RLS_ATTACH_PERF};
	struct rls_kernel *kernel;

	if (geteuid()) {
		puts("skipped: only root can put probes on functions");
		return 77;
	}
	if (rls_kernel_open(&options, &kernel)) {
		puts("skipped: this kernel does not take our programs from us here");
		return 77;
	}
	rls_kernel_close(kernel);
	return 0;
}

/* As it was before any probe. */
static uint8_t original[SITES];

static uint8_t first_byte(enum probed_site site)
{
	return *(const volatile uint8_t *)probed_address(site);
}

__attribute__((constructor)) static void keep_original_code(void)
{
	for (int i = 0; i < SITES; i++)
		original[i] = first_byte((enum probed_site)i);
}

void recording_wait_unprobed(enum probed_site site)
{
	const struct timespec pause = {.tv_nsec = 20000000};

	for (int i = 0; i < SITES; i++) {
		int waits = 3000;

		if (site != SITES && i != (int)site)
			continue;
		while (first_byte((enum probed_site)i) != original[i] && waits--)
			nanosleep(&pause, NULL);
		assert_int_equal(first_byte((enum probed_site)i), original[i]);
	}
}

int recording_set_up(void **state)
{
	const enum rls_attach_way *way = *state;
	struct recording *recording = calloc(1, sizeof(*recording));

	if (!recording)
		return -1;
	recording->way = *way;
	recording_wait_unprobed(SITES); /* of the test before */
	*state = recording;
	return 0;
}

int recording_tear_down(void **state)
{
	struct recording *recording = *state;

	recording_close(recording);
	free(recording->transitions);
	free(recording->controls);
	free(recording);
	return 0;
}

static int take(const struct rls_wire_header *record, size_t size, void *context)
{
	struct recording *recording = context;

	if (record->kind == RLS_WIRE_CATEGORY) {
		if (rls_grow(&recording->transitions, &recording->transition_room,
			     recording->transition_count))
			abort();
		memcpy(&recording->transitions[recording->transition_count++], record,
		       sizeof(*recording->transitions));
	} else {
		if (rls_grow(&recording->controls, &recording->control_room,
			     recording->control_count) ||
		    size > sizeof(*recording->controls))
			abort();
		memcpy(&recording->controls[recording->control_count++], record, size);
	}
	return 0;
}

void recording_open(struct recording *recording, size_t transitions_bytes, size_t control_bytes)
{
	const struct rls_kernel_options options = {
		.way = recording->way,
		.transitions_bytes = transitions_bytes ? transitions_bytes : RING_BYTES,
		.control_bytes = control_bytes ? control_bytes : RING_BYTES,
		.totals_mode = recording->totals_mode,
		.windows = recording->totals_mode,
	};

	if (recording->way == RLS_ATTACH_MULTI && !rls_feature_uprobe_multi()) {
		print_message("this kernel has no uprobe_multi links\n");
		skip();
	}
	assert_int_equal(rls_kernel_open(&options, &recording->kernel), 0);
	assert_int_equal(rls_kernel_way(recording->kernel), recording->way);
	assert_int_equal(rls_kernel_set_handler(recording->kernel, take, recording), 0);
}

void recording_track(struct recording *recording, uint32_t flags, uint64_t annotate_offset)
{
	const struct rls_wire_process settings = {.flags = flags,
						  .annotate_offset = annotate_offset};

	assert_int_equal(rls_kernel_track(recording->kernel, getpid(), &settings), 0);
	assert_true(rls_kernel_is_tracked(recording->kernel, getpid()));
}

void recording_attach(struct recording *recording)
{
	struct rls_site sites[SITES];
	size_t attached = 0;

	assert_int_equal(probed_sites(sites), 0);
	assert_int_equal(rls_kernel_attach_sites(recording->kernel, "/proc/self/exe", sites, SITES,
						 100, &attached),
			 0);
	assert_int_equal(attached, SITES);
}

void recording_start(struct recording *recording)
{
	uint64_t start_ns;

	assert_int_equal(rls_kernel_start(recording->kernel, &start_ns), 0);
}

void recording_begin(struct recording *recording, uint32_t flags)
{
	recording_open(recording, 0, 0);
	recording_track(recording, flags, 0);
	recording_attach(recording);
	recording_start(recording);
}

void recording_consume(struct recording *recording)
{
	assert_true(rls_kernel_consume(recording->kernel) >= 0);
}

void recording_stop(struct recording *recording)
{
	uint64_t stop_ns;

	assert_int_equal(rls_kernel_stop(recording->kernel, &stop_ns), 0);
	recording_consume(recording);
}

void recording_close(struct recording *recording)
{
	rls_kernel_close(recording->kernel);
	recording->kernel = NULL;
}

const char *recording_path(const struct recording *recording, pid_t tid)
{
	static const char letters[] = "?PSBCN";
	static char path[PATH_BYTES];
	size_t length = 0;

	path[0] = '\0';
	for (size_t i = 0; i < recording->transition_count; i++) {
		const struct rls_wire_category *transition = &recording->transitions[i];

		if (transition->header.tid != (uint32_t)tid)
			continue;
		assert_true(transition->from < RLS_CATEGORY_MAX);
		assert_true(transition->category < RLS_CATEGORY_MAX);
		assert_true(length + 6 < sizeof(path));
		length += (size_t)sprintf(path + length, "%s%c>%c", length ? " " : "",
					  letters[transition->from], letters[transition->category]);
	}
	return path;
}

size_t recording_transitions(const struct recording *recording, pid_t tid)
{
	size_t count = 0;

	for (size_t i = 0; i < recording->transition_count; i++)
		count += recording->transitions[i].header.tid == (uint32_t)tid;
	return count;
}

uint64_t recording_hits(const struct recording *recording, pid_t tid)
{
	uint64_t hits = 0;

	for (size_t i = 0; i < recording->transition_count; i++) {
		if (recording->transitions[i].header.tid == (uint32_t)tid)
			hits += recording->transitions[i].hit_totals.hits;
	}
	for (size_t i = 0; i < recording->control_count; i++) {
		const union control_record *control = &recording->controls[i];

		if (control->header.tid != (uint32_t)tid)
			continue;
		if (control->header.kind == RLS_WIRE_FINAL)
			hits += control->final.hit_totals.hits;
		else if (control->header.kind == RLS_WIRE_THREAD_EXIT)
			hits += control->exit.hit_totals.hits;
	}
	return hits;
}

const union control_record *recording_control(const struct recording *recording,
					      enum rls_wire_kind kind, pid_t pid, size_t n)
{
	for (size_t i = 0; i < recording->control_count; i++) {
		const union control_record *control = &recording->controls[i];

		if (control->header.kind == kind &&
		    (!pid || control->header.pid == (uint32_t)pid) && !n--)
			return control;
	}
	return NULL;
}

size_t recording_controls(const struct recording *recording, enum rls_wire_kind kind, pid_t pid)
{
	size_t count = 0;

	while (recording_control(recording, kind, pid, count))
		count++;
	return count;
}

uint64_t recording_dropped(const struct recording *recording, enum rls_drop_counter which)
{
	uint64_t drops[RLS_DROP_MAX];

	rls_kernel_drops(recording->kernel, drops);
	return drops[which];
}
