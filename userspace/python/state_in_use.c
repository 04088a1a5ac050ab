#include "userspace/python/state_in_use.h"

#include <stdbool.h>
#include <stddef.h>

#define SEARCHED_STATES 256
#define SEARCHED_WORDS 2048 /* of the top of a stack */

struct search {
	const struct rls_space *space;
	const struct rls_wire_interpreter *interpreter;
	uint64_t thread_pointer, stack_pointer;
	uint64_t
		own; /* the interpreter of the slot's state, which has no other state of this thread */
	uint64_t words[SEARCHED_WORDS]; /* the top of the stack */
	size_t words_count;
	uint64_t state, place; /* found; the lowest place */
};

static bool read_word(const struct rls_space *space, uint64_t address, uint64_t *out)
{
	return rls_space_read(space, address, out, sizeof(*out));
}

static void read_top_of_stack(struct search *search)
{
	const size_t chunk = 16;

	while (search->words_count < SEARCHED_WORDS &&
	       rls_space_read(search->space,
			      search->stack_pointer + search->words_count * sizeof(uint64_t),
			      search->words + search->words_count, chunk * sizeof(uint64_t)))
		search->words_count += chunk;
}

static bool is_on_top_of_stack(const struct search *search, uint64_t value)
{
	for (size_t i = 0; i < search->words_count; i++) {
		if (search->words[i] == value)
			return true;
	}
	return false;
}

/* Where on its stack the thread is in Python in the state, the lower the later; 0: it is not. */
static uint64_t place_on_stack(const struct search *search, uint64_t state)
{
	const struct rls_wire_interpreter *interpreter = search->interpreter;
	uint64_t at;

	if (!interpreter->thread_c_stack)
		return read_word(search->space, state + interpreter->thread_frame, &at) && at &&
				       is_on_top_of_stack(search, at)
			       ? search->stack_pointer
			       : 0;
	if (!read_word(search->space, state + interpreter->thread_c_stack, &at) ||
	    at < search->stack_pointer)
		return 0;
	return search->thread_pointer > search->stack_pointer && at >= search->thread_pointer ? 0
											      : at;
}

static void consider(struct search *search, uint64_t state)
{
	uint64_t place = place_on_stack(search, state);

	if (!place || place >= search->place)
		return;
	search->state = state;
	search->place = place;
}

static void search_list(struct search *search, uint64_t at)
{
	const struct rls_wire_interpreter *interpreter = search->interpreter;
	uint64_t thread = 0;

	for (int step = 0; step < SEARCHED_STATES && (thread || at); step++) {
		if (thread) {
			consider(search, thread);
			if (!read_word(search->space, thread + interpreter->thread_next, &thread))
				thread = 0;
			continue;
		}
		if (at != search->own &&
		    !read_word(search->space, at + interpreter->interpreter_threads, &thread))
			thread = 0;
		if (!read_word(search->space, at + interpreter->interpreter_next, &at))
			at = 0;
	}
}

uint64_t rls_state_in_use(const struct rls_space *space,
			  const struct rls_wire_interpreter *interpreter, uint64_t thread_pointer,
			  uint64_t stack_pointer, uint64_t state)
{
	struct search search = {.space = space,
				.interpreter = interpreter,
				.thread_pointer = thread_pointer,
				.stack_pointer = stack_pointer,
				.state = state,
				.place = UINT64_MAX};
	uint64_t ends[2];

	if (!interpreter->interpreters || !stack_pointer ||
	    !rls_space_read(space, interpreter->interpreters, ends, sizeof(ends)) ||
	    ends[0] == ends[1])
		return state;
	if (state && !read_word(space, state + interpreter->thread_interpreter, &search.own))
		search.own = 0;
	if (interpreter->thread_c_stack && state)
		consider(&search, state);
	else if (!interpreter->thread_c_stack)
		read_top_of_stack(&search);
	search_list(&search, ends[0]);
	return search.state;
}
