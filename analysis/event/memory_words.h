/* What counts memory, how it was counted, and kinds of copies (event.h), by name. */
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

/* "h2h", "h2d", "d2h", "d2d": h is main memory, d a GPU's. Static storage. */
const char *rls_copy_kind_name(enum rls_copy_kind kind);

/* 0, or -EINVAL for another word. */
int rls_copy_kind_parse(const char *name, enum rls_copy_kind *out);

#endif
