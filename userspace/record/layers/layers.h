/* Layers: the part of a recorder that records calls of a model's layers.
 *
 *     layer_probes    probes where interpreters call objects
 *     layer_tree      what the layers of a process are called
 *
 * The kernel side gives each layer a number when it is first called, and sends its address. Here it gets its name, as
 * soon as that record is read. The numbers are those of the trace.
 */
#ifndef RLS_LAYERS_H
#define RLS_LAYERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "userspace/attach/kernel/kernel.h"
#include "userspace/process/mappings.h"
#include "userspace/record/events/event_output.h"
#include "userspace/record/probes/file_table.h"
#include "userspace/record/targets/target_table.h"

struct rls_layers;

/* Borrowed; they stay. */
struct rls_layers_parts {
	struct rls_kernel *kernel;
	struct rls_event_output *output;
	struct rls_targets *targets;
	double budget_percent; /* what probes may cost; below 0: no limit */
};

/* It observes the targets. 0 or -errno. */
int rls_layers_new(const struct rls_layers_parts *parts, struct rls_layers **out);
void rls_layers_free(struct rls_layers *layers);

/* The files that a process maps have changed. 0 or -ENOMEM. */
int rls_layers_mapped(struct rls_layers *layers, struct rls_files *files, pid_t pid,
		      const struct rls_mappings *mappings);
/* Processes of the host have mapped something: takes probes off at once that would harm one (stack_switching.h).
 * 0 or -errno. */
int rls_layers_spare(struct rls_layers *layers);
/* A record RLS_WIRE_LAYER_OBJECT. 0 or -errno. */
int rls_layers_take(struct rls_layers *layers, const struct rls_wire_header *record, size_t size);
/* Each turn of the loop. 0 or -errno. */
int rls_layers_tick(struct rls_layers *layers, uint64_t time_ns);
/* The kernel side has stopped. 0 or -errno. */
int rls_layers_finish(struct rls_layers *layers, uint64_t start_ns, uint64_t stop_ns);

#endif
