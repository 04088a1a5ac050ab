/* Options that every recorder shares (attach, run): parsed into a struct, by argp. */
#ifndef RLS_RECORD_OPTIONS_H
#define RLS_RECORD_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "analysis/writers/write.h"
#include "userspace/commands/options/seconds.h"
#include "userspace/discover/roles/roles.h"
#include "userspace/record/events/operation_globs.h"
#include "userspace/record/recorder_options.h"

#define RLS_SAMPLE_HZ_MAX 10000
#define RLS_SAMPLE_HZ 199 /* unless said; fewer with a budget below 4 % */
#define RLS_SAMPLE_HZ_LEAST 19
#define RLS_SAMPLE_HZ_UNSAID UINT32_MAX

struct rls_record_options {
	char *trace_path; /* NULL: rlscope-PID.trace */
	char *report_path; /* NULL: stdout */
	const char *config_path;
	const struct rls_report_writer *writer;
	struct rls_roles *roles;
	struct rls_operation_globs operations;
	uint64_t duration_ns;
	double budget_percent; /* < 0: none, trace everything */
	unsigned int sample_hz; /* 0: no samples; once finished never RLS_SAMPLE_HZ_UNSAID */
	enum rls_memory_mode memory;
	bool layers;
	unsigned int layer_depth;
	bool children;
	bool verify;
	bool perf_events;
	bool alternate; /* calibrate --pid alone */
	bool verbose;
};

/* Defaults, and the roles of the built-in table. 0 or -errno. */
int rls_record_options_init(struct rls_record_options *options);
void rls_record_options_clear(struct rls_record_options *options);

/* To be a child of each recorder's own argp; its input is a struct rls_record_options. A
 * bad argument is said on stderr and ends parsing with EINVAL. */
extern const struct argp rls_record_argp;
/* The part of it that is not about traces and reports, for the monitor. */
extern const struct argp rls_tracing_argp;

/* After parsing: configuration files, checks. 0 or -errno, said on stderr. */
int rls_record_options_finish(struct rls_record_options *options);

#endif
