#include "userspace/record/events/operation_globs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "analysis/samples/operation_rules.h"
#include "userspace/record/events/event_output.h"

static void glob_release(struct rls_operation_glob *glob)
{
	free(glob->operation);
	free(glob->file);
	free(glob->function);
}

void rls_operation_globs_clear(struct rls_operation_globs *globs)
{
	for (size_t i = 0; i < globs->count; i++)
		glob_release(&globs->items[i]);
	free(globs->items);
	*globs = (struct rls_operation_globs){0};
}

/* The first colon that stands alone, or NULL. */
static const char *single_colon(const char *text)
{
	const char *colon = strchr(text, ':');

	while (colon && colon[1] == ':')
		colon = strchr(colon + strspn(colon, ":"), ':');
	return colon;
}

int rls_operation_globs_add(struct rls_operation_globs *globs, const char *text)
{
	const char *equals = strchr(text, '='), *colon, *function;
	struct rls_operation_glob glob;
	int r;

	if (!equals || equals == text || !equals[1])
		return -EINVAL;
	colon = single_colon(equals + 1);
	function = colon ? colon + 1 : equals + 1;
	if (!*function || colon == equals + 1)
		return -EINVAL;
	if (globs->count == RLS_OPERATION_RULES_MAX)
		return -E2BIG;
	r = rls_grow(&globs->items, &globs->room, globs->count);
	if (r)
		return r;
	glob.operation = strndup(text, (size_t)(equals - text));
	glob.file = strndup(equals + 1, colon ? (size_t)(colon - equals - 1) : 0);
	glob.function = strdup(function);
	if (!glob.operation || !glob.file || !glob.function) {
		glob_release(&glob);
		return -ENOMEM;
	}
	globs->items[globs->count++] = glob;
	return 0;
}

int rls_operation_globs_emit(const struct rls_operation_globs *globs,
			     struct rls_event_output *output, uint64_t time_ns)
{
	int r = 0;

	for (size_t i = 0; !r && i < globs->count; i++) {
		struct rls_event event = {.kind = RLS_EVENT_OPERATION_RULE, .time_ns = time_ns + i};
		const struct rls_operation_glob *glob = &globs->items[i];

		r = rls_event_output_string(output, glob->operation,
					    &event.operation_rule.operation);
		if (!r)
			r = rls_event_output_string(output, glob->function,
						    &event.operation_rule.function);
		if (!r)
			r = rls_event_output_string(output, glob->file, &event.operation_rule.file);
		if (!r)
			r = rls_event_output_add(output, &event);
	}
	return r;
}
