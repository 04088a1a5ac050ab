/* Rings: the records that come back, and those that were dropped. */
#ifndef RLS_KERNEL_RINGS_H
#define RLS_KERNEL_RINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/maps.h"
#include "bpf/wire/record.h"
#include "userspace/attach/kernel/kernel.h"

int rls_kernel_set_handler(struct rls_kernel *kernel, rls_record_handler handler, void *context);

/* A descriptor that becomes readable when a record asks for attention. */
int rls_kernel_poll_fd(const struct rls_kernel *kernel);
/* Hands everything that is in the rings by now to the handler, transitions after the control records that were
 * sent before them: 0 or -errno (the handler's own negative result included). */
int rls_kernel_consume(struct rls_kernel *kernel);
/* The same but for samples with stacks, which may take a while to be named. */
int rls_kernel_consume_all_but_stacks(struct rls_kernel *kernel);
/* The same of the transitions ring alone, the one that fills in no time: for long work in
 * between, inside a control record's handler too, in its own order. */
int rls_kernel_consume_transitions(struct rls_kernel *kernel);
/* The same of the control ring alone: before a record of another ring whose thread may have been
 * born since; not inside a control record's handler. */
int rls_kernel_consume_control(struct rls_kernel *kernel);
/* Only samples with stacks, where they are taken: before what names them goes. */
int rls_kernel_consume_stacks(struct rls_kernel *kernel);

/* How large the transitions ring should be on this machine: for each CPU what one thread
 * fills in a quarter of a second at the highest rate there is, a 64th of the memory at most. */
size_t rls_kernel_ring_bytes(void);

void rls_kernel_drops(const struct rls_kernel *kernel, uint64_t out[RLS_DROP_MAX]);
/* What was dropped so far was nobody's: for calibration, whose own records are not kept. */
void rls_kernel_forget_drops(struct rls_kernel *kernel);

#endif
