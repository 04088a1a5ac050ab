/* Roles: which mapped libraries matter, and which of their functions.
 *
 * A rule is a glob over file names, a role, and what to take from the library. Rules come
 * from the built-in table (role_table.c), from configuration files and from the command
 * line; the user's win over the table, and among the user's the first given wins.
 */
#ifndef RLS_ROLES_H
#define RLS_ROLES_H

#include <stdbool.h>
#include <stddef.h>

#include "userspace/discover/roles/boundary.h"

enum rls_role_methods {
	RLS_METHODS_NONE, /* nothing Python calls: not examined */
	RLS_METHODS_CALLBACKS, /* only its own calls into Python */
	RLS_METHODS_ALL, /* Python methods, slots and getters */
	RLS_METHODS_MATCHING, /* those whose Python name matches the symbol globs */
};

struct rls_role_rule {
	enum rls_role role;
	const char *file_glob; /* against the base name, the path, and any tail of the path */
	enum rls_role_methods methods;
	const char *const *symbols; /* globs over exported functions, NULL-terminated; NULL: none */
};

/* The table, ended by a rule with a NULL file_glob. */
extern const struct rls_role_rule rls_role_table[];

struct rls_roles;

/* The role that a user may give a library: "simulator", "backend", "native". 0 or -EINVAL. */
int rls_role_parse(const char *word, enum rls_role *out);

/* With the table alone. 0 or -ENOMEM. */
int rls_roles_new(struct rls_roles **out);
void rls_roles_free(struct rls_roles *roles);

/* "GLOB" (the whole library) or "GLOB:SYMBOLGLOB". 0, -EINVAL for an empty part, -ENOMEM. */
int rls_roles_add(struct rls_roles *roles, enum rls_role role, const char *pattern);

/* Lines of "simulator|backend|native GLOB[:SYMBOLGLOB]", '#' comments. Says what is wrong on
 * stderr, with the line's number, and adds nothing then. 0 or -errno. */
int rls_roles_parse_file(struct rls_roles *roles, const char *path);

/* /etc/rlscope-bpf.conf and the invoking user's ~/.config/rlscope-bpf/roles.conf (under sudo:
 * that of who called it), those that exist. 0 or -errno, said on stderr. */
int rls_roles_parse_default_files(struct rls_roles *roles);

/* What to take from one library: all rules of one origin and role that match its path. */
struct rls_role_match {
	enum rls_role role;
	const struct rls_role_rule *rules[16]; /* borrowed from roles */
	size_t count;
};

/* False when no rule matches (*out untouched). */
bool rls_roles_match(const struct rls_roles *roles, const char *path, struct rls_role_match *out);

bool rls_role_match_takes_methods(const struct rls_role_match *match);
/* Its calls into Python: of every library that methods are taken from, too. */
bool rls_role_match_takes_callbacks(const struct rls_role_match *match);
bool rls_role_match_takes_exports(const struct rls_role_match *match);
/* name: "module.Class.method", or less of it; the globs may match any tail behind a dot. */
bool rls_role_match_wants_method(const struct rls_role_match *match, const char *name);
bool rls_role_match_wants_export(const struct rls_role_match *match, const char *symbol);

#endif
