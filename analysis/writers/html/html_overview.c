#include "analysis/writers/html/html_overview.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/writers/table/json_string.h"

struct run {
	uint64_t bucket;
	uint64_t buckets;
	size_t key;
	uint64_t wall_ns;
	uint64_t gpu_ns;
};

/* --- keys --------------------------------------------------------------------------- */

static int order_parts(const struct rls_overview_part *a, const struct rls_overview_part *b)
{
	int order = strcmp(a->phase, b->phase);

	if (!order)
		order = !a->operation - !b->operation;
	if (!order && a->operation)
		order = strcmp(a->operation, b->operation);
	return order ? order : (int)a->category - (int)b->category;
}

static int by_key(const void *left, const void *right)
{
	return order_parts(*(const struct rls_overview_part *const *)left,
			   *(const struct rls_overview_part *const *)right);
}

/* One part for each key, sorted. 0 and *out, which the caller frees, or -ENOMEM. */
static int find_keys(const struct rls_overview_entry *entry, const struct rls_overview_part ***out,
		     size_t *count)
{
	const struct rls_overview_part **keys = calloc(entry->part_count + 1, sizeof(*keys));
	size_t kept = 0;

	if (!keys)
		return -ENOMEM;
	for (size_t i = 0; i < entry->part_count; i++)
		keys[i] = &entry->parts[i];
	qsort(keys, entry->part_count, sizeof(*keys), by_key);
	for (size_t i = 0; i < entry->part_count; i++) {
		if (!kept || order_parts(keys[kept - 1], keys[i]))
			keys[kept++] = keys[i];
	}
	*out = keys;
	*count = kept;
	return 0;
}

static size_t key_of(const struct rls_overview_part *const *keys, size_t count,
		     const struct rls_overview_part *part)
{
	const struct rls_overview_part *const *found =
		bsearch(&part, keys, count, sizeof(*keys), by_key);

	return (size_t)(found - keys);
}

static void print_keys(FILE *out, const struct rls_overview_part *const *keys, size_t count)
{
	fputs("\"keys\": [", out);
	for (size_t i = 0; i < count; i++) {
		fputs(i ? ", [" : "[", out);
		rls_json_print_string(out, keys[i]->phase);
		fputs(", ", out);
		if (keys[i]->operation)
			rls_json_print_string(out, keys[i]->operation);
		else
			fputs("null", out);
		fprintf(out, ", \"%s\"]", rls_category_name(keys[i]->category));
	}
	fputs("],\n", out);
}

/* --- runs --------------------------------------------------------------------------- */

/* All of its time is the key's, with the GPU busy for all of it or for none. */
static bool is_even(const struct run *run, unsigned int shift)
{
	return run->wall_ns == run->buckets << shift &&
	       (!run->gpu_ns || run->gpu_ns == run->wall_ns);
}

static bool goes_on(const struct run *run, const struct run *next, unsigned int shift)
{
	return run->key == next->key && run->bucket + run->buckets == next->bucket &&
	       !run->gpu_ns == !next->gpu_ns && is_even(run, shift) && is_even(next, shift);
}

static void print_run(FILE *out, const struct run *run, uint64_t *last_bucket)
{
	fprintf(out, "%" PRIu64 ",%" PRIu64 ",%zu,%" PRIu64 ",%" PRIu64, run->bucket - *last_bucket,
		run->buckets, run->key, run->wall_ns, run->gpu_ns);
	*last_bucket = run->bucket;
}

static void print_runs(FILE *out, const struct rls_overview_entry *entry,
		       const struct rls_overview_part *const *keys, size_t key_count)
{
	uint64_t last_bucket = entry->parts[0].bucket;
	struct run run = {0};

	fputs("\"runs\": [", out);
	for (size_t i = 0; i < entry->part_count; i++) {
		const struct rls_overview_part *part = &entry->parts[i];
		const struct run next = {part->bucket, 1, key_of(keys, key_count, part),
					 part->wall_ns, part->gpu_ns};

		if (run.buckets && goes_on(&run, &next, entry->shift)) {
			run.buckets++;
			run.wall_ns += next.wall_ns;
			run.gpu_ns += next.gpu_ns;
			continue;
		}
		if (run.buckets) {
			print_run(out, &run, &last_bucket);
			putc(',', out);
		}
		run = next;
	}
	print_run(out, &run, &last_bucket);
	fputs("]}", out);
}

static int print_thread(FILE *out, const struct rls_overview_entry *entry)
{
	_cleanup_free_ const struct rls_overview_part **keys = NULL;
	size_t count;
	int err = find_keys(entry, &keys, &count);

	if (err)
		return err;
	fprintf(out, "{\"pid\": %" PRIu32 ", \"tid\": %" PRIu32 ", \"shift\": %u", entry->pid,
		entry->tid, entry->shift);
	fprintf(out, ", \"first\": %" PRIu64 ",\n", entry->parts[0].bucket);
	print_keys(out, keys, count);
	print_runs(out, entry, keys, count);
	return 0;
}

int rls_html_overview_write(const struct rls_report *report, FILE *out)
{
	int err = 0;

	fprintf(out, "{\"start_ns\": %" PRIu64 ", \"end_ns\": %" PRIu64 ", \"threads\": [",
		report->start_ns, report->end_ns);
	for (size_t i = 0; !err && i < report->overview_count; i++) {
		fputs(i ? ",\n" : "\n", out);
		err = print_thread(out, &report->overviews[i]);
	}
	fputs("]}", out);
	return err;
}
