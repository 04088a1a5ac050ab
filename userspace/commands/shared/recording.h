/* What attach and run have in common: a recording from open to report. */
#ifndef RLS_RECORDING_H
#define RLS_RECORDING_H

#include <sys/types.h>

#include "userspace/commands/options/record_options.h"
#include "userspace/record/recorder.h"
#include "userspace/record/targets/selection.h"

/* Opens a recorder for these options; names the trace after pid unless it has a name. The
 * selection may be empty; it and the options must stay while there is the recorder. command: as rls_recorder_options
 * has it. */
int rls_recording_open(struct rls_record_options *options, const struct rls_selection *selection,
		       pid_t pid, const char *command, struct rls_recorder **out);

/* Reads the trace back and writes the report where the options want it. The recorder is
 * finished and freed before. Exit status: 0, or 1 after a message. */
int rls_recording_report(const struct rls_record_options *options);

#endif
