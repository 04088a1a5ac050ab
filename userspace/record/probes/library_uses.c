#include "userspace/record/probes/library_uses.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "bpf/wire/maps.h"
#include "userspace/discover/roles/roles.h"

void rls_library_uses_clear(struct rls_library_uses *uses)
{
	for (size_t i = 0; i < uses->count; i++)
		free(uses->items[i].path);
	free(uses->items);
	*uses = (struct rls_library_uses){0};
}

static int library_uses_get(struct rls_library_uses *uses, const struct rls_probed_file *file,
			    const char *path, struct rls_library_use **out)
{
	struct rls_library_use use = {.file = file};

	for (size_t i = 0; i < uses->count; i++) {
		if (uses->items[i].file == file) {
			*out = &uses->items[i];
			return 0;
		}
	}
	use.path = strdup(path);
	if (!use.path || rls_grow(&uses->items, &uses->room, uses->count)) {
		free(use.path);
		return -ENOMEM;
	}
	uses->items[uses->count] = use;
	*out = &uses->items[uses->count++];
	return 0;
}

static void find_code(const char *path, const struct rls_mappings *mappings,
		      struct rls_library_use *use)
{
	for (size_t i = 0; i < mappings->count; i++) {
		const struct rls_mapping *mapping = &mappings->entries[i];

		if (!mapping->executable || strcmp(mapping->path, path))
			continue;
		if (use->code_start == use->code_end || mapping->start < use->code_start)
			use->code_start = mapping->start;
		if (mapping->end > use->code_end)
			use->code_end = mapping->end;
	}
}

int rls_library_uses_add(struct rls_library_uses *uses, const struct rls_probed_file *file,
			 const char *path, const struct rls_mappings *mappings)
{
	struct rls_library_use *use;
	int r = library_uses_get(uses, file, path, &use);

	if (!r && use->code_start == use->code_end)
		find_code(path, mappings, use);
	return r;
}

int rls_library_uses_copy(struct rls_library_uses *to, const struct rls_library_uses *from)
{
	for (size_t i = 0; i < from->count; i++) {
		struct rls_library_use *use;
		int r = library_uses_get(to, from->items[i].file, from->items[i].path, &use);

		if (r)
			return r;
		use->code_start = from->items[i].code_start;
		use->code_end = from->items[i].code_end;
	}
	return 0;
}

size_t rls_library_uses_count(const struct rls_library_uses *uses)
{
	size_t count = 0;

	for (size_t i = 0; i < uses->count; i++)
		count += uses->items[i].file->role != RLS_ROLE_PYTHON;
	return count;
}

int rls_library_uses_report(struct rls_library_uses *uses, struct rls_event_output *output,
			    pid_t pid, uint64_t now_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < uses->count; i++) {
		struct rls_library_use *use = &uses->items[i];
		struct rls_event event = {
			.kind = RLS_EVENT_LIBRARY, .pid = (uint32_t)pid, .time_ns = now_ns};

		if (use->reported &&
		    (use->reported_sites == use->file->sites || use->file->written))
			continue;
		event.library.sites = (uint32_t)use->file->sites;
		r = rls_event_output_string(output, use->path, &event.library.path);
		if (!r)
			r = rls_event_output_string(output, rls_role_name(use->file->role),
						    &event.library.role);
		if (!r)
			r = rls_event_output_add(output, &event);
		use->reported = true;
		use->reported_sites = use->file->sites;
	}
	return r;
}

int rls_library_uses_set_ranges(const struct rls_library_uses *uses, struct rls_kernel *kernel,
				pid_t pid)
{
	struct rls_wire_ranges known = {0};

	for (size_t i = 0; i < uses->count && known.count < RLS_RANGES_MAX; i++) {
		const struct rls_library_use *use = &uses->items[i];

		if (use->file->role == RLS_ROLE_PYTHON || use->code_start >= use->code_end)
			continue;
		known.range[known.count].start = use->code_start;
		known.range[known.count].end = use->code_end;
		known.range[known.count].category = rls_role_category(use->file->role);
		known.count++;
	}
	return rls_kernel_set_ranges(kernel, pid, &known);
}
