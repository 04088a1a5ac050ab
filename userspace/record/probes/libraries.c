#include "userspace/record/probes/libraries.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/index_map.h"
#include "userspace/attach/kernel/kernel_rings.h"
#include "userspace/attach/kernel/kernel_sites.h"
#include "userspace/base/clock.h"
#include "userspace/base/log.h"
#include "userspace/discover/discover.h"
#include "userspace/record/probes/annotation_probes.h"
#include "userspace/record/probes/cupti_bridges.h"
#include "userspace/record/probes/file_table.h"
#include "userspace/record/probes/library_uses.h"
#include "userspace/record/probes/lone_file.h"
#include "userspace/record/probes/probed_files.h"
#include "userspace/record/probes/rescan_schedule.h"
#include "userspace/record/probes/stack_switching.h"

/* A target's state here. */
struct process {
	pid_t pid;
	struct rls_process_image *image; /* NULL while all is as in the parent it was forked from */
	struct rls_library_uses uses;
	uint64_t mapped; /* fingerprint of the executable mappings looked at */
	uint64_t annotation;
	struct rls_rescan_schedule rescans;
	bool is_blind; /* it maps CUDA and no bridge */
	char python[32];
	bool warned_of_switching;
	struct rls_cupti_bridges bridges;
};

struct rls_libraries {
	struct rls_kernel *kernel;
	const struct rls_roles *roles;
	struct rls_event_output *output;
	struct rls_probed_files files;
	struct rls_files table; /* what is known of files, probed or not */
	struct rls_targets *targets;
	size_t place; /* of struct process among a target's states */
	void (*probed)(void *context);
	void *probed_context;
	int (*mappings)(void *context, struct rls_files *files, pid_t pid,
			const struct rls_mappings *mappings);
	void *mappings_context;
};

/* ---- processes ---- */

static struct process *process_find(const struct rls_libraries *libraries, pid_t pid)
{
	const struct rls_target *target = rls_targets_find(libraries->targets, pid);

	return target ? target->state[libraries->place] : NULL;
}

static struct process *process_get(const struct rls_libraries *libraries, struct rls_target *target)
{
	struct process *process = target->state[libraries->place];

	if (process)
		return process;
	process = calloc(1, sizeof(*process));
	if (!process)
		return NULL;
	process->pid = target->pid;
	target->state[libraries->place] = process;
	return process;
}

static void process_free(struct process *process)
{
	if (!process)
		return;
	rls_library_uses_clear(&process->uses);
	rls_cupti_bridges_clear(&process->bridges);
	rls_process_image_free(process->image);
	free(process);
}

/* ---- scanning ---- */

/* Something may have taken a while: do not let the ring run full meanwhile. */
static void catch_breath(struct rls_libraries *libraries)
{
	rls_kernel_consume_transitions(libraries->kernel);
	if (libraries->probed)
		libraries->probed(libraries->probed_context);
}

static int take_library(struct rls_libraries *libraries, struct process *process,
			const struct rls_mappings *mappings, const struct rls_library *library,
			struct rls_probed_plan *planned)
{
	int r = rls_probed_files_attach(&libraries->files, planned);

	catch_breath(libraries);
	if (r == -ENOMEM)
		return r;
	/* Another failure has been reported; the others can still be probed. */
	return rls_library_uses_add(&process->uses, planned->file, library->path, mappings);
}

static int take_libraries(struct rls_libraries *libraries, struct process *process,
			  const struct rls_mappings *mappings, struct rls_library **found,
			  size_t count)
{
	_cleanup_free_ struct rls_probed_plan *planned = calloc(count + 1, sizeof(*planned));
	int r = planned ? 0 : -ENOMEM;
	size_t sites = 0;

	for (size_t i = 0; r != -ENOMEM && i < count; i++) {
		r = rls_probed_files_plan(&libraries->files, found[i], &planned[i]);
		sites += planned[i].plan.count;
		catch_breath(libraries);
	}
	r = r == -ENOMEM ? r : 0;
	rls_kernel_expect_sites(libraries->kernel, sites);
	for (size_t i = 0; planned && i < count; i++) {
		if (r)
			rls_plan_clear(&planned[i].plan);
		else if (planned[i].file)
			r = take_library(libraries, process, mappings, found[i], &planned[i]);
	}
	return r;
}

static void take_warnings(struct rls_libraries *libraries, const struct rls_process_image *image,
			  size_t from, uint64_t now_ns)
{
	for (size_t i = from; i < image->warning_count; i++) {
		rls_event_output_warn(libraries->output, now_ns, "%s", image->warnings[i]);
	}
}

/* Their functions get ends that stand a change of stacks. */
static int plan_again(struct rls_libraries *libraries, const struct rls_probed_file *file)
{
	for (size_t t = 0; t < libraries->targets->count; t++) {
		const struct process *process = libraries->targets->all[t]->state[libraries->place];

		for (size_t i = 0; process && process->image && i < process->image->library_count;
		     i++) {
			struct rls_library *library = process->image->libraries[i];
			int r;

			if (library->inode != file->identity->inode ||
			    library->device != file->identity->device)
				continue;
			r = rls_probed_files_add(&libraries->files, library);
			if (r == -ENOMEM)
				return r;
		}
	}
	return 0;
}

/* Takes the return probes off all files that a process maps which switches stacks. */
static int spare_stack_switching(struct rls_libraries *libraries)
{
	for (size_t i = 0; i < libraries->files.count; i++) {
		struct rls_probed_file *file = libraries->files.files[i];
		int r;

		if (file->spared || !file->identity->switches_stacks)
			continue;
		rls_debug("a process that switches stacks maps file %ju: no return probes there",
			  (uintmax_t)file->identity->inode);
		r = rls_probed_files_spare(&libraries->files, file);
		if (!r)
			r = plan_again(libraries, file);
		if (r)
			return r;
	}
	return 0;
}

static int note_stack_switching(struct rls_libraries *libraries, pid_t pid,
				const struct rls_mappings *mappings, bool *more)
{
	int r = rls_stack_switching_take(&libraries->table, pid, mappings, more);

	return r || !*more ? r : spare_stack_switching(libraries);
}

static int warn_of_switching(struct rls_libraries *libraries, pid_t pid, uint64_t now_ns)
{

	return rls_event_output_warn(
		libraries->output, now_ns,
		"process %d has loaded greenlet or its like: calls that switch stacks before they "
		"return are not timed exactly, and each return costs more",
		pid);
}

static int libraries_handle_switching(struct rls_libraries *libraries, struct process *process,
				      const struct rls_mappings *mappings, uint64_t now_ns)
{
	bool more;
	int r;

	if (!rls_stack_switching_among(mappings))
		return 0;
	r = note_stack_switching(libraries, process->pid, mappings, &more);
	if (r || process->warned_of_switching)
		return r;
	process->warned_of_switching = true;
	return warn_of_switching(libraries, process->pid, now_ns);
}

int rls_libraries_mapped(struct rls_libraries *libraries, pid_t pid, const char *path)
{
	struct rls_role_match match;
	struct rls_mappings mappings;
	bool more;
	int r;

	if (!pid) {
		r = rls_stack_switching_take_all(&libraries->table, &more);
		return r || !more ? r : spare_stack_switching(libraries);
	}
	if (!rls_stack_switching_name(path) && !rls_roles_match(libraries->roles, path, &match))
		return 0;
	if (rls_mappings_read(pid, &mappings))
		return 0; /* it has ended */
	r = note_stack_switching(libraries, pid, &mappings, &more);
	rls_mappings_release(&mappings);
	return r;
}

/* The tables that modules fill after they are mapped. */
static int rescan_tables(struct rls_libraries *libraries, struct process *process,
			 const struct rls_mappings *mappings)
{
	struct rls_process_image *added;
	int r = rls_discover_again(process->image, libraries->roles, &added);

	if (r)
		return r;
	r = take_libraries(libraries, process, mappings, added->libraries, added->library_count);
	rls_debug("process %d: tables read again, %zu libraries have new functions", process->pid,
		  added->library_count);
	rls_process_image_free(added);
	return r;
}

/* Not where the process ended before: then nothing of the file is planned. */
static void log_probed(const struct rls_libraries *libraries, pid_t pid,
		       struct rls_library *const *added, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct rls_probed_file *file =
			rls_libraries_file(libraries, added[i]->device, added[i]->inode);

		if (file && (file->function_count || !added[i]->function_count))
			rls_debug("process %d: %s is probed", pid, added[i]->path);
	}
}

static int scan_new(struct rls_libraries *libraries, struct process *process,
		    const struct rls_mappings *mappings, uint64_t now_ns)
{
	size_t first_new = 0, warned = 0;
	bool first = !process->image;
	int r;

	if (first) {
		r = rls_discover_process(process->pid, libraries->roles, &process->image);
	} else {
		warned = process->image->warning_count;
		r = rls_discover_new_libraries(process->image, libraries->roles, &first_new);
	}
	if (r)
		return r;
	take_warnings(libraries, process->image, warned, now_ns);
	snprintf(process->python, sizeof(process->python), "%s", process->image->python.version);
	if (first_new < process->image->library_count)
		rls_rescan_schedule_start(&process->rescans, process->pid, first, now_ns);
	r = take_libraries(libraries, process, mappings, process->image->libraries + first_new,
			   process->image->library_count - first_new);
	if (!r)
		log_probed(libraries, process->pid, process->image->libraries + first_new,
			   process->image->library_count - first_new);
	return r;
}

/* Of some target: those that a recording has seldom differ. NULL: none is known. */
static const struct rls_python *some_python(const struct rls_libraries *libraries)
{
	for (size_t i = 0; i < libraries->targets->count; i++) {
		const struct process *process = libraries->targets->all[i]->state[libraries->place];

		if (process && process->image && process->image->python.version[0])
			return &process->image->python;
	}
	return NULL;
}

int rls_libraries_probe_mapping(struct rls_libraries *libraries, pid_t pid,
				const struct rls_mapping *mapping)
{
	int r = rls_lone_file_probe(&libraries->files, pid, mapping, some_python(libraries),
				    libraries->roles);

	catch_breath(libraries);
	return r;
}

static void find_bridge(struct rls_libraries *libraries, struct process *process,
			const struct rls_mappings *mappings)
{
	process->is_blind =
		rls_cupti_bridges_cuda_mapped(mappings) && !rls_cupti_bridges_mapped(mappings);
	rls_cupti_bridges_scan(libraries->kernel, &libraries->table, &process->bridges,
			       process->pid, mappings);
}

static bool rescan_is_due(const struct process *process, uint64_t now_ns)
{
	uint64_t due_ns = rls_rescan_schedule_due_ns(&process->rescans);

	return process->image && due_ns && now_ns >= due_ns;
}

static int scan_changes(struct rls_libraries *libraries, struct process *process,
			const struct rls_mappings *mappings, uint64_t now_ns)
{
	int r;

	rls_annotation_probes_scan(libraries->kernel, &libraries->table, process->pid, mappings,
				   &process->annotation);
	r = libraries_handle_switching(libraries, process, mappings, now_ns);
	if (!r && libraries->mappings)
		r = libraries->mappings(libraries->mappings_context, &libraries->table,
					process->pid, mappings);
	if (!r)
		r = scan_new(libraries, process, mappings, now_ns);
	if (!r)
		process->mapped = rls_mappings_fingerprint(mappings);
	return r;
}

/* The bridge is armed first in a process that has run before us, where GPU time is waited for. In one
 * that has been looked at before it is new, and cuInit may wait in it for us (cupti_bridge): armed
 * last, so that the launches which that lets go meet their probes. */
int rls_libraries_scan(struct rls_libraries *libraries, pid_t pid, uint64_t now_ns)
{
	struct rls_target *target = rls_targets_find(libraries->targets, pid);
	struct process *process = target ? process_get(libraries, target) : NULL;
	struct rls_mappings mappings;
	bool is_first, has_changed;
	int r;

	if (!process)
		return target ? -ENOMEM : -ESRCH;
	r = rls_mappings_read(pid, &mappings);
	if (r)
		return r;
	is_first = !process->image;
	has_changed = rls_mappings_fingerprint(&mappings) != process->mapped;
	if (has_changed && is_first)
		find_bridge(libraries, process, &mappings);
	if (has_changed) {
		r = scan_changes(libraries, process, &mappings, now_ns);
	} else if (rescan_is_due(process, now_ns) &&
		   rls_rescan_schedule_take(&process->rescans,
					    rls_discover_imported(process->image))) {
		r = rescan_tables(libraries, process, &mappings);
	}
	if (!r)
		r = rls_library_uses_set_ranges(&process->uses, libraries->kernel, pid);
	if (has_changed && !is_first)
		find_bridge(libraries, process, &mappings);
	rls_mappings_release(&mappings);
	return r ? r
		 : rls_library_uses_report(&process->uses, libraries->output, process->pid, now_ns);
}

uint64_t rls_libraries_due_ns(const struct rls_libraries *libraries, pid_t pid)
{
	const struct process *process = process_find(libraries, pid);

	return process ? rls_rescan_schedule_due_ns(&process->rescans) : 0;
}

/* ---- a target's life ---- */

static void libraries_forget(void *context, struct rls_target *target, enum rls_target_over why,
			     uint64_t time_ns)
{
	struct rls_libraries *libraries = context;
	struct process *process = target->state[libraries->place];

	if (process && why != RLS_TARGET_CLOSED) /* all probes go then */
		rls_cupti_bridges_disarm(libraries->kernel, &process->bridges, target->pid);
	process_free(process);
	target->state[libraries->place] = NULL;
}

/* A forked child maps what its parent maps. */
static int forked(void *context, const struct rls_target *parent, struct rls_target *child,
		  uint64_t time_ns)
{
	struct rls_libraries *libraries = context;
	const struct process *from = parent ? parent->state[libraries->place] : NULL;
	struct process *to;
	int r;

	if (!from || parent == child)
		return 0;
	libraries_forget(libraries, child, RLS_TARGET_EXECED,
			 time_ns); /* what was found of it before its fork */
	to = process_get(libraries, child);
	if (!to)
		return -ENOMEM;
	to->mapped = from->mapped;
	to->annotation = from->annotation;
	to->warned_of_switching = from->warned_of_switching;
	to->is_blind = from->is_blind;
	memcpy(to->python, from->python, sizeof(to->python));
	r = rls_library_uses_copy(&to->uses, &from->uses);
	return r ? r : rls_library_uses_report(&to->uses, libraries->output, to->pid, time_ns);
}

int rls_libraries_written_fd(const struct rls_libraries *libraries)
{
	return libraries->files.written_fd;
}

static int warn_of_written(void *context, const struct rls_probed_file *file)
{
	struct rls_libraries *libraries = context;

	return rls_event_output_warn(
		libraries->output, rls_monotonic_ns(),
		"%s is written to while it is probed: its probes are off, and calls into it "
		"are not seen any more",
		file->path);
}

int rls_libraries_check_files(struct rls_libraries *libraries)
{
	return rls_probed_files_check(&libraries->files, warn_of_written, libraries);
}

/* ---- asking ---- */

const char *rls_libraries_python(const struct rls_libraries *libraries, pid_t pid)
{
	const struct process *process = process_find(libraries, pid);

	return process ? process->python : "";
}

size_t rls_libraries_count(const struct rls_libraries *libraries, pid_t pid)
{
	const struct process *process = process_find(libraries, pid);

	return process ? rls_library_uses_count(&process->uses) : 0;
}

bool rls_libraries_is_blind(const struct rls_libraries *libraries, pid_t pid)
{
	const struct process *process = process_find(libraries, pid);

	return process && process->is_blind;
}

uint64_t rls_libraries_annotation(const struct rls_libraries *libraries, pid_t pid)
{
	const struct process *process = process_find(libraries, pid);

	return process ? process->annotation : 0;
}

const struct rls_probed_file *rls_libraries_file(const struct rls_libraries *libraries,
						 dev_t device, ino_t inode)
{
	const struct rls_file *file = rls_files_find(&libraries->table, device, inode);

	return file ? file->probed : NULL;
}

size_t rls_libraries_known(const struct rls_libraries *libraries)
{
	return libraries->files.count;
}

size_t rls_libraries_sites(const struct rls_libraries *libraries)
{
	return libraries->files.sites;
}

size_t rls_libraries_site_ids(const struct rls_libraries *libraries)
{
	return libraries->files.next_site;
}

size_t rls_libraries_files(const struct rls_libraries *libraries)
{
	size_t count = 0;

	for (size_t i = 0; i < libraries->files.count; i++)
		count += libraries->files.files[i]->sites > 0;
	return count;
}

int rls_libraries_new(struct rls_kernel *kernel, const struct rls_roles *roles,
		      struct rls_event_output *output, struct rls_targets *targets,
		      struct rls_libraries **out)
{
	struct rls_libraries *libraries = calloc(1, sizeof(*libraries));
	const struct rls_target_observer observer = {forked, libraries_forget, libraries};
	int r = libraries ? rls_targets_observe(targets, &observer, &libraries->place) : -ENOMEM;

	if (r) {
		free(libraries);
		return r;
	}
	libraries->targets = targets;
	libraries->kernel = kernel;
	libraries->roles = roles;
	libraries->output = output;
	libraries->files.kernel = kernel;
	libraries->files.table = &libraries->table;
	rls_probed_files_open(&libraries->files);
	*out = libraries;
	return 0;
}

void rls_libraries_on_probed(struct rls_libraries *libraries, void (*probed)(void *context),
			     void *context)
{
	libraries->probed = probed;
	libraries->probed_context = context;
}

void rls_libraries_count_to(struct rls_libraries *libraries, uint32_t sites_max)
{
	libraries->files.sites_max = sites_max;
}

void rls_libraries_on_mappings(struct rls_libraries *libraries,
			       int (*mapped)(void *context, struct rls_files *files, pid_t pid,
					     const struct rls_mappings *mappings),
			       void *context)
{
	libraries->mappings = mapped;
	libraries->mappings_context = context;
}

void rls_libraries_on_cuda_entry(struct rls_libraries *libraries,
				 int (*cuda_entry)(void *context, uint32_t site, const char *name),
				 void *context)
{
	libraries->files.cuda_entry = cuda_entry;
	libraries->files.cuda_entry_context = context;
}

bool rls_libraries_bridged(const struct rls_libraries *libraries)
{
	for (size_t i = 0; i < libraries->targets->count; i++) {
		const struct process *process = libraries->targets->all[i]->state[libraries->place];

		if (process && rls_cupti_bridges_can_arm(&process->bridges))
			return true;
	}
	return false;
}

void rls_libraries_arm(struct rls_libraries *libraries, bool armed)
{
	for (size_t i = 0; i < libraries->targets->count; i++) {
		const struct process *process = libraries->targets->all[i]->state[libraries->place];

		if (process && armed)
			rls_cupti_bridges_arm(libraries->kernel, &process->bridges, process->pid);
		else if (process)
			rls_cupti_bridges_disarm(libraries->kernel, &process->bridges,
						 process->pid);
	}
}

void rls_libraries_free(struct rls_libraries *libraries)
{
	if (!libraries)
		return;
	rls_targets_leave(libraries->targets, libraries->place);
	rls_probed_files_clear(&libraries->files);
	rls_files_clear(&libraries->table);
	free(libraries);
}
