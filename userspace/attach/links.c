#include "userspace/attach/links.h"
#include "bpf/wire/cookie.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/libbpf.h>

#include "analysis/base/cleanup.h"
#include "userspace/attach/closing.h"
#include "userspace/attach/cookie.h"
#include "userspace/base/log.h"

#define MANY_SLOW_LINKS 50
#define OTHER_DESCRIPTORS 200

int rls_links_add(struct rls_links *links, struct bpf_link *link)
{
	if (!link)
		return -errno;
	if (links->count == links->capacity) {
		size_t capacity = links->capacity ? 2 * links->capacity : 64;
		void *grown = reallocarray(links->items, capacity, sizeof(*links->items));

		if (!grown) {
			bpf_link__destroy(link);
			return -ENOMEM;
		}
		links->items = grown;
		links->capacity = capacity;
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

/* One refused site fails the whole link: halve until it is alone, and leave it out. */
static size_t attach_multi_halving(struct rls_links *links, const struct rls_link_request *request,
				   const struct batch *batch, bool returns)
{
	struct batch left = *batch, right = *batch;

	if (!batch->count)
		return 0;
	if (!attach_multi(links, request, batch, returns))
		return batch->count;
	if (batch->count == 1)
		return 0;
	left.count = batch->count / 2;
	right.offsets += left.count;
	right.cookies += left.count;
	right.count -= left.count;
	return attach_multi_halving(links, request, &left, returns) +
	       attach_multi_halving(links, request, &right, returns);
}

void rls_links_allow_descriptors(size_t more)
{
	static size_t allowed = OTHER_DESCRIPTORS;
	struct rlimit limit, wanted;
	size_t count;

	allowed += more;
	count = allowed;
	wanted = (struct rlimit){count, count};
	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur >= count)
		return;
	if (limit.rlim_max > count)
		wanted.rlim_max = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &wanted))
		rls_warning("at most %ju files can be open, too few for these probes: raise "
			    "`ulimit -n`",
			    (uintmax_t)limit.rlim_cur);
}

static size_t attach_perf(struct rls_links *links, const struct rls_link_request *request,
			  const struct batch *batch, bool returns)
{
	const struct bpf_program *program = returns ? request->on_return : request->on_site;
	size_t attached = 0;

	/* A perf event and its link. */
	rls_links_allow_descriptors(2 * batch->count);
	for (size_t i = 0; i < batch->count; i++) {
		LIBBPF_OPTS(bpf_uprobe_opts, options, .retprobe = returns,
			    .bpf_cookie = batch->cookies[i]);

		links->slow = true;
		if (!add_probes(links, request, returns,
				bpf_program__attach_uprobe_opts(program, -1, request->path,
								batch->offsets[i], &options)))
			attached++;
	}
	return attached;
}

static int attach_batch(struct rls_links *links, const struct rls_link_request *request,
			bool returns, size_t *wanted, size_t *attached)
{
	__attribute__((cleanup(batch_clear))) struct batch batch = {0};
	int r = batch_fill(&batch, request, returns);

	if (r)
		return r;
	*wanted = batch.count;
	*attached = request->multi ? attach_multi_halving(links, request, &batch, returns)
				   : attach_perf(links, request, &batch, returns);
	return 0;
}

int rls_links_attach(struct rls_links *links, const struct rls_link_request *request,
		     size_t *attached)
{
	size_t wanted = 0, live = 0;
	int r;

	r = attach_batch(links, request, true, &wanted, &live);
	if (!r && live < wanted)
		rls_warning("%zu of %zu return probes refused by the kernel in %s", wanted - live,
			    wanted, request->path);
	if (!r)
		r = attach_batch(links, request, false, &wanted, &live);
	if (r)
		return rls_error_r(r, "cannot attach to %s: %s", request->path, strerror(-r));
	if (live < wanted)
		rls_warning("%zu of %zu probes refused by the kernel in %s", wanted - live, wanted,
			    request->path);
	*attached = live;
	return wanted && !live ? -EINVAL : 0;
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
