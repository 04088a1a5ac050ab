/* JSON output of commands. */
#ifndef RLS_PRINT_JSON_H
#define RLS_PRINT_JSON_H

#include <stddef.h>

#include <jansson.h>

/* The text from outside, which need not be UTF-8 as JSON must. NULL: no memory. */
json_t *rls_json_text(const char *text);

/* On stdout, which main looks at, with a newline; the value is used up. NULL stands for no memory. 0 or -ENOMEM. */
int rls_print_json(json_t *root, size_t indent);

#endif
