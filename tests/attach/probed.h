/* Functions of this program to put probes on: each does nothing but call its body. */
#ifndef RLS_TEST_PROBED_H
#define RLS_TEST_PROBED_H

#include "userspace/machine_code/site.h"

typedef void (*body_function)(void *context);

void into_backend(body_function body, void *context);
void into_simulator(body_function body, void *context);
void into_python(body_function body, void *context); /* as a library calls back */
void into_unseen(body_function body, void *context); /* backend, with no probe on its end */
/* Backend that ends in a jump into into_simulator. */
void into_jump(body_function body, void *context);

void nothing(void *context);

enum probed_site { SITE_BACKEND, SITE_SIMULATOR, SITE_PYTHON, SITE_UNSEEN, SITE_JUMP, SITES };

/* Fills all sites; 0 or -errno. */
int probed_sites(struct rls_site sites[SITES]);
/* Where a site is in memory. */
const void *probed_address(enum probed_site site);

#endif
