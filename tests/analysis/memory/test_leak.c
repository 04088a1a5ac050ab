/* Leaks: lines of which it is known whether they leak, block by block, and what is said of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/memory/leak.h"

#define MS 1000000ull
#define SECOND (1000 * MS)
#define END (60 * SECOND)
#define BLOCKS_MAX 200000
#define KEPT UINT64_MAX

/* Of one line: when a block was born and freed. */
struct block {
	uint64_t born_ns, freed_ns, bytes;
};

struct line {
	struct block blocks[BLOCKS_MAX];
	size_t count;
};

struct change {
	uint64_t time_ns;
	int64_t bytes;
};

static struct line line;

static void add_block(uint64_t born_ns, uint64_t lifetime_ns, uint64_t bytes)
{
	assert_true(line.count < BLOCKS_MAX);
	line.blocks[line.count++] =
		(struct block){born_ns, lifetime_ns == KEPT ? KEPT : born_ns + lifetime_ns, bytes};
}

static int order_changes(const void *left, const void *right)
{
	const struct change *a = left, *b = right;

	return (a->time_ns > b->time_ns) - (a->time_ns < b->time_ns);
}

static void make_curve(struct rls_live_curve *curve, uint64_t end_ns)
{
	static struct change changes[2 * BLOCKS_MAX];
	size_t count = 0;
	int64_t live = 0;

	for (size_t i = 0; i < line.count; i++) {
		const struct block *block = &line.blocks[i];

		changes[count++] = (struct change){block->born_ns, (int64_t)block->bytes};
		if (block->freed_ns <= end_ns)
			changes[count++] = (struct change){block->freed_ns, -(int64_t)block->bytes};
	}
	qsort(changes, count, sizeof(*changes), order_changes);
	for (size_t i = 0; i < count; i++) {
		live += changes[i].bytes;
		rls_live_curve_set(curve, changes[i].time_ns, live < 0 ? 0 : (uint64_t)live);
	}
	rls_live_curve_finish(curve, end_ns);
}

static struct rls_leak leak_until(uint64_t end_ns)
{
	struct rls_lifetimes lifetimes = {0};
	struct rls_live_curve curve = {0};
	struct rls_trials trials;

	make_curve(&curve, end_ns);
	for (size_t i = 0; i < line.count; i++) {
		const struct block *block = &line.blocks[i];

		if (block->freed_ns <= end_ns)
			lifetimes.freed[rls_lifetime_class(block->freed_ns - block->born_ns)]++;
		else
			lifetimes.live[rls_lifetime_class(end_ns - block->born_ns)]++;
	}
	trials = rls_lifetimes_trials(&lifetimes);
	assert_true(trials.survivors <= trials.observed && trials.observed <= line.count);
	return rls_leak_of(&curve, &trials);
}

static void check_leak(double bytes_per_s)
{
	struct rls_leak leak = leak_until(END);

	assert_true(leak.score >= RLS_LEAK_SCORE && leak.score <= 1);
	assert_true(fabs(leak.growth_bytes_per_s / bytes_per_s - 1) < 0.1);
	line.count = 0;
}

static void check_no_leak(void)
{
	struct rls_leak leak = leak_until(END);

	assert_true(leak.score >= 0 && leak.score < RLS_LEAK_SCORE);
	line.count = 0;
}

static void test_kept_tensors(void **unused)
{
	for (uint64_t t = 0; t < END; t += 50 * MS)
		add_block(t, KEPT, 262144);
	check_leak(20 * 262144);
}

/* losses.append(loss): the line's own temporaries are as many as what is kept, or many more. */
static void test_kept_among_temporaries(void **unused)
{
	for (uint64_t t = 0; t < END; t += 20 * MS) {
		add_block(t, KEPT, 64);
		for (int i = 0; i < 20; i++)
			add_block(t, (uint64_t)rand() % (15 * MS), 4096);
	}
	check_leak(50 * 64);
}

/* Each growth of the list is a block of as many bytes: it is the list that is kept. */
static void test_growing_list(void **unused)
{
	double room = 1000;

	for (uint64_t t = 0; t < END; t += MS) {
		double length = (double)t / MS;

		if (length < room)
			continue;
		add_block(t, KEPT, (uint64_t)(length / 8 * 8));
		room = length * 1.125;
	}
	assert_true(leak_until(END).score >= RLS_LEAK_SCORE);
	line.count = 0;
}

/* A few large blocks, now and then: eighteen are the least that is enough. */
static void test_rare_blocks(void **unused)
{
	for (uint64_t i = 0; i < 24; i++)
		add_block(i * END / 24, KEPT, 100 << 20);
	check_leak(24.0 * (100 << 20) / 60);
	for (uint64_t i = 0; i < 10; i++)
		add_block(i * END / 10, KEPT, 100 << 20);
	check_no_leak();
}

/* Imports took most of the time. */
static void test_late_beginning(void **unused)
{
	for (uint64_t t = 52 * SECOND; t < END; t += 20 * MS)
		add_block(t, KEPT, 10000);
	check_leak(50 * 10000);
	for (uint64_t t = 50 * SECOND; t < 53 * SECOND; t += 20 * MS)
		add_block(t, KEPT, 10000);
	check_no_leak();
	for (uint64_t t = END - 2 * SECOND; t < END; t += 20 * MS)
		add_block(t, KEPT, 10000);
	check_no_leak(); /* too little to say so */
}

/* Attached in mid-leak: half a minute is enough. */
static void test_short_recording(void **unused)
{
	for (uint64_t t = 0; t < 10 * SECOND; t += 100 * MS)
		add_block(t, KEPT, 1000000);
	assert_true(leak_until(10 * SECOND).score >= RLS_LEAK_SCORE);
	assert_true(fabs(leak_until(10 * SECOND).growth_bytes_per_s / 1e7 - 1) < 0.1);
	line.count = 0;
}

/* It is full after some share of the recording, and stays, or takes new for old. */
static void test_replay_buffers(void **unused)
{
	static const double full_at[] = {0.02, 0.1, 0.3, 0.5, 0.6, 0.75, 0.85, 0.9};

	for (size_t i = 0; i < sizeof(full_at) / sizeof(*full_at); i++) {
		uint64_t full_ns = (uint64_t)(full_at[i] * (double)END);

		for (uint64_t t = 0; t < full_ns; t += 5 * MS)
			add_block(t, KEPT, 8192);
		check_no_leak();
		for (uint64_t t = 0; t < END; t += 5 * MS)
			add_block(t, full_ns, 8192);
		check_no_leak();
	}
	add_block(0, KEPT, 1 << 30); /* all at once */
	check_no_leak();
}

static void test_temporaries(void **unused)
{
	for (uint64_t t = 0; t < END; t += 2 * MS)
		add_block(t, (uint64_t)rand() % (3 * MS), 2 << 20);
	check_no_leak();
	/* Of one step, which takes seconds. */
	for (uint64_t t = 0; t < END; t += 10 * MS)
		add_block(t, 4 * SECOND - t % (4 * SECOND), 1 << 20);
	check_no_leak();
}

/* Blocks whose lifetimes have no pattern, with no more of them in the end than in the middle. */
static void test_noise(void **unused)
{
	srand(3);
	for (int round = 0; round < 40; round++) {
		uint64_t life_ns = (MS << rand() % 13) + 1;

		for (uint64_t t = 0; t < END; t += 20 * MS)
			add_block(t, (uint64_t)rand() % life_ns, 1 + (uint64_t)rand() % 100000);
		check_no_leak();
	}
}

/* Half of them is let go: bytes accumulate, but no block of the line is sure to stay. */
static void test_likelihood(void **unused)
{
	struct rls_lifetimes lifetimes = {0};
	struct rls_trials trials;

	lifetimes.live[rls_lifetime_class(30 * SECOND)] = 40;
	lifetimes.freed[rls_lifetime_class(2 * SECOND)] = 10;
	lifetimes.freed[rls_lifetime_class(2 * MS)] = 1000;
	trials = rls_lifetimes_trials(&lifetimes);
	assert_int_equal(trials.survivors, 40);
	assert_int_equal(trials.observed, 50);
	/* Those that were born late are no survivors. */
	lifetimes.freed[rls_lifetime_class(20 * SECOND)] = 10;
	assert_int_equal(rls_lifetimes_trials(&lifetimes).survivors, 0);
	assert_int_equal(rls_lifetimes_trials(&lifetimes).observed, 20);
	memset(&lifetimes, 0, sizeof(lifetimes));
	assert_int_equal(rls_lifetimes_trials(&lifetimes).observed, 0);
}

static void test_median(void **unused)
{
	struct rls_lifetimes lifetimes = {0}, more = {0};
	static const uint64_t ages[] = {900, 1024, 5000, MS, 7 * SECOND, 3600 * SECOND};

	assert_int_equal(rls_lifetimes_median_ns(&lifetimes), 0);
	for (size_t i = 0; i < sizeof(ages) / sizeof(*ages); i++) {
		struct rls_lifetimes one = {0};
		double median;

		one.freed[rls_lifetime_class(ages[i])] = 1 + (uint64_t)rand() % 100;
		median = (double)rls_lifetimes_median_ns(&one);
		assert_true(fabs(median / (double)ages[i] - 1) <= (i ? 0.126 : 1));
	}
	lifetimes.freed[rls_lifetime_class(MS)] = 100;
	lifetimes.freed[rls_lifetime_class(SECOND)] = 90;
	assert_true(rls_lifetimes_median_ns(&lifetimes) < 2 * MS);
	more.freed[rls_lifetime_class(SECOND)] = 20;
	rls_lifetimes_add(&lifetimes, &more);
	assert_true(rls_lifetimes_median_ns(&lifetimes) > 800 * MS);
	assert_int_equal(rls_lifetime_class(0), 0);
	assert_int_equal(rls_lifetime_class(UINT64_MAX), RLS_LIFETIME_CLASSES - 1);
	for (uint64_t age = 1; age < UINT64_MAX / 3; age += age / 8 + 1)
		assert_true(rls_lifetime_class(age) <= rls_lifetime_class(age + age / 8 + 1));
}

static void test_limit(void **unused)
{
	assert_true(rls_limit_in_s(100, 300, 20) == 10);
	assert_true(rls_limit_in_s(300, 300, 20) == 0);
	assert_true(isnan(rls_limit_in_s(100, 300, 0)));
	assert_true(isnan(rls_limit_in_s(100, 300, -5)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kept_tensors),
		cmocka_unit_test(test_kept_among_temporaries),
		cmocka_unit_test(test_growing_list),
		cmocka_unit_test(test_rare_blocks),
		cmocka_unit_test(test_short_recording),
		cmocka_unit_test(test_replay_buffers),
		cmocka_unit_test(test_temporaries),
		cmocka_unit_test(test_noise),
		cmocka_unit_test(test_likelihood),
		cmocka_unit_test(test_median),
		cmocka_unit_test(test_late_beginning),
		cmocka_unit_test(test_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
