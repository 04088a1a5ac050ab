#include "userspace/attach/groups.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/base/grow.h"
#include "userspace/attach/closing.h"
#include "userspace/attach/held_file.h"
#include "userspace/attach/hit_costs.h"
#include "userspace/base/descriptors.h"

/* A link goes as a whole, and each site in it costs the target some 50 us when it does: so
 * few sites a link, that those beside a busy one do not matter, and not too few for the number
 * of descriptors. */
#define SITES_A_LINK 16
#define GO_ON_LINKS 4 /* half a millisecond */

struct chunk {
	size_t first, count; /* of the file's sites */
	bool changed; /* the duty of a site, since its probes were put on */
	struct rls_links always;
};

/* The sites of one request, and the probes on them. */
struct rls_group_file {
	const struct bpf_program *on_site, *on_return;
	struct rls_held_file held;
	struct rls_site *sites;
	size_t count;
	uint32_t first_id;
	bool windowed; /* some sites are */
	bool without_returns;
	struct chunk *chunks;
	size_t chunk_count;
	struct rls_links windows;
};

static void file_free(struct rls_group_file *file, struct rls_links *gone)
{
	for (size_t i = 0; i < file->chunk_count; i++)
		rls_links_gather(&file->chunks[i].always, gone);
	rls_links_gather(&file->windows, gone);
	rls_held_file_close(&file->held);
	free(file->chunks);
	free(file->sites);
	free(file);
}

static void groups_divide(struct rls_group_file *file)
{
	for (size_t first = 0; first < file->count; first += SITES_A_LINK) {
		size_t rest = file->count - first;

		file->chunks[file->chunk_count++] = (struct chunk){
			.first = first,
			.count = rest < SITES_A_LINK ? rest : SITES_A_LINK,
		};
	}
}

static int file_new(const struct rls_link_request *request, struct rls_group_file **out)
{
	struct rls_group_file *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	file->held.fd = -1;
	file->on_site = request->on_site;
	file->on_return = request->on_return;
	file->first_id = request->first_id;
	file->count = request->count;
	r = rls_held_file_open(&file->held, request->path);
	if (r)
		rls_links_report(request->path, "probes", request->count, 0, r);
	file->sites = calloc(request->count, sizeof(*file->sites));
	file->chunks = calloc(request->count / SITES_A_LINK + 1, sizeof(*file->chunks));
	if (!r && (!file->sites || !file->chunks))
		r = -ENOMEM;
	if (r) {
		file_free(file, &(struct rls_links){0});
		return r;
	}
	groups_divide(file);
	memcpy(file->sites, request->sites, request->count * sizeof(*file->sites));
	for (size_t i = 0; i < file->count; i++)
		file->sites[i].name = NULL; /* borrowed for the request only */
	*out = file;
	return 0;
}

static enum rls_duty duty_of(const struct rls_groups *groups, uint32_t site)
{
	return site < groups->duty_room ? groups->duties[site] : RLS_DUTY_ALWAYS;
}

/* After so many links that have been put on. */
static void go_on(const struct rls_groups *groups, size_t links)
{
	if (links && links % GO_ON_LINKS == 0 && groups->switching)
		groups->switching->begin(groups->switching->context);
}

/* Puts on the sites [first, first + count) of the file that have this duty. */
static int groups_attach(const struct rls_groups *groups, const struct rls_group_file *file,
			 size_t first, size_t count, enum rls_duty duty,
			 const struct rls_hit_costs *costs, struct rls_links *links,
			 size_t *attached)
{
	_cleanup_free_ struct rls_site *sites = calloc(count, sizeof(*sites));
	_cleanup_free_ uint32_t *ids = calloc(count, sizeof(*ids));
	struct rls_link_request request = {
		.on_site = file->on_site,
		.on_return = file->on_return,
		.multi = true,
		.path = file->held.path,
		.sites = sites,
		.ids = ids,
		.costs = costs,
		.first_id = file->first_id,
		.windowed = duty == RLS_DUTY_WINDOWS,
	};

	if (!sites || !ids)
		return -ENOMEM;
	*attached = 0;
	for (size_t i = first; i < first + count; i++) {
		uint32_t id = file->first_id + (uint32_t)i;

		if (duty_of(groups, id) != duty)
			continue;
		sites[request.count] = file->sites[i];
		if (file->without_returns && sites[request.count].exit == RLS_EXIT_RETURN_PROBE)
			sites[request.count].exit = RLS_EXIT_SITES;
		ids[request.count++] = id;
	}
	return request.count ? rls_links_attach(links, &request, attached) : 0;
}

/* The same for a file that has been attached to before. Where that fails, as when the file is shorter by now or too many
 * files are open, these sites are lost and nothing else is. A warning has said so. */
static int attach_again(const struct rls_groups *groups, const struct rls_group_file *file,
			size_t first, size_t count, enum rls_duty duty,
			const struct rls_hit_costs *costs, struct rls_links *links)
{
	size_t attached;
	int r = groups_attach(groups, file, first, count, duty, costs, links, &attached);

	return r == -ENOMEM ? r : 0;
}

/* Returns have links of their own. */
void rls_groups_expect(size_t sites)
{
	rls_closing_prepare(2 * sites / SITES_A_LINK);
}

int rls_groups_add(struct rls_groups *groups, const struct rls_link_request *request,
		   size_t *attached)
{
	struct rls_group_file *file;
	size_t live = 0;
	int r = rls_grow(&groups->files, &groups->room, groups->count);

	if (!r)
		r = file_new(request, &file);
	if (r)
		return r;
	rls_descriptors_allow(4 * file->chunk_count); /* twice while they are regrouped */
	for (size_t i = 0; i < file->chunk_count; i++) {
		struct chunk *chunk = &file->chunks[i];
		size_t more = 0;
		int failed;

		go_on(groups, i);
		failed = groups_attach(groups, file, chunk->first, chunk->count, RLS_DUTY_ALWAYS,
				       request->costs, &chunk->always, &more);

		live += more;
		r = failed ? failed : r;
	}
	if (!live && r) {
		file_free(file, &(struct rls_links){0});
		return r;
	}
	groups->files[groups->count++] = file;
	*attached = live;
	return 0;
}

int rls_groups_set_duty(struct rls_groups *groups, uint32_t site, enum rls_duty duty)
{
	if (site >= groups->duty_room) {
		size_t room = 2 * ((size_t)site + 1);
		uint8_t *grown = realloc(groups->duties, room);

		if (!grown)
			return -ENOMEM;
		memset(grown + groups->duty_room, RLS_DUTY_ALWAYS, room - groups->duty_room);
		groups->duties = grown;
		groups->duty_room = room;
	}
	if (groups->duties[site] == duty)
		return 0;
	groups->duties[site] = duty;
	for (size_t i = 0; i < groups->count; i++) {
		struct rls_group_file *file = groups->files[i];

		if (site >= file->first_id && site - file->first_id < file->count)
			file->chunks[(site - file->first_id) / SITES_A_LINK].changed = true;
	}
	return 0;
}

/* What stays on is put on anew before the old link goes: the kernel then leaves its breakpoints where
 * they are. For a moment two programs see its hits, the second of which changes nothing. */
static int regroup_file(const struct rls_groups *groups, struct rls_group_file *file,
			const struct rls_hit_costs *costs, struct rls_links *gone)
{
	size_t links = 0;
	int r = 0;

	for (size_t i = 0; i < file->chunk_count; i++) {
		struct chunk *chunk = &file->chunks[i];
		struct rls_links old = chunk->always;
		int failed;

		if (!chunk->changed)
			continue;
		go_on(groups, links++);
		chunk->always = (struct rls_links){0};
		failed = attach_again(groups, file, chunk->first, chunk->count, RLS_DUTY_ALWAYS,
				      costs, &chunk->always);
		rls_links_gather(&old, gone);
		chunk->changed = false;
		r = failed ? failed : r;
	}
	rls_links_gather(&file->windows, gone);
	file->windowed = false;
	for (size_t i = 0; i < file->count; i++)
		file->windowed |= duty_of(groups, file->first_id + (uint32_t)i) == RLS_DUTY_WINDOWS;
	return r;
}

int rls_groups_regroup(struct rls_groups *groups, const struct rls_hit_costs *costs,
		       struct rls_links *more)
{
	struct rls_links gone = {0};
	int r = 0;

	rls_links_gather(more, &gone);
	for (size_t i = 0; i < groups->count; i++) {
		int failed = regroup_file(groups, groups->files[i], costs, &gone);

		r = failed ? failed : r;
	}
	rls_links_clear(&gone, 0);
	return r;
}

uint32_t rls_groups_cost_ns(const struct rls_groups *groups, uint32_t site,
			    const struct rls_hit_costs *costs)
{
	for (size_t i = 0; i < groups->count; i++) {
		const struct rls_group_file *file = groups->files[i];
		const struct rls_site *probed;

		if (site < file->first_id || site - file->first_id >= file->count)
			continue;
		probed = &file->sites[site - file->first_id];
		if (probed->exit != RLS_EXIT_RETURN_PROBE)
			return costs->ns[probed->site_class][0];
		/* One hit in two is the return's. */
		return (costs->ns[probed->site_class][0] + costs->ns[probed->site_class][1]) / 2;
	}
	return 0;
}

int rls_groups_open(struct rls_groups *groups, const struct rls_hit_costs *costs)
{
	int r = 0;

	for (size_t i = 0; !r && i < groups->count; i++) {
		struct rls_group_file *file = groups->files[i];

		if (file->windowed)
			r = attach_again(groups, file, 0, file->count, RLS_DUTY_WINDOWS, costs,
					 &file->windows);
	}
	return r;
}

void rls_groups_close(struct rls_groups *groups, struct rls_links *more)
{
	struct rls_links gone = {0};

	rls_links_gather(more, &gone);
	for (size_t i = 0; i < groups->count; i++)
		rls_links_gather(&groups->files[i]->windows, &gone);
	rls_links_clear(&gone, 0);
}

int rls_groups_drop_returns(struct rls_groups *groups, uint32_t first_id)
{
	int r = 0;

	for (size_t i = 0; !r && i < groups->count; i++) {
		struct rls_group_file *file = groups->files[i];

		if (file->first_id != first_id)
			continue;
		file->without_returns = true;
		for (size_t k = 0; !r && k < file->chunk_count; k++)
			r = rls_links_drop_returns(&file->chunks[k].always, first_id);
		if (!r)
			r = rls_links_drop_returns(&file->windows, first_id);
	}
	return r;
}

void rls_groups_remove(struct rls_groups *groups, uint32_t first_id)
{
	struct rls_links gone = {0};
	size_t kept = 0;

	for (size_t i = 0; i < groups->count; i++) {
		if (groups->files[i]->first_id == first_id)
			file_free(groups->files[i], &gone);
		else
			groups->files[kept++] = groups->files[i];
	}
	groups->count = kept;
	rls_links_clear(&gone, 0);
}

void rls_groups_clear(struct rls_groups *groups)
{
	struct rls_links gone = {0};

	for (size_t i = 0; i < groups->count; i++)
		file_free(groups->files[i], &gone);
	rls_links_clear(&gone, 0);
	free(groups->files);
	free(groups->duties);
	*groups = (struct rls_groups){.switching = groups->switching};
}
