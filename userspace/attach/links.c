#include "userspace/attach/links.h"
#include "analysis/base/grow.h"
#include "bpf/wire/cookie.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/closing.h"
#include "userspace/attach/cookie.h"
#include "userspace/base/descriptors.h"
#include "userspace/base/log.h"

#define MANY_SLOW_LINKS 50

int rls_links_add(struct rls_links *links, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (rls_grow(&links->items, &links->capacity, links->count)) {
		bpf_link__destroy(link);
		return -ENOMEM;
	}
	links->items[links->count++] = (struct rls_live_link){.link = link};
	return 0;
}

static int add_probes(struct rls_links *links, const struct rls_link_request *request, bool returns,
		      struct bpf_link *link)
{
	int r = rls_links_add(links, link);

	if (r)
		return r;
	links->items[links->count - 1].first_id = request->first_id;
	links->items[links->count - 1].returns = returns;
	return 0;
}

/* The offsets and cookies of one link: all sites, or those with a return probe. */
struct batch {
	unsigned long *offsets;
	__u64 *cookies;
	size_t count;
};

static void batch_clear(struct batch *batch)
{
	free(batch->offsets);
	free(batch->cookies);
}

static int batch_fill(struct batch *batch, const struct rls_link_request *request, bool returns)
{
	batch->offsets = calloc(request->count, sizeof(*batch->offsets));
	batch->cookies = calloc(request->count, sizeof(*batch->cookies));
	if (!batch->offsets || !batch->cookies)
		return -ENOMEM;
	for (size_t i = 0; i < request->count; i++) {
		const struct rls_site *site = &request->sites[i];

		if (returns && site->exit != RLS_EXIT_RETURN_PROBE)
			continue;
		batch->offsets[batch->count] = site->file_offset;
		batch->cookies[batch->count] = rls_site_cookie(
			site, request->ids ? request->ids[i] : request->first_id + (uint32_t)i,
			request->costs->ns[site->site_class][returns]);
		if (request->windowed)
			batch->cookies[batch->count] =
				RLS_COOKIE_AS_WINDOWED(batch->cookies[batch->count]);
		batch->count++;
	}
	return 0;
}

static int attach_multi(struct rls_links *links, const struct rls_link_request *request,
			const struct batch *batch, bool returns)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, options, .offsets = batch->offsets,
		    .cookies = batch->cookies, .cnt = batch->count, .retprobe = returns);
	const struct bpf_program *program = returns ? request->on_return : request->on_site;

	return add_probes(
		links, request, returns,
		bpf_program__attach_uprobe_multi(program, -1, request->path, NULL, &options));
}

/* What goes into one file: how many probes were wanted, how many are live, and why the others are not. */
struct outcome {
	size_t wanted, live;
	int error; /* the last; 0: all are live */
};

/* One refused site fails the whole link: halve until it is alone, and leave it out. Not where
 * the reason is no site's. */
static void attach_multi_halving(struct rls_links *links, const struct rls_link_request *request,
				 const struct batch *batch, bool returns, struct outcome *outcome)
{
	struct batch left = *batch, right = *batch;
	int r = batch->count ? attach_multi(links, request, batch, returns) : 0;

	if (!r)
		outcome->live += batch->count;
	else
		outcome->error = r;
	if (!r || batch->count == 1 || rls_reason_is_ours(r) || rls_reason_is_end(r))
		return;
	left.count = batch->count / 2;
	right.offsets += left.count;
	right.cookies += left.count;
	right.count -= left.count;
	attach_multi_halving(links, request, &left, returns, outcome);
	attach_multi_halving(links, request, &right, returns, outcome);
}

static void attach_perf(struct rls_links *links, const struct rls_link_request *request,
			const struct batch *batch, bool returns, struct outcome *outcome)
{
	const struct bpf_program *program = returns ? request->on_return : request->on_site;

	/* A perf event and its link. */
	rls_descriptors_allow(2 * batch->count);
	for (size_t i = 0; i < batch->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = returns,
			    .bpf_cookie = batch->cookies[i]);
		int r = add_probes(links, request, returns,
				   bpf_program__attach_uprobe_opts(program, -1, request->path,
								   batch->offsets[i], &options));

		links->slow = true;
		if (!r) {
			outcome->live++;
			continue;
		}
		outcome->error = r;
		if (rls_reason_is_ours(r) || rls_reason_is_end(r))
			return;
	}
}

static int attach_batch(struct rls_links *links, const struct rls_link_request *request,
			bool returns, struct outcome *outcome)
{
	__attribute__((cleanup(batch_clear))) struct batch batch = {0};
	int r = batch_fill(&batch, request, returns);

	*outcome = (struct outcome){.wanted = batch.count};
	if (r)
		return r;
	if (request->multi)
		attach_multi_halving(links, request, &batch, returns, outcome);
	else
		attach_perf(links, request, &batch, returns, outcome);
	return 0;
}

/* As people know the file: what is held open is known by its number, and what others map by their roots. */
static void name_file(const char *path, char *name, size_t size)
{
	ssize_t length = -1;
	int end = 0;

	if (!strncmp(path, "/proc/", strlen("/proc/")) &&
	    (strstr(path, "/fd/") || strstr(path, "/map_files/")))
		length = readlink(path, name, size - 1);
	if (length > 0) {
		name[length] = '\0';
		return;
	}
	sscanf(path, "/proc/%*d/root%n", &end);
	snprintf(name, size, "%s", path + end);
}

void rls_links_report(const char *path, const char *what, size_t wanted, size_t live, int error)
{
	char name[2048], text[4096];

	name_file(path, name, sizeof(name));
	if (rls_reason_is_end(error)) {
		rls_debug("%s is not probed: the process that maps it has ended", name);
		return;
	}
	if (rls_reason_is_ours(error)) /* the same for each part of the file */
		snprintf(text, sizeof(text), "calls into %s are not all seen: %s", name,
			 rls_reason(error));
	else
		snprintf(text, sizeof(text), "%zu of %zu %s refused by the kernel in %s: %s",
			 wanted - live, wanted, what, name, rls_reason(error));
	if (!rls_log_has_warned(text))
		rls_warning("%s", text);
}

/* Entries and their exits belong together where it is not a site that is refused. */
static int links_give_up(struct rls_links *links, size_t first,
			 const struct rls_link_request *request, const char *what,
			 const struct outcome *outcome)
{
	rls_links_report(request->path, what, outcome->wanted, outcome->live, outcome->error);
	if (rls_reason_is_ours(outcome->error) || rls_reason_is_end(outcome->error)) {
		rls_links_clear(links, first);
		return outcome->error == -ENOMEM ? -ENOBUFS : outcome->error;
	}
	return 0;
}

int rls_links_attach(struct rls_links *links, const struct rls_link_request *request,
		     size_t *attached)
{
	struct outcome outcome = {0};
	size_t first = links->count;
	int r;

	r = attach_batch(links, request, true, &outcome);
	if (!r && outcome.error)
		r = links_give_up(links, first, request, "return probes", &outcome);
	if (r)
		return r;
	r = attach_batch(links, request, false, &outcome);
	if (!r && outcome.error)
		r = links_give_up(links, first, request, "probes", &outcome);
	if (r)
		return r;
	*attached = outcome.live;
	return outcome.wanted && !outcome.live ? -EINVAL : 0;
}

/* What the heir must not keep from ending: files whose disk is to be unmounted, pipes whose
 * readers wait for the end. Links and events are anonymous. */
static void forget_all_but_links(int gate)
{
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;

	while (folder && (entry = readdir(folder))) {
		char target[16] = "";
		int fd = atoi(entry->d_name);

		if (entry->d_name[0] == '.' || fd == gate || fd == dirfd(folder))
			continue;
		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1) > 0 &&
		    strncmp(target, "anon_inode:", strlen("anon_inode:")))
			close(fd);
	}
	if (folder)
		closedir(folder);
	(void)!chdir("/");
}

/* The process that waits for the kernel in our stead; its descriptors are copies of ours.
 * It begins when the gate's other end is closed. */
__attribute__((noreturn)) static void close_as_heir(struct rls_links *links, const int gate[2])
{
	char byte;

	setsid();
	prctl(PR_SET_NAME, "rlscope-detach");
	forget_all_but_links(gate[0]);
	(void)!read(gate[0], &byte, 1);
	rls_closing_run(links->items, links->count);
	_exit(0);
}

/* The heir is nobody's child, so that nobody has to wait for it. */
static void leave_heir(struct rls_links *links, const int gate[2])
{
	pid_t child = fork();

	if (child == 0) {
		if (fork() == 0)
			close_as_heir(links, gate);
		_exit(0);
	}
	if (child > 0)
		waitpid(child, NULL, 0);
}

/* Where no heir could be made, closing here takes its time and is right all the same. */
static void close_through_heir(struct rls_links *links)
{
	int gate[2];

	if (pipe2(gate, O_CLOEXEC)) {
		rls_closing_run(links->items, links->count);
		return;
	}
	leave_heir(links, gate);
	close(gate[0]);
	for (size_t i = 0; i < links->count; i++)
		bpf_link__destroy(links->items[i].link);
	close(gate[1]);
}

static int move(struct rls_links *from, struct rls_links *to)
{
	size_t total = from->count + to->count;

	if (total > to->capacity) {
		void *grown = reallocarray(to->items, 2 * total, sizeof(*to->items));

		if (!grown)
			return -ENOMEM;
		to->items = grown;
		to->capacity = 2 * total;
	}
	if (from->count)
		memcpy(to->items + to->count, from->items, from->count * sizeof(*to->items));
	to->count = total;
	to->slow |= from->slow;
	free(from->items);
	*from = (struct rls_links){0};
	return 0;
}

void rls_links_gather(struct rls_links *from, struct rls_links *to)
{
	if (move(from, to))
		rls_links_clear(from, 0);
}

void rls_links_clear(struct rls_links *links, size_t first)
{
	if (links->count > first) {
		rls_closing_run(links->items + first, links->count - first);
		links->count = first;
	}
	if (!links->count) {
		free(links->items);
		*links = (struct rls_links){0};
	}
}

void rls_links_leave(struct rls_links *links)
{
	if (links->slow && links->count) {
		if (links->count > MANY_SLOW_LINKS)
			rls_info("rlscope-bpf: this kernel removes probes one at a time: the "
				 "process "
				 "rlscope-detach continues to remove %zu",
				 links->count);
		close_through_heir(links);
		links->count = 0;
	}
	rls_links_clear(links, 0);
}

static int links_drop(struct rls_links *links, uint32_t first_id, bool returns_alone)
{
	struct rls_links dropped = {.slow = links->slow};
	size_t kept = 0;

	dropped.items = calloc(links->count + 1, sizeof(*dropped.items));
	if (!dropped.items)
		return -ENOMEM;
	dropped.capacity = links->count + 1;
	for (size_t i = 0; i < links->count; i++) {
		const struct rls_live_link *item = &links->items[i];

		if (item->first_id == first_id && (item->returns || !returns_alone))
			dropped.items[dropped.count++] = *item;
		else
			links->items[kept++] = *item;
	}
	links->count = kept;
	rls_links_leave(&dropped);
	return 0;
}

int rls_links_drop_returns(struct rls_links *links, uint32_t first_id)
{
	return links_drop(links, first_id, true);
}

int rls_links_drop(struct rls_links *links, uint32_t first_id)
{
	return links_drop(links, first_id, false);
}
