#include "userspace/discover/roles/roles.h"

#include <errno.h>
#include <fnmatch.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/base/cleanup.h"
#include "userspace/base/config_lines.h"
#include "userspace/base/log.h"

static const struct {
	const char *name;
	enum rls_category category;
} roles_of[RLS_ROLE_MAX] = {
	[RLS_ROLE_NONE] = {"none", RLS_CATEGORY_PYTHON},
	[RLS_ROLE_PYTHON] = {"python", RLS_CATEGORY_PYTHON},
	[RLS_ROLE_SIMULATOR] = {"simulator", RLS_CATEGORY_SIMULATOR},
	[RLS_ROLE_BACKEND] = {"backend", RLS_CATEGORY_BACKEND},
	[RLS_ROLE_CUDA] = {"cuda", RLS_CATEGORY_CUDA_API},
	[RLS_ROLE_NATIVE] = {"native", RLS_CATEGORY_NATIVE},
};

const char *rls_role_name(enum rls_role role)
{
	return role < RLS_ROLE_MAX ? roles_of[role].name : "none";
}

enum rls_category rls_role_category(enum rls_role role)
{
	return role < RLS_ROLE_MAX ? roles_of[role].category : RLS_CATEGORY_PYTHON;
}

/* A user's rule owns its strings; the table's are static. */
struct user_rule {
	struct rls_role_rule rule;
	char *text; /* "GLOB\0SYMBOLGLOB\0" */
	const char *symbols[2];
	struct user_rule *next;
};

struct rls_roles {
	struct user_rule *first, **last;
};

int rls_roles_new(struct rls_roles **out)
{
	struct rls_roles *roles = calloc(1, sizeof(*roles));

	if (!roles)
		return -ENOMEM;
	roles->last = &roles->first;
	*out = roles;
	return 0;
}

static void free_rules(struct user_rule *rule)
{
	while (rule) {
		struct user_rule *next = rule->next;

		free(rule->text);
		free(rule);
		rule = next;
	}
}

void rls_roles_free(struct rls_roles *roles)
{
	if (!roles)
		return;
	free_rules(roles->first);
	free(roles);
}

static const char whole_library[] = "*";

int rls_roles_add(struct rls_roles *roles, enum rls_role role, const char *pattern)
{
	struct user_rule *rule;
	char *colon;

	if (!pattern[0] || pattern[0] == ':' || pattern[strlen(pattern) - 1] == ':')
		return -EINVAL;
	rule = calloc(1, sizeof(*rule));
	if (!rule)
		return -ENOMEM;
	rule->text = strdup(pattern);
	if (!rule->text) {
		free(rule);
		return -ENOMEM;
	}
	colon = strchr(rule->text, ':');
	if (colon)
		*colon = '\0';
	rule->symbols[0] = colon ? colon + 1 : whole_library;
	rule->rule = (struct rls_role_rule){
		.role = role,
		.file_glob = rule->text,
		.methods = colon ? RLS_METHODS_MATCHING : RLS_METHODS_ALL,
		.symbols = rule->symbols,
	};
	*roles->last = rule;
	roles->last = &rule->next;
	return 0;
}

int rls_role_parse(const char *word, enum rls_role *out)
{
	static const enum rls_role allowed[] = {RLS_ROLE_SIMULATOR, RLS_ROLE_BACKEND,
						RLS_ROLE_NATIVE};

	for (size_t i = 0; i < sizeof(allowed) / sizeof(*allowed); i++) {
		if (!strcmp(word, rls_role_name(allowed[i]))) {
			*out = allowed[i];
			return 0;
		}
	}
	return -EINVAL;
}

static int take_line(void *context, const struct rls_config_line *line)
{
	enum rls_role role;
	int error;

	if (rls_role_parse(line->word, &role))
		return rls_error_r(
			-EINVAL,
			"%s, line %u: '%s' is not a role; a line is simulator, backend or "
			"native and a file glob",
			line->path, line->number, line->word);
	if (!rls_config_is_word(line->value))
		return rls_error_r(-EINVAL, "%s, line %u: one file glob must follow '%s'",
				   line->path, line->number, line->word);
	error = rls_roles_add(context, role, line->value);
	if (error == -EINVAL)
		return rls_error_r(error, "%s, line %u: '%s' is not GLOB or GLOB:SYMBOLGLOB",
				   line->path, line->number, line->value);
	return error;
}

int rls_roles_parse_file(struct rls_roles *roles, const char *path)
{
	_cleanup_fclose_ FILE *file = fopen(path, "re");
	struct user_rule **before = roles->last;
	int error;

	if (!file)
		return rls_error_r(-errno, "cannot read %s: %s", path, strerror(errno));
	error = rls_config_lines_read(file, path, take_line, roles);
	if (error) {
		free_rules(*before);
		*before = NULL;
		roles->last = before;
	}
	return error;
}

/* Under sudo the rules are those of who called it. */
static const char *invoking_home(void)
{
	const char *uid = getenv("SUDO_UID"), *home = getenv("HOME");
	const struct passwd *entry;

	if (geteuid() == 0 && uid) {
		entry = getpwuid(strtoul(uid, NULL, 10));
		if (entry)
			return entry->pw_dir;
	}
	return home;
}

int rls_roles_parse_default_files(struct rls_roles *roles)
{
	static const char system_file[] = "/etc/rlscope-bpf.conf";
	const char *home = invoking_home();
	_cleanup_free_ char *user_file = NULL;
	int error = 0;

	if (home && asprintf(&user_file, "%s/.config/rlscope-bpf/roles.conf", home) < 0)
		return -ENOMEM;
	/* The user's first: the first rule that matches wins. */
	if (user_file && !access(user_file, F_OK))
		error = rls_roles_parse_file(roles, user_file);
	if (!error && !access(system_file, F_OK))
		error = rls_roles_parse_file(roles, system_file);
	return error;
}

/* "torch/_C*.so" means that tail of any path. What was loaded from memory has the name that its
 * maker gave it. */
static bool file_matches(const char *glob, const char *path)
{
	static const char memory[] = "/memfd:";
	const char *base = strrchr(path, '/');

	if (!fnmatch(glob, path, 0) || (base && !fnmatch(glob, base + 1, 0)))
		return true;
	if (!strncmp(path, memory, strlen(memory)) && file_matches(glob, path + strlen(memory)))
		return true;
	if (!strchr(glob, '/'))
		return false;
	for (const char *tail = strchr(path, '/'); tail; tail = strchr(tail + 1, '/'))
		if (!fnmatch(glob, tail + 1, 0))
			return true;
	return false;
}

static void add_to_match(struct rls_role_match *match, const struct rls_role_rule *rule)
{
	if (match->count && match->role != rule->role)
		return;
	if (match->count == sizeof(match->rules) / sizeof(*match->rules))
		return;
	match->role = rule->role;
	match->rules[match->count++] = rule;
}

bool rls_roles_match(const struct rls_roles *roles, const char *path, struct rls_role_match *out)
{
	struct rls_role_match match = {0};

	for (const struct user_rule *user = roles->first; user; user = user->next)
		if (file_matches(user->rule.file_glob, path))
			add_to_match(&match, &user->rule);
	for (const struct rls_role_rule *rule = rls_role_table; !match.count && rule->file_glob;
	     rule++)
		if (file_matches(rule->file_glob, path))
			add_to_match(&match, rule);
	if (!match.count)
		return false;
	*out = match;
	return true;
}

bool rls_role_match_takes_methods(const struct rls_role_match *match)
{
	for (size_t i = 0; i < match->count; i++)
		if (match->rules[i]->methods > RLS_METHODS_CALLBACKS)
			return true;
	return false;
}

bool rls_role_match_takes_callbacks(const struct rls_role_match *match)
{
	for (size_t i = 0; i < match->count; i++)
		if (match->rules[i]->methods != RLS_METHODS_NONE)
			return true;
	return false;
}

bool rls_role_match_takes_exports(const struct rls_role_match *match)
{
	for (size_t i = 0; i < match->count; i++)
		if (match->rules[i]->symbols)
			return true;
	return false;
}

static bool symbol_matches(const struct rls_role_rule *rule, const char *name)
{
	for (const char *const *glob = rule->symbols; glob && *glob; glob++)
		if (!fnmatch(*glob, name, 0))
			return true;
	return false;
}

bool rls_role_match_wants_method(const struct rls_role_match *match, const char *name)
{
	for (size_t i = 0; i < match->count; i++) {
		const struct rls_role_rule *rule = match->rules[i];

		if (rule->methods == RLS_METHODS_ALL)
			return true;
		if (rule->methods != RLS_METHODS_MATCHING)
			continue;
		for (const char *tail = name; tail; tail = strchr(tail, '.')) {
			tail += *tail == '.';
			if (symbol_matches(rule, tail))
				return true;
		}
	}
	return false;
}

/* What a compiler or linker adds to a library. A user who names the whole library does not
 * mean it. */
static bool is_glue(const char *symbol)
{
	static const char *const globs[] = {
		"PyInit_*", "_init",     "_fini",          "_ZT[hvc]*",       "_ZSt*",
		"_ZNSt*",   "_ZNKSt*",   "_ZN9__gnu_cxx*", "_ZNK9__gnu_cxx*", "__cxa_*",
		"__gxx_*",  "_Unwind_*", "__clang_*",      "__do_*",          "_Zn[wa]*",
		"_Zd[la]*", NULL,
	};

	for (const char *const *glob = globs; *glob; glob++)
		if (!fnmatch(*glob, symbol, 0))
			return true;
	return false;
}

bool rls_role_match_wants_export(const struct rls_role_match *match, const char *symbol)
{
	for (size_t i = 0; i < match->count; i++) {
		const struct rls_role_rule *rule = match->rules[i];

		if (!symbol_matches(rule, symbol))
			continue;
		if (rule->symbols[0] != whole_library || !is_glue(symbol))
			return true;
	}
	return false;
}
