/* Calibration file: the calibration of this boot, measured once and read by every later recorder.
 *
 * A JSON file in /run, which a reboot deletes. It says for which boot, kernel, model of CPU and way of
 * attaching it holds; others are ignored. Its content is not trusted: the file must be a regular one that
 * only its owner, root or ourselves, can write, and every figure must be possible.
 */
#ifndef RLS_CALIBRATION_FILE_H
#define RLS_CALIBRATION_FILE_H

#include <stddef.h>

#include "userspace/attach/calibration/calibrate.h"

#define RLS_CALIBRATION_PATH "/run/rlscope-bpf/calibration.json"
#define RLS_WORKLOADS_MAX 64
#define RLS_COMMAND_BYTES 4096
#define RLS_CUDA_COSTS_MAX 24
#define RLS_CUDA_NAME_BYTES 64
#define RLS_OPERATION_COSTS_MAX 32
#define RLS_OPERATION_BYTES 128

/* What a call into CUDA takes longer while CUPTI is armed (record/gpu/cupti_overhead.h). */
struct rls_cuda_cost {
	char name[RLS_CUDA_NAME_BYTES];
	double ns, error_ns;
};

/* As the file has them, and `calibrate --json`. The caller's to release. */
struct json_t *rls_cuda_costs_describe(const struct rls_cuda_cost *costs, size_t count);

/* What hits in one operation cost; "": outside any. */
struct rls_operation_cost {
	char operation[RLS_OPERATION_BYTES];
	double factor, error; /* as the workload's */
};

/* As the file has them, and `calibrate --json`. The caller's to release. */
struct json_t *rls_operation_costs_describe(const struct rls_operation_cost *costs, size_t count);

/* What was found in a job with this command line, with and without probes. */
struct rls_workload {
	char command[RLS_COMMAND_BYTES]; /* its words as a JSON array */
	double factor; /* what its hits cost, as a share of what its calibration says */
	double error; /* half width of its 95 % interval, for a short recording */
	/* Factors are relative to this one. Another calibration with the same mean hit may differ by a quarter for the
	 * job's own mixture of paths, hot and cold. */
	struct rls_calibration calibration;
	struct rls_cuda_cost cuda[RLS_CUDA_COSTS_MAX];
	size_t cuda_count;
	/* Of operations with enough hits; other hits have the factor of the whole. */
	struct rls_operation_cost operations[RLS_OPERATION_COSTS_MAX];
	size_t operation_count;
};

/* Where figures are from. */
enum rls_calibration_source {
	RLS_CALIBRATED_BY_RECORDING, /* one of this boot, at its start */
	RLS_CALIBRATED_BY_COMMAND, /* `calibrate` */
	RLS_CALIBRATED_IN_JOB, /* `calibrate --pid`; never a file's */
	RLS_CALIBRATED_NOT, /* the default; never a file's */
	RLS_CALIBRATION_SOURCES
};

/* "recording", "calibrate", "job", "default" */
const char *rls_calibration_source_name(enum rls_calibration_source source);

struct rls_calibration_file {
	struct rls_calibration calibration;
	enum rls_calibration_source source;
	double until_s; /* used until then, by CLOCK_BOOTTIME; 0: for as long as it holds */
	struct rls_workload *workloads; /* the latest first */
	size_t workload_count;
	/* Of this process, in no file. */
	const char *kept; /* it was measured now: for how long it is kept, in words; else NULL */
	int failure; /* why it could not be measured, -errno; 0: it was, or was there */
};

/* What a calibration holds for. */
struct rls_calibration_scope {
	char boot[64];
	char kernel[128];
	char cpu[128]; /* model, empty where it is not known */
	const char *way; /* "multi" or "perf" */
};

void rls_calibration_file_clear(struct rls_calibration_file *file);

/* This boot of this host. 0 or -errno. */
int rls_calibration_scope_init(struct rls_calibration_scope *scope, enum rls_attach_way way);

/* Pure: the text of a file into figures and back; *text is the caller's to free. -EINVAL for
 * what is no calibration, -ESTALE for one of another scope or version. */
int rls_calibration_parse(const char *text, size_t length,
			  const struct rls_calibration_scope *scope,
			  struct rls_calibration_file *out);
int rls_calibration_format(const struct rls_calibration_file *file,
			   const struct rls_calibration_scope *scope, char **text);

/* -ENOENT when there is none, -EPERM when others could have written it, else as above. */
int rls_calibration_load(const char *path, const struct rls_calibration_scope *scope,
			 struct rls_calibration_file *out);
/* Makes the folder when it is missing; replaces the file at once or not at all. */
int rls_calibration_save(const char *path, const struct rls_calibration_scope *scope,
			 const struct rls_calibration_file *file);

/* A factor of the workload's as a share of what another calibration says, as far as their mean hits can tell. */
double rls_workload_rescale(const struct rls_workload *workload, double factor,
			    const struct rls_calibration *calibration);

/* What is known of this command (a JSON array, as RLS_EVENT_PROCESS has it), or NULL. */
struct rls_workload *rls_calibration_workload(const struct rls_calibration_file *file,
					      const char *command);
/* Puts it first, in place of what was known of the command; the oldest beyond the limit is
 * forgotten. 0 or -ENOMEM. */
int rls_calibration_add_workload(struct rls_calibration_file *file,
				 const struct rls_workload *workload);

#endif
