/* Calibration cache: what probe hits cost on this machine, measured once a boot and kept for all
 * recorders.
 */
#ifndef RLS_CALIBRATION_CACHE_H
#define RLS_CALIBRATION_CACHE_H

#include "userspace/attach/calibration/calibration_file.h"

/* Reads the calibration of this boot and sees whether it still holds, hot and amid other work: in a fraction of a
 * second, or one where it seems not to; without one that holds measures anew, in one, and keeps that: for ten
 * minutes, where the machine is too busy for steady figures. Where it cannot measure it uses a default
 * whose error is all of it. Before any target is tracked; takes the handler of the kernel's records for itself. Sets
 * the kernel's costs.
 *
 * Of a command (as RLS_EVENT_PROCESS has it, or NULL) that was calibrated by itself it is that one's own, which stands:
 * measured anew, the machine's would say as much of all hits, and up to a quarter more or less of this command's mixture. Where
 * it seems not to hold that is said, and what was found of the command is wrong by as much.
 * out->source says which is used. *out is the caller's to clear. */
void rls_calibration_cache_open(struct rls_kernel *kernel, const char *command,
				struct rls_calibration_file *out);

/* Says that it was measured for this recording, or warns that it could not be. When recording begins: what keeps one from
 * beginning is said alone. */
void rls_calibration_cache_announce(const struct rls_calibration_file *file);

/* For `calibrate`: measured anew at length whatever is known; what is known of workloads stays. *out is the caller's
 * to clear. 0 or -errno, and has said why. */
int rls_calibration_cache_measure(struct rls_kernel *kernel,
				  const struct rls_calibration_effort *effort,
				  struct rls_calibration_file *out);

#endif
