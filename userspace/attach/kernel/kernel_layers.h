/* Layers: sites at which an interpreter calls objects, and what the kernel side knows of layers (bpf/wire/layer.h).
 * Only where options.layer_depth was set; elsewhere nothing is attached, and all counts are 0.
 */
#ifndef RLS_KERNEL_LAYERS_H
#define RLS_KERNEL_LAYERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "bpf/wire/layer.h"
#include "userspace/attach/kernel/kernel.h"
#include "userspace/plan/layer_sites.h"

/* Puts probes where calls begin in one file, of which `file` is the caller's number, and return probes where they end;
 * spared: probes at the ends instead. path must open from here. items_bytes: where in a tuple of that interpreter its items lie. 0 or -errno: then none
 * is on. */
int rls_kernel_attach_layers(struct rls_kernel *kernel, uint32_t file, const char *path,
			     const struct rls_layer_sites *sites, uint32_t items_bytes,
			     bool spared);
/* Stacks are switched there, and a return probe would harm: the ends are probed instead. 0; -ENOTSUP: not all of them
 * are known; -errno: then none is on any more. */
int rls_kernel_spare_layers(struct rls_kernel *kernel, uint32_t file, const char *path,
			    const struct rls_layer_sites *sites);
/* Takes off all of a file. */
void rls_kernel_detach_layers(struct rls_kernel *kernel, uint32_t file);

/* enum rls_layer_count. */
uint64_t rls_kernel_layer_count(const struct rls_kernel *kernel, enum rls_layer_count which);

/* The process has ended, or runs another program: its layers' numbers are given back. */
void rls_kernel_forget_layers(struct rls_kernel *kernel, pid_t pid);

#endif
