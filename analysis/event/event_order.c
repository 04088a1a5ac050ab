#include "analysis/event/event_order.h"

#include <math.h>
#include <string.h>

#include "analysis/event/event_fields.h"

static int order_numbers(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int event_order_rank(const struct rls_event *event)
{
	const struct rls_event_layout *layout = rls_event_layout(event->kind);

	return layout ? layout->rank : RLS_EVENT_MAX;
}

int rls_event_compare(const struct rls_event *a, const struct rls_event *b)
{
	int order = order_numbers(a->time_ns, b->time_ns);

	if (!order)
		order = event_order_rank(a) - event_order_rank(b);
	if (!order)
		order = order_numbers(a->pid, b->pid);
	if (!order)
		order = order_numbers(a->tid, b->tid);
	return order;
}

static int order_strings(rls_string_id a, rls_string_id b, const struct rls_string_pool *strings)
{
	if (a == b)
		return 0;
	return strcmp(rls_string_pool_get(strings, a), rls_string_pool_get(strings, b));
}

static int order_stacks(const struct rls_event *a, const struct rls_event *b,
			const struct rls_string_pool *strings)
{
	int order = order_numbers(a->operation.depth, b->operation.depth);

	for (unsigned int i = 0; !order && i < a->operation.depth; i++)
		order = order_strings(a->operation.stack[i], b->operation.stack[i], strings);
	return order;
}

/* -0 goes before 0: equal must mean the same. */
static int order_doubles(double a, double b)
{
	int order = (a > b) - (a < b);

	return order ? order : !!signbit(b) - !!signbit(a);
}

static int order_fields(const struct rls_event *a, const struct rls_event *b,
			const struct rls_event_field *field, const struct rls_string_pool *strings)
{
	const void *left = (const char *)a + field->offset;
	const void *right = (const char *)b + field->offset;

	switch (field->type) {
	case RLS_FIELD_STRING:
	case RLS_FIELD_JSON:
		return order_strings(*(const rls_string_id *)left, *(const rls_string_id *)right,
				     strings);
	case RLS_FIELD_U32:
	case RLS_FIELD_CATEGORY:
	case RLS_FIELD_GPU_KIND:
	case RLS_FIELD_SAMPLE_KIND:
	case RLS_FIELD_MEMORY_SOURCE:
	case RLS_FIELD_MEMORY_METHOD:
	case RLS_FIELD_COPY_KIND:
	case RLS_FIELD_LAYER_PASS:
		return order_numbers(*(const uint32_t *)left, *(const uint32_t *)right);
	case RLS_FIELD_U64:
		return order_numbers(*(const uint64_t *)left, *(const uint64_t *)right);
	case RLS_FIELD_BOOL:
		return *(const bool *)left - *(const bool *)right;
	case RLS_FIELD_DOUBLE:
		return order_doubles(*(const double *)left, *(const double *)right);
	case RLS_FIELD_STACK:
		return order_stacks(a, b, strings);
	case RLS_FIELD_CONTINUED:
		return order_numbers(a->operation.continued, b->operation.continued);
	case RLS_FIELD_END:
		break;
	}
	return 0;
}

int rls_event_order(const struct rls_event *a, const struct rls_event *b,
		    const struct rls_string_pool *strings)
{
	int order = rls_event_compare(a, b);
	const struct rls_event_layout *layout = rls_event_layout(a->kind);

	if (order || !layout)
		return order;
	for (const struct rls_event_field *field = layout->fields; !order && field->name; field++)
		order = order_fields(a, b, field, strings);
	return order;
}
