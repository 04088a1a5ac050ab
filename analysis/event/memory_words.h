/* What counts memory, and how it was counted (event.h), by name. */
#ifndef RLS_MEMORY_WORDS_H
#define RLS_MEMORY_WORDS_H

#include "analysis/event/event.h"

/* "tensor", "array", "malloc", "python", "gpu". Static storage. */
const char *rls_memory_source_name(enum rls_memory_source source);

/* 0, or -EINVAL for another word. */
int rls_memory_source_parse(const char *name, enum rls_memory_source *out);

/* "counted", "sampled", "scaled". Static storage. */
const char *rls_memory_method_name(enum rls_memory_method method);

/* 0, or -EINVAL for another word. */
int rls_memory_method_parse(const char *name, enum rls_memory_method *out);

#endif
