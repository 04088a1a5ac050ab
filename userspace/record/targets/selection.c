#include "userspace/record/targets/selection.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/base/grow.h"
#include "userspace/record/targets/cgroup.h"

#define ID_DIGITS_MAX 64

static bool is_container_id(const char *text)
{
	size_t digits = 0;

	while (isxdigit((unsigned char)text[digits]))
		digits++;
	return digits && digits <= ID_DIGITS_MAX && !text[digits];
}

int rls_selection_add(struct rls_selection *selection, enum rls_selector_kind kind,
		      const char *text)
{
	struct rls_selector selector = {.kind = kind};

	if (kind != RLS_SELECT_ALL) {
		if (!text[0] || (kind == RLS_SELECT_CONTAINER && !is_container_id(text)))
			return -EINVAL;
		selector.text = strdup(text);
		if (!selector.text)
			return -ENOMEM;
	}
	if (rls_grow(&selection->selectors, &selection->room, selection->count)) {
		free(selector.text);
		return -ENOMEM;
	}
	selection->selectors[selection->count++] = selector;
	selection->kinds |= kind;
	return 0;
}

void rls_selection_clear(struct rls_selection *selection)
{
	for (size_t i = 0; i < selection->count; i++)
		free(selection->selectors[i].text);
	free(selection->selectors);
	*selection = (struct rls_selection){0};
}

/* ---- names ---- */

static bool base_name_matches(const char *glob, const char *path)
{
	const char *slash = strrchr(path, '/');

	return !fnmatch(glob, slash ? slash + 1 : path, 0);
}

/* The next word of a command line, NULL at its end; the text has a NUL behind it. */
static const char *next_word(const struct rls_candidate *candidate, size_t *at)
{
	const char *word = candidate->cmdline + *at;

	if (*at >= candidate->cmdline_bytes)
		return NULL;
	*at += strlen(word) + 1;
	return word;
}

/* What an interpreter runs: the first word that is no option, or what follows -m. Those
 * options of CPython that take a word of their own are known; -c means there is none. */
static const char *script_of(const struct rls_candidate *candidate, size_t at)
{
	const char *word;

	while ((word = next_word(candidate, &at)) && word[0] == '-') {
		if (!strcmp(word, "-c"))
			return NULL;
		if (!strcmp(word, "-m"))
			return next_word(candidate, &at);
		if (!strcmp(word, "-X") || !strcmp(word, "-W"))
			next_word(candidate, &at);
	}
	return word;
}

static bool name_matches(const char *glob, const struct rls_candidate *candidate)
{
	const char *word;
	size_t at = 0;

	if (!fnmatch(glob, candidate->comm, 0))
		return true;
	word = candidate->cmdline ? next_word(candidate, &at) : NULL;
	if (!word)
		return false;
	if (base_name_matches(glob, word))
		return true;
	word = script_of(candidate, at);
	return word && base_name_matches(glob, word);
}

/* ---- matching ---- */

bool rls_selector_matches(const struct rls_selector *selector,
			  const struct rls_candidate *candidate)
{
	switch (selector->kind) {
	case RLS_SELECT_NAME:
		return name_matches(selector->text, candidate);
	case RLS_SELECT_CGROUP:
		return candidate->cgroup && rls_cgroup_is_within(candidate->cgroup, selector->text);
	case RLS_SELECT_CONTAINER:
		return !strncasecmp(candidate->container, selector->text, strlen(selector->text));
	case RLS_SELECT_ALL:
		return candidate->is_job;
	}
	return false;
}

bool rls_selection_matches(const struct rls_selection *selection,
			   const struct rls_candidate *candidate)
{
	for (size_t i = 0; i < selection->count; i++) {
		if (rls_selector_matches(&selection->selectors[i], candidate))
			return true;
	}
	return false;
}
