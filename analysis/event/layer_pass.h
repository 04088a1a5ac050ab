/* Words of layers' passes, in traces and reports. */
#ifndef RLS_LAYER_PASS_H
#define RLS_LAYER_PASS_H

#include "analysis/event/event.h"

/* "outside", "forward", ...; "unknown" also for a number that is none. Static storage. */
const char *rls_layer_pass_name(enum rls_layer_pass pass);

/* 0, or -EINVAL for another word. */
int rls_layer_pass_parse(const char *name, enum rls_layer_pass *out);

#endif
