/* A string as JSON spells it, for every writer of JSON. */
#ifndef RLS_JSON_STRING_H
#define RLS_JSON_STRING_H

#include <stddef.h>
#include <stdio.h>

/* With its quotes. The text is valid UTF-8, as a report's strings are. */
void rls_json_print_string(FILE *out, const char *text);

/* The same of the name of a file, which may be of any bytes: those that are no UTF-8 are replaced. */
void rls_json_print_path(FILE *out, const char *path);

/* ["a", "b"] */
void rls_json_print_strings(FILE *out, const char *const *items, size_t count);

#endif
