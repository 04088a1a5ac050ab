#include "userspace/attach/kernel/kernel_layers.h"

#include <errno.h>
#include <stdlib.h>

#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/cookie.h"
#include "userspace/attach/kernel/kernel_state.h"

/* ---- loading ---- */

int rls_kernel_size_layers(struct rls_kernel *kernel, unsigned int depth_max)
{
	struct rlscope *skeleton = kernel->skeleton;
	struct bpf_map *maps[] = {skeleton->maps.layer_objects, skeleton->maps.layer_types};
	bool multi = kernel->way == RLS_ATTACH_MULTI, wanted = depth_max != 0;
	int r = 0;

	kernel->layers.wanted = wanted;
	skeleton->bss->layers_wanted = wanted;
	skeleton->data->layer_depth_max = depth_max < RLS_LAYERS_OPEN ? depth_max : RLS_LAYERS_OPEN;
	bpf_program__set_autoload(skeleton->progs.on_layer_multi, wanted && multi);
	bpf_program__set_autoload(skeleton->progs.on_layer_return_multi, wanted && multi);
	bpf_program__set_autoload(skeleton->progs.on_layer, wanted && !multi);
	bpf_program__set_autoload(skeleton->progs.on_layer_return, wanted && !multi);
	for (size_t i = 0; !r && !wanted && i < sizeof(maps) / sizeof(maps[0]); i++)
		r = bpf_map__set_max_entries(maps[i], 1);
	return r;
}

void rls_kernel_clear_layers(struct rls_kernel *kernel)
{
	free(kernel->layers.files);
	kernel->layers.files = NULL;
}

/* ---- sites ---- */

static int attach_return(struct rls_kernel *kernel, struct rls_links *links, const char *path,
			 unsigned long offset, __u64 cookie)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, multi, .offsets = &offset, .cookies = &cookie, .cnt = 1,
		    .retprobe = true);
	LIBBPF_OPTS(bpf_uprobe_opts, perf, .bpf_cookie = cookie, .retprobe = true);

	if (kernel->way == RLS_ATTACH_MULTI)
		return rls_links_add(links, bpf_program__attach_uprobe_multi(
						    kernel->skeleton->progs.on_layer_return_multi,
						    -1, path, NULL, &multi));
	return rls_links_add(
		links, bpf_program__attach_uprobe_opts(kernel->skeleton->progs.on_layer_return, -1,
						       path, offset, &perf));
}

static int attach_site(struct rls_kernel *kernel, struct rls_links *links, const char *path,
		       const struct rls_layer_site *site, uint32_t items_bytes)
{
	uint32_t cost_ns = kernel->costs.ns[site->site_class][0];

	return rls_kernel_attach_one(
		kernel, links, kernel->skeleton->progs.on_layer_multi,
		kernel->skeleton->progs.on_layer, path, site->file_offset, 0,
		RLS_LAYER_COOKIE(site->ends ? RLS_LAYER_ENDS : RLS_LAYER_BEGINS, site->slot_bytes,
				 items_bytes, rls_cookie_cost(cost_ns)));
}

static int attach_ends(struct rls_kernel *kernel, struct rls_links *links, const char *path,
		       const struct rls_layer_sites *sites)
{
	int r = sites->all_ends ? 0 : -ENOTSUP;

	for (size_t i = 1; !r && i < sites->count; i++)
		r = attach_site(kernel, links, path, &sites->items[i], 0);
	return r;
}

/* The end first: a begin whose end is not seen would last until the next hit. */
int rls_kernel_attach_layers(struct rls_kernel *kernel, uint32_t file, const char *path,
			     const struct rls_layer_sites *sites, uint32_t items_bytes, bool spared)
{
	const struct rls_layer_site *begin = &sites->items[0];
	uint32_t cost_ns = kernel->costs.ns[begin->site_class][1];
	struct rls_layer_probes *layers = &kernel->layers;
	struct rls_layer_file *probed;
	int r = rls_grow(&layers->files, &layers->room, layers->count);

	if (r || !layers->wanted)
		return r ? r : -EINVAL;
	probed = &layers->files[layers->count];
	*probed = (struct rls_layer_file){.file = file};
	rls_kernel_begin_switching(kernel);
	r = spared ? attach_ends(kernel, &probed->links, path, sites)
		   : attach_return(
			     kernel, &probed->returns, path, begin->file_offset,
			     RLS_LAYER_COOKIE(RLS_LAYER_RETURNED, 0, 0, rls_cookie_cost(cost_ns)));
	if (!r)
		r = attach_site(kernel, &probed->links, path, begin, items_bytes);
	rls_kernel_end_switching(kernel);
	if (!r) {
		layers->count++;
		return 0;
	}
	rls_links_clear(&probed->returns, 0);
	rls_links_clear(&probed->links, 0);
	return r;
}

static struct rls_layer_file *file_of(struct rls_kernel *kernel, uint32_t file)
{
	for (size_t i = 0; i < kernel->layers.count; i++)
		if (kernel->layers.files[i].file == file)
			return &kernel->layers.files[i];
	return NULL;
}

int rls_kernel_spare_layers(struct rls_kernel *kernel, uint32_t file, const char *path,
			    const struct rls_layer_sites *sites)
{
	struct rls_layer_file *probed = file_of(kernel, file);
	int r;

	if (!probed)
		return 0;
	rls_kernel_begin_switching(kernel);
	rls_links_clear(&probed->returns, 0);
	r = attach_ends(kernel, &probed->links, path, sites);
	if (r)
		rls_links_clear(&probed->links, 0);
	rls_kernel_end_switching(kernel);
	return r;
}

void rls_kernel_detach_layers(struct rls_kernel *kernel, uint32_t file)
{
	struct rls_layer_file *probed = file_of(kernel, file);

	if (!probed)
		return;
	rls_kernel_begin_switching(kernel);
	rls_links_clear(&probed->links, 0);
	rls_links_clear(&probed->returns, 0);
	rls_kernel_end_switching(kernel);
}

void rls_kernel_leave_layers(struct rls_kernel *kernel)
{
	struct rls_layer_probes *layers = &kernel->layers;

	for (size_t i = 0; i < layers->count; i++)
		rls_links_gather(&layers->files[i].links, &kernel->links);
	for (size_t i = 0; i < layers->count; i++)
		rls_links_gather(&layers->files[i].returns, &kernel->links);
	layers->count = 0;
}

/* ---- what is known ---- */

uint64_t rls_kernel_layer_count(const struct rls_kernel *kernel, enum rls_layer_count which)
{
	return __atomic_load_n(&kernel->skeleton->bss->layer_counts[which], __ATOMIC_RELAXED);
}

/* Keys are gathered first: one that is deleted has no next one. */
static void forget_keys(struct bpf_map *map, uint32_t pid, size_t most)
{
	_cleanup_free_ struct rls_wire_layer_key *gone = calloc(most, sizeof(*gone));
	struct rls_wire_layer_key key, *before = NULL;
	size_t count = 0, seen = 0;

	while (gone && seen++ < most && !bpf_map__get_next_key(map, before, &key, sizeof(key))) {
		if (key.pid == pid && count < most)
			gone[count++] = key;
		before = &key;
	}
	for (size_t i = 0; i < count; i++)
		bpf_map__delete_elem(map, &gone[i], sizeof(gone[i]), 0);
}

void rls_kernel_forget_layers(struct rls_kernel *kernel, pid_t pid)
{
	if (!kernel->layers.wanted)
		return;
	forget_keys(kernel->skeleton->maps.layer_objects, (uint32_t)pid, RLS_LAYER_OBJECTS);
	forget_keys(kernel->skeleton->maps.layer_types, (uint32_t)pid, RLS_LAYER_TYPES);
}
