#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "bpf/wire/cookie.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/features.h"
#include "userspace/attach/kernel/kernel_sampling.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/attach/kernel/kernel_state.h"
#include "userspace/attach/links.h"
#include "userspace/base/clock.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"
#include "userspace/cpu/cpu_priority.h"

#define INITIAL_NAMESPACE_INODE 0xeffffffcU /* the same on every host */
/* Two timers of three each (event, link, its copy), the watch of mappings, and one to spare. */
#define DESCRIPTORS_A_CPU 8
/* Maps, programs and their links: with fewer, one thing after the other would fail. */
#define DESCRIPTORS_AT_LEAST 44

static int print_libbpf(enum libbpf_print_level level, const char *format, va_list arguments)
{
	char text[1024];

	/* One level down: libbpf's "warnings" are about attempts that we handle. */
	if (!rls_log_verbose() || level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(text, sizeof(text), format, arguments);
	text[strcspn(text, "\n")] = '\0';
	rls_debug("%s", text);
	return 0;
}

static int set_places(struct rlscope *skeleton, uint32_t places)
{
	skeleton->rodata->transitions_mask = places - 1;
	skeleton->rodata->transitions_room = places - RLS_PLACES_SPARE(places);
	return bpf_map__set_max_entries(skeleton->maps.transitions, places);
}

static int size_rings(struct rlscope *skeleton, const struct rls_kernel_options *options)
{
	size_t places = options->transitions_bytes
				? options->transitions_bytes / sizeof(struct rls_wire_place)
				: bpf_map__max_entries(skeleton->maps.transitions);
	int r = set_places(skeleton, (uint32_t)places);

	if (!r && options->control_bytes)
		r = bpf_map__set_max_entries(skeleton->maps.control,
					     (uint32_t)options->control_bytes);
	if (!r && options->gpu_bytes)
		r = bpf_map__set_max_entries(skeleton->maps.gpu, (uint32_t)options->gpu_bytes);
	if (!r && options->stacks_bytes)
		r = bpf_map__set_max_entries(skeleton->maps.samples,
					     (uint32_t)options->stacks_bytes);
	return r;
}

/* What totals_mode alone needs is as small as can be where it is not asked for, and the ring
 * that totals take the place of where it is. */
static int size_totals(struct rlscope *skeleton, bool totals_mode)
{
	struct bpf_map *maps[] = {skeleton->maps.cells, skeleton->maps.scopes,
				  skeleton->maps.site_calls};
	int r = 0;

	skeleton->rodata->totals_mode = totals_mode;
	if (totals_mode)
		return set_places(skeleton,
				  (uint32_t)sysconf(_SC_PAGESIZE) / sizeof(struct rls_wire_place));
	for (size_t i = 0; !r && i < sizeof(maps) / sizeof(maps[0]); i++)
		r = bpf_map__set_max_entries(maps[i], 1);
	return r;
}

/* Only the programs that will be attached are loaded: verifying costs time. */
static void choose_programs(struct rls_kernel *kernel, const struct rls_kernel_options *options)
{
	bool multi = kernel->way == RLS_ATTACH_MULTI;
	struct bpf_program *for_multi[] = {
		kernel->skeleton->progs.on_site_multi,
		kernel->skeleton->progs.on_return_multi,
		kernel->skeleton->progs.on_flush_multi,
		kernel->skeleton->progs.on_range_multi,
	};
	struct bpf_program *for_perf[] = {
		kernel->skeleton->progs.on_site,
		kernel->skeleton->progs.on_return,
		kernel->skeleton->progs.on_flush,
		kernel->skeleton->progs.on_range,
	};

	for (size_t i = 0; i < sizeof(for_multi) / sizeof(for_multi[0]); i++) {
		bpf_program__set_autoload(for_multi[i], multi);
		bpf_program__set_autoload(for_perf[i], !multi);
	}
	kernel->skeleton->rodata->windows = kernel->windows;
	kernel->skeleton->rodata->each_off_cpu = options->each_off_cpu;
	bpf_program__set_autoload(kernel->skeleton->progs.on_batch_multi, multi);
	rls_kernel_choose_samplers(kernel, options);
	bpf_program__set_autoload(kernel->skeleton->progs.flush_totals,
				  options->totals_mode && !kernel->blind_flush);
	bpf_program__set_autoload(kernel->skeleton->progs.flush_totals_blind,
				  options->totals_mode && kernel->blind_flush);
	bpf_program__set_autoload(kernel->skeleton->progs.first_states, !options->totals_mode);
	bpf_program__set_autoload(kernel->skeleton->progs.announce_waiting,
				  !options->totals_mode && options->stacks_bytes);
}

static int load_error(int r)
{
	const char *lacking;

	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		return rls_error_r(r, "cannot load the BPF programs: %s", rls_reason(r));
	/* The verifier says EACCES too, of programs that reach where they must not. */
	if (r == -EPERM || (r == -EACCES && !rls_feature_probe_programs()))
		return rls_error_r(r, "loading BPF programs is not permitted: run as root (or with "
				      "CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE)");
	if (r == -ESRCH || r == -ENOENT)
		return rls_error_r(r, "this kernel has no BTF type information "
				      "(/sys/kernel/btf/vmlinux), which is needed");
	lacking = rls_feature_lacking();
	if (lacking)
		return rls_error_r(r, "this kernel refuses the BPF programs: %s", lacking);
	return rls_error_r(r, "this kernel refuses the BPF programs (%s): see `rlscope-bpf check`",
			   strerror(-r));
}

static int attach_tracepoints(struct rls_kernel *kernel)
{
	struct rlscope *skeleton = kernel->skeleton;
	struct bpf_program *programs[] = {skeleton->progs.on_switch, skeleton->progs.on_fork,
					  skeleton->progs.on_exec, skeleton->progs.on_exit};
	int r;

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (!bpf_program__autoload(programs[i]))
			continue;
		r = rls_links_add(&kernel->links, bpf_program__attach(programs[i]));
		if (r)
			return rls_error_r(r, "cannot attach to the scheduler's tracepoints: %s",
					   rls_reason(r));
	}
	return 0;
}

/* Verifying is half a second's work. */
static int kernel_life_load(struct rls_kernel *kernel, const struct rls_kernel_options *options)
{
	_priority_ = rls_priority_set(RLS_PRIORITY_SPARE);
	int r;

	libbpf_set_print(print_libbpf);
	kernel->skeleton = rlscope__open();
	if (!kernel->skeleton)
		return rls_error_r(-errno, "cannot open the BPF programs: %s", rls_reason(errno));
	kernel->way = options->way;
	if (kernel->way == RLS_ATTACH_AUTO)
		kernel->way = rls_feature_uprobe_multi() ? RLS_ATTACH_MULTI : RLS_ATTACH_PERF;
	kernel->windows = options->windows && kernel->way == RLS_ATTACH_MULTI;
	kernel->totals_mode = options->totals_mode;
	choose_programs(kernel, options);
	r = size_rings(kernel->skeleton, options);
	if (!r)
		r = size_totals(kernel->skeleton, options->totals_mode);
	if (!r)
		r = rls_kernel_size_memory(kernel, options->memory && !options->totals_mode);
	if (!r)
		r = rls_kernel_size_layers(kernel, options->totals_mode ? 0 : options->layer_depth);
	if (r)
		return rls_error_r(r, "cannot size the ring buffers: %s", rls_reason(r));
	r = rlscope__load(kernel->skeleton);
	if (r && r != -EPERM && kernel->totals_mode && !kernel->blind_flush) {
		rlscope__destroy(kernel->skeleton);
		kernel->blind_flush = true;
		return kernel_life_load(kernel, options);
	}
	if (r && r != -EPERM && kernel->memory.wanted && options->memory_if_possible) {
		struct rls_kernel_options without = *options;

		rls_debug("memory cannot be counted: %s", strerror(-r));
		rlscope__destroy(kernel->skeleton);
		without.memory = false;
		return kernel_life_load(kernel, &without);
	}
	if (r)
		return load_error(r);
	r = rls_kernel_map_memory(kernel);
	if (r)
		return rls_error_r(r, "cannot map what is counted of memory: %s", strerror(-r));
	return attach_tracepoints(kernel);
}

/* The kernel knows tasks by their numbers in the initial pid namespace; we by those in ours,
 * which /proc must be of: all that is known of targets comes from there. */
static int set_namespace(struct rls_kernel *kernel)
{
	char self[16] = "";
	struct stat namespace;

	if (stat("/proc/self/ns/pid", &namespace))
		return rls_error_r(-errno, "/proc is not mounted");
	if (readlink("/proc/self", self, sizeof(self) - 1) < 0 || atoi(self) != getpid())
		return rls_error_r(-EXDEV, "/proc belongs to another pid namespace: mount that of "
					   "this one (mount -t proc proc /proc)");
	if (namespace.st_ino != INITIAL_NAMESPACE_INODE)
		kernel->skeleton->bss->pid_namespace = (uint32_t) namespace.st_ino;
	return 0;
}

/* What the kernel stamps is on the host's clock. */
static int check_clock(void)
{
	int r = rls_clock_join_host();

	return r ? rls_error_r(r,
			       "this process is in a time namespace, and how far its clock is "
			       "ahead of the host's cannot be found out: start it outside of that")
		 : 0;
}

static int allow_descriptors(void)
{
	size_t timers = DESCRIPTORS_A_CPU * (size_t)sysconf(_SC_NPROCESSORS_CONF);

	rls_descriptors_allow(timers);
	return rls_descriptors_suffice(timers + DESCRIPTORS_AT_LEAST) ? 0 : load_error(-EMFILE);
}

int rls_kernel_open(const struct rls_kernel_options *options, struct rls_kernel **out)
{
	struct rls_kernel *kernel = calloc(1, sizeof(*kernel));
	int r;

	if (!kernel)
		return -ENOMEM;
	r = allow_descriptors();
	if (!r)
		r = kernel_life_load(kernel, options);
	if (!r)
		r = set_namespace(kernel);
	if (!r)
		r = check_clock();
	/* Without return probes most ends of calls would be seen late, and times be wrong. */
	if (!r && rls_feature_returns_kill())
		r = rls_error_r(-EOPNOTSUPP,
				"this kernel's return probes make sandboxes (seccomp) kill the "
				"processes in them: update it, 6.12 and 6.14 are repaired");
	if (r) {
		rls_kernel_close(kernel);
		return r;
	}
	*out = kernel;
	return 0;
}

void rls_kernel_close(struct rls_kernel *kernel)
{
	if (!kernel)
		return;
	rls_kernel_detach(kernel);
	ring_buffer__free(kernel->rings);
	free(kernel->waiting);
	rls_transitions_unmap(&kernel->transitions);
	rls_kernel_unmap_memory(kernel);
	rls_kernel_clear_layers(kernel);
	rlscope__destroy(kernel->skeleton);
	free(kernel);
}

enum rls_attach_way rls_kernel_way(const struct rls_kernel *kernel)
{
	return kernel->way;
}

int rls_kernel_track(struct rls_kernel *kernel, pid_t pid, const struct rls_wire_process *settings)
{
	uint32_t key = (uint32_t)pid;
	int r = kernel->totals_mode ? rls_kernel_open_scope(kernel, key) : 0;

	if (!r)
		r = bpf_map__update_elem(kernel->skeleton->maps.tracked, &key, sizeof(key),
					 settings, sizeof(*settings), BPF_ANY);

	/* Threads look their settings up again when this has changed. */
	__atomic_fetch_add(&kernel->skeleton->bss->settings_generation, 1, __ATOMIC_RELEASE);
	return r ? rls_error_r(r, "cannot track process %d: %s", pid, rls_reason(r)) : 0;
}

int rls_kernel_untrack(struct rls_kernel *kernel, pid_t pid)
{
	uint32_t key = (uint32_t)pid;

	if (kernel->totals_mode)
		bpf_map__delete_elem(kernel->skeleton->maps.scopes, &key, sizeof(key), 0);
	bpf_map__delete_elem(kernel->skeleton->maps.ranges, &key, sizeof(key), 0);
	return bpf_map__delete_elem(kernel->skeleton->maps.tracked, &key, sizeof(key), 0);
}

bool rls_kernel_is_tracked(const struct rls_kernel *kernel, pid_t pid)
{
	struct rls_wire_process settings;
	uint32_t key = (uint32_t)pid;

	return !bpf_map__lookup_elem(kernel->skeleton->maps.tracked, &key, sizeof(key), &settings,
				     sizeof(settings), 0);
}

int rls_kernel_tracked(const struct rls_kernel *kernel, pid_t **pids, size_t *count)
{
	struct bpf_map *map = kernel->skeleton->maps.tracked;
	uint32_t key, *before = NULL;
	size_t found = 0, room = 0;
	pid_t *list = NULL;

	while (!bpf_map__get_next_key(map, before, &key, sizeof(key))) {
		if (found == bpf_map__max_entries(map))
			break; /* children come and go so fast that it begins anew each time */
		if (rls_grow(&list, &room, found)) {
			free(list);
			return -ENOMEM;
		}
		list[found++] = (pid_t)key;
		before = &key;
	}
	*pids = list;
	*count = found;
	return 0;
}

int rls_kernel_set_ranges(struct rls_kernel *kernel, pid_t pid, const struct rls_wire_ranges *known)
{
	uint32_t key = (uint32_t)pid;

	return bpf_map__update_elem(kernel->skeleton->maps.ranges, &key, sizeof(key), known,
				    sizeof(*known), BPF_ANY);
}

void rls_kernel_set_costs(struct rls_kernel *kernel, const struct rls_hit_costs *costs)
{
	kernel->costs = *costs;
	kernel->skeleton->bss->event_cost_ns = costs->event_ns;
	kernel->skeleton->bss->edge_cost_ns = costs->edge_ns;
	kernel->skeleton->bss->later_edge_cost_ns = costs->later_edge_ns;
	memcpy(kernel->skeleton->bss->cost_before_ns, costs->before_ns, sizeof(costs->before_ns));
}

void rls_kernel_set_switching(struct rls_kernel *kernel,
			      const struct rls_kernel_switching *switching)
{
	kernel->switching = *switching;
	kernel->groups.switching = &kernel->switching;
}

void rls_kernel_expect_sites(const struct rls_kernel *kernel, size_t count)
{
	if (kernel->windows)
		rls_groups_expect(count);
}

int rls_kernel_attach_sites(struct rls_kernel *kernel, const char *path,
			    const struct rls_site *sites, size_t count, uint32_t first_id,
			    size_t *attached)
{
	struct rlscope *skeleton = kernel->skeleton;
	bool multi = kernel->way == RLS_ATTACH_MULTI;
	struct rls_link_request request = {
		.on_site = multi ? skeleton->progs.on_site_multi : skeleton->progs.on_site,
		.on_return = multi ? skeleton->progs.on_return_multi : skeleton->progs.on_return,
		.multi = multi,
		.path = path,
		.sites = sites,
		.count = count,
		.first_id = first_id,
		.costs = &kernel->costs,
	};
	int r;

	rls_kernel_begin_switching(kernel);
	r = kernel->windows ? rls_groups_add(&kernel->groups, &request, attached)
			    : rls_links_attach(&kernel->links, &request, attached);
	rls_kernel_end_switching(kernel);
	return r;
}

int rls_kernel_detach_sites(struct rls_kernel *kernel, uint32_t first_id)
{
	int r;

	rls_kernel_begin_switching(kernel);
	rls_groups_remove(&kernel->groups, first_id);
	r = rls_links_drop(&kernel->links, first_id);
	rls_kernel_end_switching(kernel);
	return r;
}

int rls_kernel_detach_returns(struct rls_kernel *kernel, uint32_t first_id)
{
	int r;

	rls_kernel_begin_switching(kernel);
	r = rls_groups_drop_returns(&kernel->groups, first_id);
	if (!r)
		r = rls_links_drop_returns(&kernel->links, first_id);
	rls_kernel_end_switching(kernel);
	return r;
}

int rls_kernel_attach_flush(struct rls_kernel *kernel, const char *path, uint64_t site_offset,
			    uint64_t listeners_offset)
{
	uint32_t cost_ns = kernel->costs.ns[RLS_SITE_NOP5][0];

	return rls_kernel_attach_one(
		kernel, &kernel->links, kernel->skeleton->progs.on_flush_multi,
		kernel->skeleton->progs.on_flush, path, site_offset, listeners_offset,
		RLS_COOKIE(0, 0, 0, 0, RLS_SITE_NOP5, 0, 0, 0, rls_cookie_cost(cost_ns)));
}

/* Asked for at the first arming, not before: most recordings have nothing to arm. */
bool rls_kernel_arms_by_multi(struct rls_kernel *kernel)
{
	if (kernel->arm_way == ARM_WAY_UNTRIED)
		kernel->arm_way = kernel->way == RLS_ATTACH_MULTI &&
						  rls_arms_multi_sees_threads(
							  kernel->skeleton->progs.on_batch_multi,
							  (const uint64_t *)&kernel->skeleton->bss
								  ->batch_hits)
					  ? ARM_WAY_MULTI
					  : ARM_WAY_PERF;
	return kernel->arm_way == ARM_WAY_MULTI;
}

int rls_kernel_arm(struct rls_kernel *kernel, pid_t pid, const char *path, uint64_t site_offset,
		   uint64_t semaphore_offset)
{
	bool multi = rls_kernel_arms_by_multi(kernel);
	struct rls_arm_request request = {
		.program = kernel->skeleton->progs.on_batch_multi,
		.single = kernel->skeleton->progs.on_batch,
		.multi = multi,
		.pid = pid,
		.path = path,
		.site_offset = site_offset,
		.semaphore_offset = semaphore_offset,
	};

	return rls_arms_add(&kernel->arms, &request);
}

void rls_kernel_disarm(struct rls_kernel *kernel, pid_t pid)
{
	rls_arms_remove(&kernel->arms, pid);
}

int rls_kernel_set_interpreter(struct rls_kernel *kernel, pid_t pid,
			       const struct rls_wire_interpreter *interpreter)
{
	struct bpf_map *map = kernel->skeleton->maps.interpreters;
	uint32_t key = (uint32_t)pid;

	if (!interpreter)
		return bpf_map__delete_elem(map, &key, sizeof(key), 0);
	return bpf_map__update_elem(map, &key, sizeof(key), interpreter, sizeof(*interpreter),
				    BPF_ANY);
}

void rls_kernel_set_image(struct rls_kernel *kernel, dev_t device, ino_t inode,
			  const struct rls_wire_interpreter *interpreter)
{
	const struct rls_wire_image image = {
		.inode = inode,
		.device = major(device) << 20 | minor(device),
	};

	bpf_map__update_elem(kernel->skeleton->maps.images, &image, sizeof(image), interpreter,
			     sizeof(*interpreter), BPF_ANY);
}

void rls_kernel_pause(struct rls_kernel *kernel)
{
	__atomic_store_n(&kernel->skeleton->bss->recording_since_ns, 0, __ATOMIC_RELEASE);
}

static int read_first_states(struct rls_kernel *kernel)
{
	if (!bpf_program__autoload(kernel->skeleton->progs.first_states))
		return 0;
	return rls_kernel_read_iterator(kernel->skeleton->progs.first_states, &kernel->waiting,
					&kernel->waiting_bytes);
}

int rls_kernel_meet(struct rls_kernel *kernel, uint64_t time_ns)
{
	kernel->skeleton->bss->states_since_ns = time_ns;
	return read_first_states(kernel);
}

int rls_kernel_start(struct rls_kernel *kernel, uint64_t *start_ns)
{
	int r = rls_kernel_start_ticks(kernel);

	if (r)
		return r;
	*start_ns = rls_monotonic_ns();
	kernel->skeleton->bss->states_since_ns = *start_ns;
	__atomic_store_n(&kernel->skeleton->bss->recording_since_ns, *start_ns, __ATOMIC_RELEASE);
	r = read_first_states(kernel);
	return r ? rls_error_r(r, "cannot read the state of the threads: %s", rls_reason(r)) : 0;
}

int rls_kernel_stop(struct rls_kernel *kernel, uint64_t *stop_ns)
{
	int r;

	rls_kernel_pause(kernel);
	*stop_ns = rls_monotonic_ns();
	__atomic_store_n(&kernel->skeleton->bss->stopped_ns, *stop_ns, __ATOMIC_RELEASE);
	r = rls_kernel_iterate(kernel->skeleton->progs.final_states);
	return r ? rls_error_r(r, "cannot read the threads' last states: %s", rls_reason(r)) : 0;
}

void rls_kernel_detach(struct rls_kernel *kernel)
{
	if (kernel->arms.count && kernel->arm_way == ARM_WAY_PERF)
		kernel->links.slow = true;
	rls_arms_hand_over(&kernel->arms, &kernel->links);
	rls_kernel_leave_ranges(kernel);
	rls_kernel_leave_memory(kernel);
	rls_kernel_leave_layers(kernel);
	rls_groups_clear(&kernel->groups);
	rls_sampler_clear(&kernel->sampler);
	rls_sampler_clear(&kernel->close_samples);
	if (kernel->scheduler_ticks)
		rls_kernel_leave_scheduler_ticks(kernel);
	rls_links_leave(&kernel->links);
}

size_t rls_kernel_mark(const struct rls_kernel *kernel)
{
	return kernel->links.count;
}

void rls_kernel_detach_since(struct rls_kernel *kernel, size_t mark)
{
	rls_links_clear(&kernel->links, mark);
	rls_groups_clear(&kernel->groups);
}
