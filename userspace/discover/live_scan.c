#include "userspace/discover/live_scan.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/process/living_thread.h"

#define PAGE_BYTES 4096UL
#define BLOCK_BYTES (1UL << 18)
/* proc/PID/pagemap: bits 63 (present) and 62 (swapped). */
#define PAGE_IS_THERE (3ULL << 62)
#define PAGEMAP_BATCH 4096

struct region {
	uint64_t start, end;
	bool of_target;
};

struct live_scan {
	struct rls_scan *scan;
	const struct rls_space *space;
	int pagemap;
	uint64_t left_bytes, cut_bytes;
	uint8_t *block;
};

static bool overlaps_target(const struct rls_scan *scan, const struct rls_mapping *mapping)
{
	for (size_t i = 0; i < scan->target_count; i++)
		if (mapping->start < scan->targets[i].end && mapping->end > scan->targets[i].begin)
			return true;
	return false;
}

static bool is_wanted(const struct rls_mapping *mapping, enum rls_live_scan_extent extent,
		      bool of_target)
{
	if (!mapping->readable || mapping->shared || mapping->executable)
		return false;
	/* Of the targets, relocated data that was then made read-only is scanned too. */
	if (of_target)
		return true;
	if (extent == RLS_LIVE_SCAN_TARGETS || !mapping->writable)
		return false;
	return strncmp(mapping->path, "[stack", 6) && strncmp(mapping->path, "[v", 2) &&
	       strncmp(mapping->path, "/dev/", 5);
}

static int compare_regions(const void *a, const void *b)
{
	const struct region *left = a, *right = b;
	uint64_t left_bytes = left->end - left->start, right_bytes = right->end - right->start;

	if (left->of_target != right->of_target)
		return left->of_target ? -1 : 1;
	return (left_bytes > right_bytes) - (left_bytes < right_bytes);
}

static size_t choose_regions(const struct rls_scan *scan, enum rls_live_scan_extent extent,
			     struct region *regions)
{
	size_t count = 0;

	for (size_t i = 0; i < scan->mappings->count; i++) {
		const struct rls_mapping *mapping = &scan->mappings->entries[i];
		bool of_target = overlaps_target(scan, mapping);

		if (is_wanted(mapping, extent, of_target))
			regions[count++] = (struct region){mapping->start, mapping->end, of_target};
	}
	qsort(regions, count, sizeof(*regions), compare_regions);
	return count;
}

/* Pages that stand in a row, block by block, each block beginning a little before the end
 * of the one before. */
static void scan_run(struct live_scan *live, uint64_t start, uint64_t end)
{
	if (end - start > live->left_bytes) {
		live->cut_bytes += end - start - live->left_bytes;
		end = start + live->left_bytes;
	}
	live->left_bytes -= end - start;
	while (start < end) {
		size_t length = end - start < BLOCK_BYTES ? end - start : BLOCK_BYTES;
		size_t got = live->space->read(live->space, start, live->block, length);

		rls_scan_block(live->scan, start, live->block, got);
		if (got < length || start + got >= end)
			return;
		start += got - RLS_SCAN_OVERLAP_BYTES;
	}
}

static void scan_region(struct live_scan *live, const struct region *region)
{
	static _Thread_local uint64_t pages[PAGEMAP_BATCH];
	uint64_t run_start = region->start;
	bool in_run = false;

	for (uint64_t at = region->start; at < region->end;) {
		size_t wanted = (region->end - at) / PAGE_BYTES;
		ssize_t got;

		if (wanted > PAGEMAP_BATCH)
			wanted = PAGEMAP_BATCH;
		got = pread(live->pagemap, pages, wanted * 8, at / PAGE_BYTES * 8);
		if (got < 8) {
			/* No pagemap: whatever is left may be there. */
			scan_run(live, in_run ? run_start : at, region->end);
			return;
		}
		for (size_t i = 0; i < (size_t)got / 8; i++, at += PAGE_BYTES) {
			bool there = pages[i] & PAGE_IS_THERE;

			if (there && !in_run)
				run_start = at;
			else if (!there && in_run)
				scan_run(live, run_start, at);
			in_run = there;
		}
	}
	if (in_run)
		scan_run(live, run_start, region->end);
}

int rls_live_scan(struct rls_scan *scan, const struct rls_live_space *space,
		  enum rls_live_scan_extent extent, uint64_t limit_bytes, uint64_t *cut_bytes)
{
	_cleanup_free_ struct region *regions = calloc(scan->mappings->count + 1, sizeof(*regions));
	_cleanup_free_ uint8_t *block = malloc(BLOCK_BYTES);
	_cleanup_close_ int pagemap = -1;
	struct live_scan live = {
		.scan = scan, .space = &space->space, .left_bytes = limit_bytes, .block = block};
	char path[RLS_PROCESS_PATH_BYTES];
	size_t count;

	if (!regions || !block)
		return -ENOMEM;
	rls_process_path(path, space->pid, "pagemap");
	pagemap = open(path, O_RDONLY | O_CLOEXEC);
	live.pagemap = pagemap;
	count = choose_regions(scan, extent, regions);
	for (size_t i = 0; i < count; i++)
		scan_region(&live, &regions[i]);
	*cut_bytes = live.cut_bytes;
	return 0;
}
