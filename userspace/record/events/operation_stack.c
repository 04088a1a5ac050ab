#include "userspace/record/events/operation_stack.h"

static void remove_at(struct rls_operation_stack *stack, uint32_t index)
{
	for (uint32_t i = index; i + 1 < stack->count; i++)
		stack->entries[i] = stack->entries[i + 1];
	stack->count--;
}

static bool operation_stack_append(struct rls_operation_stack *stack,
				   const struct rls_operation_entry *entry)
{
	if (stack->count == RLS_OPERATION_DEPTH_MAX) {
		stack->overflowed = true;
		return false;
	}
	stack->entries[stack->count++] = *entry;
	return true;
}

/* Pops take the innermost, so within one that found no room none may be kept. */
static void append_without_token(struct rls_operation_stack *stack,
				 const struct rls_operation_entry *entry)
{
	if (stack->unkept || !operation_stack_append(stack, entry))
		stack->unkept++;
}

void rls_operation_stack_pop(struct rls_operation_stack *stack, uint16_t depth)
{
	for (uint32_t i = stack->count; i-- > 0;) {
		if (stack->entries[i].depth > depth)
			remove_at(stack, i);
	}
}

void rls_operation_stack_push(struct rls_operation_stack *stack, uint16_t depth, rls_string_id name)
{
	struct rls_operation_entry entry = {.name = name, .depth = depth};

	if (!depth)
		return;
	rls_operation_stack_pop(stack, depth - 1);
	operation_stack_append(stack, &entry);
}

void rls_operation_stack_push_range(struct rls_operation_stack *stack, rls_string_id name,
				    uint64_t token)
{
	struct rls_operation_entry entry = {.name = name, .token = token};

	if (!token) {
		append_without_token(stack, &entry);
		return;
	}
	/* The same object again: its earlier range is over. */
	rls_operation_stack_pop_range(stack, token);
	operation_stack_append(stack, &entry);
}

void rls_operation_stack_push_hidden(struct rls_operation_stack *stack)
{
	append_without_token(stack, &(struct rls_operation_entry){.hidden = true});
}

bool rls_operation_stack_pop_range(struct rls_operation_stack *stack, uint64_t token)
{
	if (!token && stack->unkept) {
		stack->unkept--;
		return false;
	}
	for (uint32_t i = stack->count; i-- > 0;) {
		const struct rls_operation_entry *entry = &stack->entries[i];

		if (entry->depth == 0 && entry->token == token) {
			bool seen = !entry->hidden;

			remove_at(stack, i);
			return seen;
		}
	}
	return false;
}

void rls_operation_stack_clear_ranges(struct rls_operation_stack *stack)
{
	for (uint32_t i = stack->count; i-- > 0;) {
		if (!stack->entries[i].depth)
			remove_at(stack, i);
	}
	stack->unkept = 0;
}

void rls_operation_stack_clear_annotations(struct rls_operation_stack *stack)
{
	rls_operation_stack_pop(stack, 0);
}

rls_string_id rls_operation_stack_innermost(const struct rls_operation_stack *stack)
{
	for (uint32_t i = stack->count; i-- > 0;) {
		if (!stack->entries[i].hidden)
			return stack->entries[i].name;
	}
	return 0;
}

void rls_operation_stack_fill(const struct rls_operation_stack *stack, struct rls_event *event)
{
	uint16_t depth = 0;

	for (uint32_t i = 0; i < stack->count; i++) {
		if (!stack->entries[i].hidden)
			event->operation.stack[depth++] = stack->entries[i].name;
	}
	event->operation.depth = depth;
}
