/* Glob: does a name fit a pattern? `*` is any run of characters, `?` any one byte, all else
 * itself. In time of at most pattern × name whatever both are: patterns come from traces.
 */
#ifndef RLS_GLOB_H
#define RLS_GLOB_H

#include <stdbool.h>

bool rls_glob_match(const char *pattern, const char *name);

#endif
