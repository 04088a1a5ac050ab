/* The order of events, the checks on them, and the store that sorts them. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "analysis/event/event_fields.h"
#include "analysis/event/event_order.h"
#include "analysis/event/memory_source.h"
#include "event_maker.h"

#define EVENTS 600

static void orders_an_instant_by_meaning(void **state)
{
	static const enum rls_event_kind order[] = {
		RLS_EVENT_HOST,        RLS_EVENT_CALIBRATION, RLS_EVENT_OPERATION_RULE,
		RLS_EVENT_PROCESS,     RLS_EVENT_LIBRARY,     RLS_EVENT_THREAD,
		RLS_EVENT_CUDA_CALL,   RLS_EVENT_PHASE,       RLS_EVENT_WINDOW,
		RLS_EVENT_OPERATION,   RLS_EVENT_CATEGORY,    RLS_EVENT_LAYER,
		RLS_EVENT_HITS,        RLS_EVENT_OFF_CPU,     RLS_EVENT_SHARE,
		RLS_EVENT_LAUNCH,      RLS_EVENT_GPU,         RLS_EVENT_GPU_COPY,
		RLS_EVENT_GPU_CLOCK,   RLS_EVENT_FRAME,       RLS_EVENT_SAMPLE,
		RLS_EVENT_MEMORY_LINE, RLS_EVENT_MEMORY_AGES, RLS_EVENT_COPY_LINE,
		RLS_EVENT_MEMORY_USE,  RLS_EVENT_LAYER_NAME,  RLS_EVENT_BUDGET,
		RLS_EVENT_LOSS,        RLS_EVENT_WARNING,     RLS_EVENT_THREAD_END,
		RLS_EVENT_PROCESS_END, RLS_EVENT_CLOCK,       RLS_EVENT_END,
	};
	const size_t count = sizeof(order) / sizeof(order[0]);

	size_t kinds = 0;

	for (int kind = 0; kind <= RLS_EVENT_MAX; kind++)
		kinds += rls_event_layout(kind) != NULL;
	assert_int_equal(count, kinds);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < count; k++) {
			/* The earlier kind has the larger pid: meaning goes before numbers. */
			struct rls_event a = {.kind = order[i], .pid = count - i, .time_ns = 5};
			struct rls_event b = {.kind = order[k], .pid = count - k, .time_ns = 5};
			int compared = rls_event_compare(&a, &b);

			assert_int_equal((compared > 0) - (compared < 0), (i > k) - (i < k));
			b.time_ns = 6;
			assert_true(rls_event_compare(&a, &b) < 0);
		}
	}
}

static void refuses_what_no_trace_may_hold(void **state)
{
	struct rls_event good[] = {
		{.kind = RLS_EVENT_CATEGORY, .category.category = RLS_CATEGORY_NATIVE},
		{.kind = RLS_EVENT_OPERATION, .operation.depth = RLS_OPERATION_DEPTH_MAX},
		{.kind = RLS_EVENT_GPU, .time_ns = 7, .gpu.end_ns = 7},
		{.kind = RLS_EVENT_HITS, .time_ns = INT64_MAX, .hits.count = INT64_MAX},
	};
	struct rls_event bad[] = {
		{.kind = 0},
		{.kind = RLS_EVENT_MAX},
		{.kind = RLS_EVENT_THREAD_END, .time_ns = 1ull << 63},
		{.kind = RLS_EVENT_CATEGORY, .category.category = RLS_CATEGORY_MAX},
		{.kind = RLS_EVENT_OPERATION, .operation.depth = RLS_OPERATION_DEPTH_MAX + 1},
		{.kind = RLS_EVENT_OPERATION, .operation = {.depth = 1, .continued = 2}},
		{.kind = RLS_EVENT_GPU, .time_ns = 7, .gpu.end_ns = 6},
		{.kind = RLS_EVENT_GPU, .gpu.kind = RLS_GPU_KIND_MAX},
		{.kind = RLS_EVENT_HITS, .hits.cost_ns = UINT64_MAX},
		{.kind = RLS_EVENT_MEMORY_LINE, .memory_line.of.source = RLS_MEMORY_SOURCE_MAX},
		{.kind = RLS_EVENT_MEMORY_LINE, .memory_line.method = RLS_MEMORY_METHOD_MAX},
		{.kind = RLS_EVENT_MEMORY_AGES, .memory_ages = {.from_ns = 2, .to_ns = 2}},
		{.kind = RLS_EVENT_COPY_LINE, .copy_line.kind = RLS_COPY_KIND_MAX},
		{.kind = RLS_EVENT_GPU_COPY, .gpu_copy.bytes = UINT64_MAX},
		{.kind = RLS_EVENT_LAYER, .layer.pass = RLS_PASS_MAX},
		{.kind = RLS_EVENT_CALIBRATION, .calibration.value_ns = NAN},
		{.kind = RLS_EVENT_CALIBRATION, .calibration.error_ns = INFINITY},
	};
	struct rls_event_store *store = rls_event_store_new();

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(rls_event_store_add(store, &good[i]), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(rls_event_store_add(store, &bad[i]), -EINVAL);
	assert_int_equal(rls_event_store_count(store), sizeof(good) / sizeof(good[0]));
	rls_event_store_free(store);
}

static char *render_events(const struct rls_event *events, size_t count,
			   const struct rls_string_pool *strings)
{
	struct rls_event_source *source;

	assert_int_equal(rls_memory_source_new(events, count, strings, &source), 0);

	char *text = render(source);

	source->free(source);
	return text;
}

static void shuffle(struct event_maker *maker, struct rls_event *events, size_t count)
{
	for (size_t i = count - 1; i; i--) {
		size_t other = event_maker_draw(maker, i + 1);
		struct rls_event event = events[i];

		events[i] = events[other];
		events[other] = event;
	}
}

static void order_of_adding_never_shows(void **state)
{
	static struct rls_event events[EVENTS];

	for (unsigned int round = 0; round < 30; round++) {
		struct event_maker maker = {.random = 77 + round,
					    .span_ns = 1 + round * round,
					    .strings = rls_string_pool_new()};

		for (size_t i = 0; i < EVENTS; i++)
			events[i] = event_maker_event(&maker);

		char *sorted = render_events(events, EVENTS, maker.strings);

		assert_null(strstr(sorted, "OUT OF ORDER"));
		shuffle(&maker, events, EVENTS);

		char *shuffled = render_events(events, EVENTS, maker.strings);

		assert_string_equal(sorted, shuffled);
		free(sorted);
		free(shuffled);
		rls_string_pool_free(maker.strings);
	}
}

static void sorts_like_qsort(void **state)
{
	static struct rls_event events[EVENTS];
	struct rls_string_pool *strings = rls_string_pool_new();
	struct event_maker maker = {.random = 5, .span_ns = 100000, .strings = strings};
	struct rls_event_store *store = rls_event_store_new();
	struct rls_event event;

	/* Mostly rising, some late: what a recorder delivers. */
	for (size_t i = 0; i < EVENTS; i++) {
		events[i] = (struct rls_event){.kind = RLS_EVENT_OFF_CPU, .off_cpu.ns = i};
		events[i].time_ns = i * 10 - (event_maker_draw(&maker, 5) ? 0 : i * 10 / 3);
		assert_int_equal(rls_event_store_add(store, &events[i]), 0);
	}
	qsort(events, EVENTS, sizeof(events[0]),
	      (int (*)(const void *, const void *))rls_event_compare);
	assert_int_equal(rls_event_store_sort(store, strings), 0);
	for (size_t i = 0; i < EVENTS; i++) {
		rls_event_store_get(store, i, &event);
		assert_int_equal(event.time_ns, events[i].time_ns);
	}
	rls_event_store_clear(store);
	assert_int_equal(rls_event_store_count(store), 0);
	assert_int_equal(rls_event_store_bytes(store), 0);
	assert_int_equal(rls_event_store_sort(store, strings), 0);
	rls_event_store_free(store);
	rls_string_pool_free(strings);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(orders_an_instant_by_meaning),
		cmocka_unit_test(refuses_what_no_trace_may_hold),
		cmocka_unit_test(order_of_adding_never_shows),
		cmocka_unit_test(sorts_like_qsort),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
