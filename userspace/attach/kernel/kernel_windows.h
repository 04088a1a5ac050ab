/* Windows: sites that are enabled and disabled while recording. */
#ifndef RLS_KERNEL_WINDOWS_H
#define RLS_KERNEL_WINDOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/groups.h"
#include "userspace/attach/kernel/kernel.h"

bool rls_kernel_has_windows(const struct rls_kernel *kernel);
int rls_kernel_set_duty(struct rls_kernel *kernel, uint32_t site, enum rls_duty duty);
/* Begins a closed window: the sites of each duty are sorted out anew. From *edge_ns on nothing
 * of windowed sites counts, and what threads were in is not known. */
int rls_kernel_regroup(struct rls_kernel *kernel, uint64_t *edge_ns);
/* From *edge_ns on every windowed site counts; and none does. */
int rls_kernel_open_window(struct rls_kernel *kernel, uint64_t *edge_ns);
void rls_kernel_close_window(struct rls_kernel *kernel, uint64_t *edge_ns);

#endif
