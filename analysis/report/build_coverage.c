/* Coverage: warnings of a report about what ran and was not traced.
 *
 * A library with a role into which no call was seen, a library with a role that ran while the
 * trace said python, and a library without a role in which much ran. All of them are
 * named; shares are those of the running samples of the whole job. And for each process, code
 * that ran in another category than the trace said. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/cleanup.h"
#include "analysis/event/bounded.h"
#include "analysis/event/sample_kind.h"
#include "analysis/report/builder.h"
#include "analysis/report/library_names.h"

#define LARGE_SHARE 0.1
#define SMALL_SHARE 0.02
#define BUSY_SHARE 0.05 /* of the recording, that a busy job runs at least */
#define SAMPLES_MIN 20 /* fewer say little */
#define NAMED_MAX 3

/* A library in all processes of the job. */
struct share {
	const char *path;
	const char *role;
	uint32_t sites;
	uint64_t samples;
	double ns, python_ns, unknown_ns, native_ns;
};

struct coverage {
	struct rls_builder *b;
	struct share *shares; /* by path */
	size_t count;
	double running_ns; /* by samples, the interpreter included */
	double category_ns[RLS_CATEGORY_MAX]; /* the same, by what the trace said */
	bool seen[RLS_CATEGORY_MAX]; /* traced, ever */
};

/* --- what there is ------------------------------------------------------------------- */

static int by_path(const void *a, const void *b)
{
	const struct share *left = a, *right = b;

	return strcmp(left->path, right->path);
}

/* Makes those of one path one. */
static void fold(struct coverage *coverage)
{
	size_t kept = 0;

	qsort(coverage->shares, coverage->count, sizeof(*coverage->shares), by_path);
	for (size_t i = 0; i < coverage->count; i++) {
		struct share *share = &coverage->shares[i];
		struct share *into = kept ? &coverage->shares[kept - 1] : NULL;

		if (!into || strcmp(into->path, share->path)) {
			coverage->shares[kept++] = *share;
			continue;
		}
		if (!*into->role)
			into->role = share->role;
		if (into->sites < share->sites)
			into->sites = share->sites;
		into->samples += share->samples;
		into->ns += share->ns;
		into->python_ns += share->python_ns;
		into->unknown_ns += share->unknown_ns;
		into->native_ns += share->native_ns;
	}
	coverage->count = kept;
}

/* Those that are mapped and have a role, and those with samples. */
static void collect(struct coverage *coverage)
{
	const struct rls_report *report = coverage->b->report;
	size_t room = report->sampled_library_count;

	for (size_t i = 0; i < report->process_count; i++)
		room += report->processes[i].library_count;
	coverage->shares = calloc(room + 1, sizeof(*coverage->shares));
	if (!coverage->shares) {
		coverage->b->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < report->sampled_library_count; i++) {
		const struct rls_sampled_library_row *row = &report->sampled_libraries[i];

		coverage->shares[coverage->count++] = (struct share){
			.path = row->path,
			.role = row->role,
			.samples = row->samples,
			.ns = (double)row->ns,
			.python_ns = (double)row->python_ns,
			.unknown_ns = (double)row->unknown_ns,
			.native_ns = (double)row->native_ns,
		};
	}
	for (size_t i = 0; i < report->process_count; i++) {
		const struct rls_process_entry *process = &report->processes[i];

		for (size_t l = 0; l < process->library_count; l++)
			coverage->shares[coverage->count++] = (struct share){
				.path = process->libraries[l].path,
				.role = process->libraries[l].role,
				.sites = process->libraries[l].sites,
			};
	}
	fold(coverage);
}

static void measure(struct coverage *coverage)
{
	const struct rls_report *report = coverage->b->report;

	for (size_t i = 0; i < report->sample_count; i++) {
		const struct rls_sample_row *row = &report->samples[i];

		if (rls_sample_kind_waits(row->kind))
			continue;
		coverage->running_ns += (double)row->ns;
		coverage->category_ns[row->category] += (double)row->ns;
	}
	for (size_t i = 0; i < report->transition_count; i++) {
		if (!report->transitions[i].count)
			continue;
		coverage->seen[report->transitions[i].from] = true;
		coverage->seen[report->transitions[i].to] = true;
	}
	/* A call that has no beginning in the trace is no transition. */
	for (size_t i = 0; i < report->breakdown_count; i++) {
		const struct rls_breakdown_row *row = &report->breakdown[i];

		if (row->method == RLS_METHOD_TRACED && row->wall_ns &&
		    row->resource != RLS_RESOURCE_GPU)
			coverage->seen[row->category] = true;
	}
}

/* By samples, and where there are none by what the threads ran. */
static bool is_busy(const struct coverage *coverage)
{
	const struct rls_report *report = coverage->b->report;
	double ran_ns = coverage->running_ns;
	uint64_t on_cpu_ns = 0;

	for (size_t i = 0; i < report->thread_count; i++)
		rls_add_bounded(&on_cpu_ns, report->threads[i].on_cpu_ns);
	if (ran_ns < (double)on_cpu_ns)
		ran_ns = (double)on_cpu_ns;
	return ran_ns > 0 && ran_ns >= BUSY_SHARE * (double)(report->end_ns - report->start_ns);
}

/* --- no call into it was seen ---------------------------------------------------------- */

/* What ran most; then what has the most sites. */
static int by_weight(const void *a, const void *b)
{
	const struct share *left = *(const struct share *const *)a;
	const struct share *right = *(const struct share *const *)b;

	if (left->ns != right->ns)
		return left->ns < right->ns ? 1 : -1;
	if (left->sites != right->sites)
		return left->sites < right->sites ? 1 : -1;
	return strcmp(left->path, right->path);
}

static void name_some(const struct share *const *unseen, size_t count, char *out, size_t size)
{
	size_t used = 0;

	out[0] = '\0';
	for (size_t i = 0; i < count && i < NAMED_MAX && used < size; i++)
		used += (size_t)snprintf(out + used, size - used, "%s%s (%u sites)", i ? ", " : "",
					 rls_library_base(unseen[i]->path), unseen[i]->sites);
	if (count > NAMED_MAX && used < size)
		snprintf(out + used, size - used, " and %zu more", count - NAMED_MAX);
}

static void warn_unseen_role(struct coverage *coverage, enum rls_category category)
{
	_cleanup_free_ const struct share **unseen = calloc(coverage->count + 1, sizeof(*unseen));
	char names[NAMED_MAX * 300];
	double ns = 0;
	size_t count = 0;

	if (!unseen) {
		coverage->b->err = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < coverage->count; i++) {
		enum rls_category own;

		if (!rls_report_role_category(coverage->shares[i].role, &own) || own != category)
			continue;
		ns += coverage->shares[i].ns;
		unseen[count++] = &coverage->shares[i];
	}
	/* GPU libraries are mapped where there is no GPU, and native ones because something imports them. */
	if (!count || ((category == RLS_CATEGORY_CUDA_API || category == RLS_CATEGORY_NATIVE) &&
		       ns < LARGE_SHARE * coverage->running_ns))
		return;
	qsort(unseen, count, sizeof(*unseen), by_weight);
	name_some(unseen, count, names, sizeof(names));
	if (ns > 0)
		coverage->b->err = rls_report_warn(coverage->b->report,
						   "no call into a library of the role %s was "
						   "seen, though %.0f%% of the samples "
						   "of running code are in such: %s",
						   rls_category_name(category),
						   100 * ns / coverage->running_ns, names);
	else
		coverage->b->err = rls_report_warn(coverage->b->report,
						   "no call into a library of the role %s was "
						   "seen, though such are loaded: %s",
						   rls_category_name(category), names);
}

/* --- it ran while the trace said python ----------------------------------------------------- */

static void warn_of_role(struct coverage *coverage, const struct share *share,
			 enum rls_category category)
{
	double python_ns = coverage->category_ns[RLS_CATEGORY_PYTHON];

	if (!coverage->seen[category] || !share->ns ||
	    (double)share->samples * share->python_ns < SAMPLES_MIN * share->ns ||
	    share->python_ns < SMALL_SHARE * coverage->running_ns ||
	    share->python_ns < LARGE_SHARE * python_ns)
		return;
	coverage->b->err = rls_report_warn(
		coverage->b->report,
		"%.0f%% of the samples of what the trace says is python are in %s (%s, %u sites): "
		"not all calls into it are seen",
		100 * share->python_ns / python_ns, rls_library_base(share->path),
		rls_category_name(category), share->sites);
}

/* --- it has no role ---------------------------------------------------------------------- */

/* Of which samples alone tell. */
static double untraced_ns(const struct coverage *coverage, const struct share *share)
{
	return share->python_ns + share->unknown_ns +
	       (coverage->seen[RLS_CATEGORY_NATIVE] ? 0 : share->native_ns);
}

/* Extension modules of one package, or one library: those of a package are called through one
 * another, and are traced together. */
struct suggestion {
	const struct share *largest;
	double ns;
	uint64_t samples;
	size_t count;
};

static bool is_together(const struct share *a, const struct share *b)
{
	size_t length = rls_library_package(a->path);

	return length && length == rls_library_package(b->path) &&
	       !strncmp(a->path, b->path, length);
}

static void write_suggestion(struct coverage *coverage, const struct suggestion *suggestion)
{
	static const struct {
		const char *before, *after;
		bool names;
	} advice[] = {
		[RLS_LIBRARY_MODULE] = {"--native '", "' traces it", true},
		[RLS_LIBRARY_PLAIN] = {"--native '",
				       "' traces it where Python calls it, else --native with the "
				       "module that calls it",
				       true},
		[RLS_LIBRARY_FINE] = {"its calls are too short for probes, ",
				      "sampled_libraries and functions have its time", false},
		[RLS_LIBRARY_COMPILED] = {"", "--native with the module that starts it traces it",
					  false},
	};
	const char *path = suggestion->largest->path;
	enum rls_library_kind kind = rls_library_kind_of(path);
	char glob[RLS_LIBRARY_GLOB_BYTES] = "", more[64] = "";

	if (advice[kind].names)
		rls_library_glob(path, suggestion->count > 1, glob);
	if (suggestion->count > 1)
		snprintf(more, sizeof(more), " and %zu more of its package", suggestion->count - 1);
	coverage->b->err =
		rls_report_warn(coverage->b->report,
				"%.0f%% of the samples of running code are in %s%s, without a "
				"role: only samples tell its time; %s%s%s",
				100 * suggestion->ns / coverage->running_ns,
				kind == RLS_LIBRARY_COMPILED ? "code that the process compiled"
							     : rls_library_base(path),
				more, advice[kind].before, glob, advice[kind].after);
}

/* Shares are sorted by path, so those of a package are neighbours. Returns how many they are. */
static size_t suggest(struct coverage *coverage, size_t first)
{
	struct suggestion suggestion = {0};
	size_t i = first;

	for (; i < coverage->count &&
	       (i == first || is_together(&coverage->shares[first], &coverage->shares[i]));
	     i++) {
		const struct share *share = &coverage->shares[i];

		if (*share->role || rls_library_kind_of(share->path) == RLS_LIBRARY_RUNTIME ||
		    !share->ns)
			continue;
		if (!suggestion.largest ||
		    untraced_ns(coverage, share) > untraced_ns(coverage, suggestion.largest))
			suggestion.largest = share;
		suggestion.ns += untraced_ns(coverage, share);
		suggestion.samples += share->samples;
		suggestion.count++;
	}
	if (suggestion.samples >= SAMPLES_MIN && suggestion.ns > LARGE_SHARE * coverage->running_ns)
		write_suggestion(coverage, &suggestion);
	return i - first;
}

static void suggest_all(struct coverage *coverage)
{
	for (size_t i = 0; i < coverage->count && !coverage->b->err;)
		i += suggest(coverage, i);
}

void rls_build_coverage(struct rls_builder *b)
{
	struct coverage coverage = {.b = b};

	if (!b->err)
		collect(&coverage);
	if (!b->err)
		measure(&coverage);
	for (int i = RLS_CATEGORY_SIMULATOR; i < RLS_CATEGORY_MAX && !b->err && is_busy(&coverage);
	     i++)
		if (!coverage.seen[i])
			warn_unseen_role(&coverage, i);
	for (size_t i = 0; i < coverage.count && !b->err; i++) {
		enum rls_category category;

		if (rls_report_role_category(coverage.shares[i].role, &category))
			warn_of_role(&coverage, &coverage.shares[i], category);
	}
	suggest_all(&coverage);
	free(coverage.shares);
}

/* --- by process: code that the trace did not see entered -------------------------------- */

/* Of what ran while everything was traced. In a job whose functions are all probed it is below a
 * hundredth, where a library was loaded late a few. */
#define UNSEEN_MAX 0.1

struct unseen {
	uint64_t all_ns;
	uint64_t ns; /* in a library with a role */
	double variance_ns2; /* of ns */
};

/* Python code while nothing is known yet is no call that was missed. */
static bool is_missed(const struct rls_sample_tally *tally)
{
	return rls_build_is_unseen(tally) && (tally->category != RLS_CATEGORY_UNKNOWN ||
					      (tally->kind != RLS_SAMPLE_PYTHON && tally->code &&
					       tally->code != RLS_CATEGORY_PYTHON));
}

static struct unseen unseen_of(const struct rls_builder *b, const struct rls_process *process)
{
	struct unseen found = {0};

	for (const struct rls_sample_tally *t = b->timeline->samples.tallies; t; t = t->next) {
		if (t->process != process || t->inferred || rls_sample_kind_waits(t->kind))
			continue;
		rls_add_bounded(&found.all_ns, t->sum.ns);
		if (!is_missed(t))
			continue;
		rls_add_bounded(&found.ns, t->sum.ns);
		found.variance_ns2 += t->sum.variance_ns2;
	}
	return found;
}

static void warn_of_unseen(struct rls_builder *b, const struct rls_process *process)
{
	struct unseen found = unseen_of(b, process);
	double limit_ns = UNSEEN_MAX * (double)found.all_ns;
	double error_ns = (double)rls_interval_95_ns(found.variance_ns2, 0);

	if (!found.ns || (double)found.ns <= limit_ns ||
	    (double)found.ns - error_ns <= limit_ns / 2 || b->err)
		return;
	b->err = rls_report_warn(
		b->report,
		"process %" PRIu32 ": %.0f %% of the samples that were taken while everything was "
		"traced lie in code that the trace did not see entered (unseen): the time of such "
		"calls counts as their caller's, and they are in no count",
		process->pid, 100 * (double)found.ns / (double)found.all_ns);
}

void rls_build_unseen(struct rls_builder *b)
{
	for (const struct rls_process *p = b->timeline->processes; p && !b->err; p = p->next)
		warn_of_unseen(b, p);
}
