/* Rows: what a report consists of, as plain data.
 *
 * One struct a table, and struct rls_report, which has an array of each. tables.c describes them to
 * what treats all tables alike. Words and definitions are the contract of the JSON form
 * (writers/table/report.schema.json). Strings are owned by the report, valid UTF-8.
 */
#ifndef RLS_ROWS_H
#define RLS_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/event/bounded.h"
#include "analysis/event/category.h"
#include "analysis/event/event.h"
#include "analysis/memory/report_rows.h"

enum rls_resource {
	RLS_RESOURCE_CPU = 0,
	RLS_RESOURCE_GPU = 1, /* the GPU works while no thread of the process is traced */
	RLS_RESOURCE_CPU_GPU = 2,
	RLS_RESOURCE_MAX = 3,
};

/* How a figure came about; ordered from best to worst. */
enum rls_method {
	RLS_METHOD_TRACED = 0,
	RLS_METHOD_SAMPLED = 1,
	RLS_METHOD_SCALED = 2,
	RLS_METHOD_MAX = 3,
};

/* "cpu", "gpu", "cpu+gpu"; "traced", ... Static storage. */
const char *rls_resource_name(enum rls_resource resource);
const char *rls_method_name(enum rls_method method);

/* What distinguishes rows, beside category and resource. */
enum rls_group {
	RLS_GROUP_NONE = 0, /* process, thread, phase and operation: all there is */
	RLS_GROUP_PROCESS = 1,
	RLS_GROUP_THREAD = 2,
	RLS_GROUP_OPERATION = 3, /* per process */
	RLS_GROUP_PHASE = 4, /* per process */
	RLS_GROUP_LINE = 5, /* of samples; the traced figures as by process */
	RLS_GROUP_FUNCTION = 6,
	RLS_GROUP_FILE = 7,
	RLS_GROUP_LAYER = 8, /* of layers; the traced figures as by process, like the next two */
	RLS_GROUP_LAYER_TYPE = 9,
	RLS_GROUP_PASS = 10,
	RLS_GROUP_MAX = 11,
};

struct rls_library_entry {
	const char *path; /* as the target sees it */
	const char *role;
	uint32_t sites;
};

struct rls_host_entry {
	const char *boot; /* the kernel's id of the boot; "" when unknown */
	const char *kernel;
	uint32_t cpus;
};

struct rls_process_entry {
	uint32_t pid; /* of several hosts' a number of its own where they clash: */
	uint32_t ppid;
	uint32_t ns_pid; /* 0 when it is pid */
	uint32_t host; /* index into the report's hosts */
	uint32_t host_pid; /* there; 0 when it is pid (host_pid.h) */
	const char *name;
	const char *python; /* version, "" when unknown */
	const char *container; /* "" on the host */
	const char **cmdline;
	size_t cmdline_count;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;
	struct rls_library_entry *libraries;
	size_t library_count;
};

struct rls_thread_entry {
	uint32_t pid;
	uint32_t tid;
	const char *name;
	uint64_t wall_ns; /* exactly the sum of its cpu and cpu+gpu rows */
	uint64_t on_cpu_ns;
	uint64_t corrected_ns; /* likewise */
	uint64_t error_ns; /* of corrected_ns: what cancels in the sum is not in it */
};

/* Why a row's corrected_ns may be wrong. Each part is half the width of a 95 % interval, or a bound,
 * which is no less. What is wrong in one row is wrong in another, too:
 *
 *     shared   in the same direction: parts add up
 *              subtracted × (relative error of the calibration) + wall × lost / (lost + emitted)
 *              + what was subtracted for other threads' hits
 *              + what CUPTI may have cost beyond what was charged for it (cupti_error.h)
 *     moved    in the opposite direction: cost of other rows' hits that this row may have borne, or,
 *              below 0, of its hits that others may have. Over a thread it sums to 0
 *     split    which category untraced time is of (untraced_time.h), squared: the draws of different
 *              threads and operations are independent, and over all categories it cancels
 *     divided  which operation the time is of (sampled_operations.h): over all operations it cancels
 *
 * subtracted = wall_ns - corrected_ns. The relative error is the error / value of the figure that was
 * measured for such hits, 25 % without any, at most 100 %. lost and emitted are the numbers of
 * thread-state events of the whole recording: a lost event leaves a thread in its old state until
 * its next event. */
struct rls_row_error {
	uint64_t shared_ns;
	double moved_ns;
	double split_ns2;
	uint64_t divided_ns;
};

/* What was added up, which says what cancels. */
enum rls_error_of {
	RLS_ERROR_OF_ROWS = 0, /* of one category */
	RLS_ERROR_OF_CATEGORIES = 1, /* all of them */
	RLS_ERROR_OF_ALL = 2, /* all categories and operations */
};

void rls_row_error_add(struct rls_row_error *into, const struct rls_row_error *more);

/* Half the width of the 95 % interval of what rows with wall_ns of time sum to: never more than that,
 * except where samples say whose it is. */
uint64_t rls_row_error_ns(const struct rls_row_error *error, enum rls_error_of of,
			  uint64_t wall_ns);

struct rls_breakdown_row {
	uint32_t pid;
	uint32_t tid; /* 0 for resource gpu, and where rows were grouped over threads */
	const char *phase;
	const char *operation;
	enum rls_category category; /* meaningless for resource gpu: shown as "" */
	enum rls_resource resource;
	enum rls_method method;
	uint64_t wall_ns;
	uint64_t on_cpu_ns;
	uint64_t corrected_ns;
	uint64_t
		induced_wait_ns; /* of what it is corrected by, what lies in waiting for other threads' hits */
	uint64_t error_ns;
	enum rls_method undivided_method; /* without the question which operation the time is of */
	struct rls_row_error error; /* of which error_ns follows */
};

/* The category column of a row: "" for GPU time without a thread. */
const char *rls_breakdown_row_category(const struct rls_breakdown_row *row);

struct rls_transition_row {
	uint32_t pid;
	uint32_t tid;
	const char *phase;
	const char *operation;
	enum rls_category from;
	enum rls_category to;
	uint64_t count; /* or RLS_COUNT_UNKNOWN */
	enum rls_method method; /* scaled: from the time that was traced to all of it */
	uint64_t count_error; /* half width; of a traced count by what was lost */
};

/* How often an operation was entered. One already running when its thread's life in the trace
 * begins counts as entered then. */
struct rls_operation_row {
	uint32_t pid;
	uint32_t tid;
	const char *phase; /* in which it was entered */
	const char *operation;
	uint64_t entries;
};

/* A thread's time by all its operations, not the innermost alone: what a flame graph shows.
 * Sums of wall_ns are those of the threads. No part of the JSON form. */
struct rls_stack_row {
	uint32_t pid;
	uint32_t tid;
	const char *phase;
	const char **operations; /* outermost first */
	size_t depth;
	enum rls_category category;
	bool gpu_alone; /* the GPU at work without a thread: tid 0, gpu_ns only */
	uint64_t wall_ns;
	uint64_t on_cpu_ns;
	uint64_t corrected_ns;
	uint64_t gpu_ns; /* of wall_ns, the GPU busy meanwhile */
	uint64_t transitions; /* into the category */
};

/* What samples say of a place in the program. The first fields are uint64_t all of them. */
struct rls_sampled_times {
	uint64_t samples;
	uint64_t python_ns; /* the interpreter, */
	uint64_t runtime_ns; /* of it what is not the evaluation of code itself */
	uint64_t native_ns; /* libraries called from there */
	uint64_t system_ns; /* the kernel for it */
	uint64_t waiting_ns; /* not running, of it: */
	uint64_t lock_ns, io_ns, sleep_ns, child_ns, gpu_ns, run_queue_ns, other_ns;
	uint64_t error_ns; /* half width of the 95 % interval of their sum */
	double variance_ns2;
	double few_ns;
};

/* Half width of the 95 % interval of a sum of samples that has this variance. few_ns: what so few samples as there are may
 * hide, even none; the same for all rows of a process (rls_build_few_ns). */
uint64_t rls_interval_95_ns(double variance_ns2, double few_ns);

/* error_ns from the variance. */
void rls_sampled_times_derive(struct rls_sampled_times *times);

/* Adds the figures of one to another's, errors by their variances. */
void rls_sampled_times_add(struct rls_sampled_times *into, const struct rls_sampled_times *more);

/* A source line by the samples whose innermost Python frame it is; file "", line 0 for those
 * in no Python code. */
struct rls_line_row {
	uint32_t pid;
	const char *file;
	uint32_t line; /* 0: the function's code without a line */
	const char *function;
	const char *phase;
	const char *operation;
	struct rls_sampled_times times;
};

/* A function: its own time as lines have it, and the total with what it called. Native
 * functions' time is in their Python callers' as well. */
struct rls_function_row {
	uint32_t pid;
	const char *file;
	const char *function;
	bool native;
	const char *phase;
	const char *operation;
	uint64_t total_ns;
	struct rls_sampled_times times;
};

/* Samples by what the trace says of the thread then: to hold the two against each other. */
struct rls_sample_row {
	uint32_t pid;
	const char *phase;
	const char *operation;
	enum rls_category category;
	enum rls_sample_kind kind;
	uint64_t samples;
	uint64_t ns;
	uint64_t error_ns;
	double variance_ns2, few_ns;
};

/* A category's running time in a process by the trace and by samples, both while everything was
 * traced: what is looked at in between (untraced_time.h) is no check of it. */
struct rls_check_row {
	uint32_t pid;
	enum rls_category category;
	uint64_t traced_ns;
	uint64_t sampled_ns;
	uint64_t error_ns; /* half width of its 95 % interval */
	uint64_t unseen_ns; /* of sampled_ns, in code of another category: what probes missed */
	uint64_t probes_ns; /* of sampled_ns, at probed addresses: what probes cost */
	double variance_ns2, few_ns;
};

/* A library by the samples of running code in it, all its functions together. */
struct rls_sampled_library_row {
	uint32_t pid;
	const char *path; /* as the target sees it */
	const char *role; /* as libraries have it; "" when it has none */
	uint64_t samples;
	uint64_t ns;
	uint64_t error_ns; /* half width of the 95 % interval of ns */
	uint64_t python_ns; /* of ns, while the trace said python */
	uint64_t unknown_ns; /* of ns, while the trace said nothing of the thread */
	uint64_t native_ns; /* of ns, while the trace said native; in no machine form */
	double percent; /* ns, of all samples of running code of the process */
	double variance_ns2, few_ns;
};

/* The category of a library's role, false for "python", "" and other words. */
bool rls_report_role_category(const char *role, enum rls_category *out);

/* A frame of sampled stacks; its callers are found by going up. */
struct rls_stack_frame {
	uint32_t parent; /* 1 + index of the caller; 0: none, or not known */
	uint32_t line; /* 0: none, or not known */
	const char *function; /* "" when it has no name */
	const char *file; /* as the target sees it; of a native one its library */
	bool native;
};

/* No stack is shown further up than so many frames. */
#define RLS_STACK_FRAMES_MAX 512

/* Samples by the whole stack they were taken in: what a profile shows. Their sums are those
 * of rls_sample_row. No part of the JSON form. */
struct rls_sampled_stack_row {
	uint32_t pid;
	const char *phase;
	const char **operations; /* outermost first */
	size_t depth;
	enum rls_category category;
	enum rls_sample_kind kind;
	uint32_t frame; /* 1 + index of the innermost; 0: nothing is known */
	uint64_t samples;
	uint64_t ns;
};

struct rls_gpu_operation {
	const char *phase;
	const char *operation;
	uint64_t busy_ns; /* union of the intervals it launched */
	uint64_t kernels;
	uint64_t kernel_ns; /* sum */
	uint64_t idle_host_late_ns; /* of the device, until work of this operation began: why */
	uint64_t idle_queue_ns; /* (analysis/gpu/gpu_work.h) */
	uint64_t idle_other_ns;
};

struct rls_gpu_entry {
	uint32_t pid;
	uint32_t device;
	uint64_t busy_ns; /* union; kernels, copies, sets, graphs; never waits */
	uint64_t kernel_ns; /* sums */
	uint64_t memcpy_ns;
	uint64_t kernels;
	uint64_t idle_host_late_ns; /* between its first and its last work: sums over operations */
	uint64_t idle_queue_ns;
	uint64_t idle_other_ns;
	double smi_style_percent; /* what a sampler of "was any kernel running" would say */
	struct rls_gpu_operation *operations; /* by the operation that launched */
	size_t operation_count;
};

/* Calls into CUDA: outermost ones, those in them are part of them. */
struct rls_cuda_call_row {
	uint32_t pid;
	uint32_t tid;
	const char *phase;
	const char *operation; /* in which they ended */
	const char *name; /* of the entry point, as its library exports it */
	uint64_t count; /* these three may be RLS_COUNT_UNKNOWN */
	uint64_t wall_ns;
	uint64_t launches; /* of them, those that start work on a GPU */
	enum rls_method method; /* scaled: from the time that was traced to all of it */
	uint64_t count_error; /* half widths */
	uint64_t error_ns;
};

/* What an operation spent in CUDA's calls, and what the kernels that it launched took, over
 * all threads and devices of a process. */
struct rls_cuda_operation_row {
	uint32_t pid;
	const char *phase;
	const char *operation;
	uint64_t calls; /* these three may be RLS_COUNT_UNKNOWN */
	uint64_t api_ns;
	uint64_t launches;
	uint64_t kernels;
	uint64_t kernel_ns;
	double api_to_kernel; /* api_ns / kernel_ns; 0 when it launched no kernel, NAN when unknown */
	enum rls_method method; /* of calls, api_ns and launches; kernels are all counted */
	uint64_t count_error; /* of calls, half width */
	uint64_t error_ns; /* of api_ns, half width */
};

/* How far CUPTI's own clock was from CLOCK_MONOTONIC, on which all times here are. */
struct rls_gpu_clock_row {
	uint32_t pid;
	uint64_t readings;
	double gap_ns; /* the one farthest from 0 */
	uint64_t width_ns; /* the widest: what a reading is uncertain by */
	double drift_ppm; /* of the gap, over all readings */
};

/* A thread's time in one layer of its model, in one pass; or in none. A thread's rows sum to its wall_ns. */
struct rls_layer_row {
	uint32_t pid;
	uint32_t tid;
	uint64_t id; /* RLS_COUNT_UNKNOWN: in no layer; the same for the next two */
	uint64_t parent; /* also of a layer that no other has */
	uint64_t index; /* so many layers of the process began before it */
	const char *path;
	const char *type;
	const char *phase;
	const char *operation;
	const char *raw_path;
	enum rls_layer_pass pass;
	uint64_t calls; /* begun */
	uint64_t self_ns;
	uint64_t cumulative_ns; /* with the layers that it calls */
	uint64_t on_cpu_ns; /* of self_ns */
	uint64_t corrected_ns; /* the same */
	uint64_t error_ns;
	enum rls_method method;
	struct rls_row_error error;
};

struct rls_calibration_entry {
	const char *name;
	double value_ns;
	double error_ns;
};

/* Where the figures of a calibration are from; the later, the less sure. */
enum rls_report_calibration {
	RLS_REPORT_CALIBRATION_UNKNOWN, /* of a trace that does not say */
	RLS_REPORT_CALIBRATION_JOB, /* `calibrate --pid` */
	RLS_REPORT_CALIBRATION_COMMAND, /* `calibrate` */
	RLS_REPORT_CALIBRATION_RECORDING, /* a recording of the same boot, at its start */
	RLS_REPORT_CALIBRATION_DEFAULT, /* not measured */
	RLS_REPORT_CALIBRATION_MAX
};

/* "job", "calibrate", "recording", "default"; NULL where it is unknown. */
const char *rls_report_calibration_name(enum rls_report_calibration source);

/* How the recording was kept within its budget; percent 0: everything was traced. */
struct rls_budget_entry {
	double percent; /* what was asked for */
	uint64_t windows; /* stretches in which every site was traced */
	uint64_t
		traced_ns; /* of the threads' time; the rest is known by samples (untraced_time.h) */
	uint64_t samples;
	uint32_t windowed_sites; /* probed in windows only */
	uint32_t
		given_up_sites; /* their calls count as their callers' time, and as no transitions */
	double given_up_percent; /* of the time, at most, in such calls */
};

struct rls_overhead {
	uint64_t hits; /* every probe hit, silent ones included */
	uint64_t events; /* emitted category, operation, phase and launch events */
	uint64_t estimated_ns; /* hits × calibrated cost; what could not be subtracted included */
	double percent; /* of the threads' wall time */
	struct rls_budget_entry budget;
	struct rls_calibration_entry *calibration;
	size_t calibration_count;
	enum rls_report_calibration calibration_source; /* of several traces the least sure */
};

struct rls_loss_entry {
	const char *buffer;
	uint64_t dropped;
};

/* What a thread did over time, coarsely: overview.h says how time is cut. */
struct rls_overview_part {
	uint64_t bucket; /* covers [bucket << shift, bucket + 1 << shift) */
	const char *phase;
	const char *operation; /* NULL: several operations in one */
	enum rls_category category;
	uint64_t wall_ns;
	uint64_t gpu_ns; /* of wall_ns, with the GPU busy */
};

struct rls_overview_entry {
	uint32_t pid;
	uint32_t tid;
	unsigned int shift;
	uint64_t start_ns; /* of the first part's bucket */
	struct rls_overview_part *parts; /* by bucket; they sum to the thread's wall_ns */
	size_t part_count;
};

struct rls_report {
	const char *tool; /* that recorded the trace */
	bool timed; /* the trace has any instant; else 0 to 0 */
	uint64_t start_ns; /* earliest and latest instant of the trace */
	uint64_t end_ns;
	bool complete; /* the end mark says so and nothing was unreadable */
	enum rls_group group;

	bool clocked; /* the next four are known (trace_metadata.h); of the first trace that
				     * has a clock, where several are merged */
	const char *boot;
	int64_t clock_offset_ns;
	uint64_t clock_width_ns, clock_change_ns;

	const char *kernel;
	const char *gpus; /* JSON array text, always valid */
	uint32_t cpus;

	struct rls_host_entry *hosts; /* none unless there are several */
	size_t host_count;
	struct rls_process_entry *processes;
	size_t process_count;
	struct rls_thread_entry *threads;
	size_t thread_count;
	struct rls_breakdown_row *breakdown;
	size_t breakdown_count;
	struct rls_transition_row *transitions;
	size_t transition_count;
	struct rls_operation_row *operations;
	size_t operation_count;
	struct rls_stack_row *stacks; /* never grouped */
	size_t stack_count;
	struct rls_gpu_entry *gpu;
	size_t gpu_count;
	struct rls_line_row *lines; /* empty without samples, like the next two */
	size_t line_count;
	struct rls_function_row *functions;
	size_t function_count;
	struct rls_sample_row *samples;
	size_t sample_count;
	struct rls_check_row *checks; /* never grouped */
	size_t check_count;
	struct rls_sampled_library_row *sampled_libraries; /* never grouped */
	size_t sampled_library_count;
	struct rls_stack_frame *stack_frames;
	size_t stack_frame_count;
	struct rls_sampled_stack_row *sampled_stacks; /* never grouped */
	size_t sampled_stack_count;
	struct rls_cuda_call_row *cuda_calls;
	size_t cuda_call_count;
	struct rls_cuda_operation_row *cuda_operations; /* never grouped */
	size_t cuda_operation_count;
	struct rls_gpu_clock_row *gpu_clocks;
	size_t gpu_clock_count;
	struct rls_memory_line_row
		*memory_lines; /* these four are empty where memory was not recorded */
	size_t memory_line_count;
	struct rls_copy_row *copies;
	size_t copy_count;
	struct rls_memory_row *memory; /* never grouped, like the next */
	size_t memory_count;
	struct rls_memory_timeline_row *memory_timeline;
	size_t memory_timeline_count;
	struct rls_layer_row *layers; /* empty where no layer is known */
	size_t layer_count;
	struct rls_overhead overhead;
	struct rls_loss_entry *losses;
	size_t loss_count;
	const char **warnings;
	size_t warning_count;
	struct rls_overview_entry *overviews; /* one per thread that lived; never grouped */
	size_t overview_count;

	struct rls_string_pool *strings; /* every string above */
};

#endif
