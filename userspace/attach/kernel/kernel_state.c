#include "userspace/attach/kernel/kernel_state.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"

#define SITES_AT_ONCE 1024

/* Perf events take so long that the target would be kept waiting. */
void rls_kernel_begin_switching(const struct rls_kernel *kernel)
{
	if (kernel->switching.begin && kernel->way == RLS_ATTACH_MULTI)
		kernel->switching.begin(kernel->switching.context);
}

void rls_kernel_end_switching(const struct rls_kernel *kernel)
{
	if (kernel->switching.end)
		kernel->switching.end(kernel->switching.context);
}

int rls_kernel_attach_one(struct rls_kernel *kernel, struct rls_links *links,
			  const struct bpf_program *multi_program,
			  const struct bpf_program *perf_program, const char *path,
			  unsigned long offset, unsigned long ref_counter, __u64 cookie)
{
	LIBBPF_OPTS(bpf_uprobe_multi_opts, multi, .offsets = &offset, .cookies = &cookie, .cnt = 1,
		    .ref_ctr_offsets = ref_counter ? &ref_counter : NULL);
	LIBBPF_OPTS(bpf_uprobe_opts, perf, .ref_ctr_offset = ref_counter, .bpf_cookie = cookie);

	if (kernel->way == RLS_ATTACH_MULTI)
		return rls_links_add(links, bpf_program__attach_uprobe_multi(multi_program, -1,
									     path, NULL, &multi));
	return rls_links_add(
		links, bpf_program__attach_uprobe_opts(perf_program, -1, path, offset, &perf));
}

#define ITERATOR_BYTES 65536 /* as much as an iterator may write at once, and more */

static int read_all(int fd, char **text, size_t *bytes)
{
	for (;;) {
		char *larger = realloc(*text, *bytes + ITERATOR_BYTES);
		ssize_t got;

		if (!larger)
			return -ENOMEM;
		*text = larger;
		got = read(fd, *text + *bytes, ITERATOR_BYTES);
		if (got <= 0)
			return got && errno != EINTR && errno != EAGAIN ? -errno : 0;
		*bytes += (size_t)got;
	}
}

int rls_kernel_read_iterator(struct bpf_program *program, char **text, size_t *bytes)
{
	struct bpf_link *link = bpf_program__attach_iter(program, NULL);
	int fd, r;

	if (!link)
		return -errno;
	fd = bpf_iter_create(bpf_link__fd(link));
	r = fd < 0 ? fd : read_all(fd, text, bytes);
	if (fd >= 0)
		close(fd);
	bpf_link__destroy(link);
	return r;
}

int rls_kernel_iterate(struct bpf_program *program)
{
	_cleanup_free_ char *text = NULL;
	size_t bytes = 0;

	return rls_kernel_read_iterator(program, &text, &bytes);
}

/* each: of `count` sites, on each CPU so many words. */
static void add_up(const uint64_t *each, size_t count, size_t cpus, size_t words, uint64_t *sums)
{
	for (size_t i = 0; i < count * cpus * words; i++)
		sums[i / (cpus * words) * words + i % words] += each[i];
}

int rls_kernel_sum_sites(const struct bpf_map *map, size_t words, uint64_t *sums, size_t count)
{
	int possible = libbpf_num_possible_cpus();
	size_t cpus = possible > 0 ? (size_t)possible : 0;
	_cleanup_free_ uint64_t *each = calloc(SITES_AT_ONCE * cpus * words, sizeof(*each));
	_cleanup_free_ uint32_t *ids = calloc(SITES_AT_ONCE, sizeof(*ids));
	uint32_t position = 0;
	int r = each && ids ? 0 : -ENOMEM;

	if (!cpus) /* the kernel writes as much as there are */
		return possible ? possible : -EINVAL;
	memset(sums, 0, count * words * sizeof(*sums));
	for (size_t done = 0; !r && done < count;) {
		size_t left = count - done;
		uint32_t taken = left < SITES_AT_ONCE ? (uint32_t)left : SITES_AT_ONCE;

		r = bpf_map_lookup_batch(bpf_map__fd(map), done ? &position : NULL, &position, ids,
					 each, &taken, NULL);
		if (r && r != -ENOENT) /* that is the map's end */
			return r;
		if (!taken)
			break;
		add_up(each, taken, cpus, words, sums + done * words);
		done += taken;
	}
	return r == -ENOENT ? 0 : r;
}
