/* Own libraries: where the libraries are that targets load. */
#ifndef RLS_OWN_LIBRARY_H
#define RLS_OWN_LIBRARY_H

#include <limits.h>

#define RLS_OWN_LIBRARY_BYTES (PATH_MAX + 64)

/* Beside this program or where it was installed; "" when it is in neither. */
void rls_own_library(const char *name, char path[RLS_OWN_LIBRARY_BYTES]);

#endif
