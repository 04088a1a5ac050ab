/* The event: the only form in which recorder, trace file, text form and analysis exchange data.
 *
 * A trace is a sequence of events. The recorder makes them from kernel records, the trace file
 * (trace_writer.h, trace_reader.h) and the text form (text_form.h) store them, and the analysis
 * reads them. A round trip through either storage loses nothing that the analysis uses, so both
 * give identical figures.
 *
 * Times are CLOCK_MONOTONIC nanoseconds. pids and tids are the host's. Thread events carry the
 * state AFTER them. Strings are ids of the string pool that comes with the events (string_pool.h);
 * id 0 is always the empty string.
 */
#ifndef RLS_EVENT_H
#define RLS_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "analysis/base/string_pool.h"
#include "analysis/event/category.h"

/* Operations nested deeper than this are counted but not distinguished: the innermost of those
 * kept stays the active one. */
#define RLS_OPERATION_DEPTH_MAX 64

/* Numbers are in the trace file: append only. */
enum rls_event_kind {
	RLS_EVENT_PROCESS = 1, /* a process is seen for the first time (or renamed) */
	RLS_EVENT_PROCESS_END = 2,
	RLS_EVENT_THREAD = 3, /* a thread's life in the trace begins (or it is renamed) */
	RLS_EVENT_THREAD_END = 4,
	RLS_EVENT_CATEGORY = 5,
	RLS_EVENT_OPERATION = 6,
	RLS_EVENT_PHASE = 7,
	RLS_EVENT_LAUNCH = 8, /* a CUDA launch on the CPU */
	RLS_EVENT_GPU = 9, /* an interval on a GPU */
	RLS_EVENT_HITS =
		10, /* probe hits up to here since the thread's last such event; none: a cost
	                             * of what ends here, and the next such event tells of all before it too */
	RLS_EVENT_OFF_CPU = 11, /* time not running since the thread's last such event */
	RLS_EVENT_LIBRARY = 12, /* a mapped library that has a role */
	RLS_EVENT_HOST = 13,
	RLS_EVENT_LOSS = 14, /* total dropped in one buffer, so far */
	RLS_EVENT_CALIBRATION = 15, /* one calibrated figure */
	RLS_EVENT_WARNING = 16,
	RLS_EVENT_END = 17, /* the recording's end mark */
	RLS_EVENT_GPU_CLOCK = 18, /* one reading of how far a process's GPU clock is from ours */
	RLS_EVENT_CUDA_CALL = 19, /* a call into CUDA, at its end */
	RLS_EVENT_FRAME = 20, /* one place in the tree of stacks that samples were taken in */
	RLS_EVENT_SAMPLE = 21, /* what a thread was doing for a while, by sampling */
	RLS_EVENT_WINDOW = 22, /* tracing goes on or off, of every thread there is */
	RLS_EVENT_SHARE = 23, /* a category sample of a thread: what it seems to be in */
	RLS_EVENT_BUDGET = 24, /* how tracing was kept within the overhead budget, so far */
	RLS_EVENT_CLOCK = 25, /* a reading of the host's other clock, for traces of several hosts */
	RLS_EVENT_OPERATION_RULE =
		26, /* functions that are an operation where sampled stacks have them */
	RLS_EVENT_MEMORY_LINE = 27, /* what a line has allocated and freed, so far */
	RLS_EVENT_MEMORY_AGES = 28, /* how long its blocks lived, so far */
	RLS_EVENT_MEMORY_USE = 29, /* what a process, or it on one GPU, uses at an instant */
	RLS_EVENT_COPY_LINE = 30, /* what a line has copied, so far */
	RLS_EVENT_GPU_COPY = 31, /* what one copy on a GPU has moved */
	RLS_EVENT_LAYER_NAME = 32, /* what a layer of a model is called */
	RLS_EVENT_LAYER = 33, /* which layer a thread is in */
	RLS_EVENT_MAX = 34,
};

/* What a sampled thread was doing. Running: whose code it executed. Waiting: for what. */
enum rls_sample_kind {
	RLS_SAMPLE_PYTHON = 0, /* the interpreter's evaluation loop */
	RLS_SAMPLE_RUNTIME = 1, /* the rest of the interpreter: objects, memory, imports */
	RLS_SAMPLE_NATIVE = 2, /* any other code in user mode */
	RLS_SAMPLE_SYSTEM = 3, /* the kernel */
	RLS_SAMPLE_WAIT_LOCK = 4, /* a lock: the GIL, a condition, another thread's end */
	RLS_SAMPLE_WAIT_IO = 5,
	RLS_SAMPLE_WAIT_SLEEP = 6,
	RLS_SAMPLE_WAIT_CHILD = 7, /* another process's end */
	RLS_SAMPLE_WAIT_GPU = 8, /* the GPU's driver */
	RLS_SAMPLE_WAIT_CPU = 9, /* nothing but a free CPU */
	RLS_SAMPLE_WAIT_OTHER = 10, /* page faults, being stopped, and what is not known */
	RLS_SAMPLE_PROBE = 11, /* running: what the probes cost it */
	RLS_SAMPLE_KIND_MAX = 12,
};

enum rls_gpu_kind {
	RLS_GPU_KERNEL = 0,
	RLS_GPU_MEMCPY = 1,
	RLS_GPU_MEMSET = 2,
	RLS_GPU_SYNC = 3, /* a wait: never counts as busy */
	RLS_GPU_GRAPH = 4, /* a whole graph launch (when nodes are not traced) */
	RLS_GPU_KIND_MAX = 5,
};

/* Who reported a block of memory. */
enum rls_memory_source {
	RLS_MEMORY_TENSOR = 0, /* torch's allocator on the CPU */
	RLS_MEMORY_ARRAY = 1, /* PyTraceMalloc_Track: NumPy's arrays, and whoever else calls it */
	RLS_MEMORY_MALLOC = 2, /* the C library; what others have reported is left out */
	RLS_MEMORY_PYTHON = 3, /* Python's own allocators */
	RLS_MEMORY_GPU = 4, /* a caching allocator of a GPU's memory */
	RLS_MEMORY_SOURCE_MAX = 5,
};

enum rls_memory_method {
	RLS_MEMORY_COUNTED = 0, /* every block */
	RLS_MEMORY_SAMPLED = 1, /* some blocks, each of which stands for others */
	RLS_MEMORY_SCALED = 2, /* every block in windows */
	RLS_MEMORY_METHOD_MAX = 3,
};

/* From which memory to which. */
enum rls_copy_kind {
	RLS_COPY_H2H = 0, /* from main memory to main memory */
	RLS_COPY_H2D = 1, /* to a GPU */
	RLS_COPY_D2H = 2,
	RLS_COPY_D2D = 3,
	RLS_COPY_KIND_MAX = 4,
};

/* Calls of layers nested deeper than this count for the innermost of those kept. */
#define RLS_LAYER_DEPTH_MAX 64

/* What a thread does to a model's layers. */
enum rls_layer_pass {
	RLS_PASS_OUTSIDE = 0, /* nothing: it is in none */
	RLS_PASS_FORWARD = 1,
	RLS_PASS_BACKWARD = 2,
	RLS_PASS_RECOMPUTE = 3, /* a forward within a backward */
	RLS_PASS_OPTIMIZER = 4,
	RLS_PASS_UNKNOWN = 5, /* layers are not traced any more */
	RLS_PASS_MAX = 6,
};

/* Where the blocks of an event were allocated. Events of equal fields are of the same line. */
struct rls_memory_line {
	rls_string_id file; /* of the innermost Python frame, as the target sees it; "": none */
	rls_string_id function; /* qualified as far as known */
	uint32_t line; /* 0: none, or none known */
	enum rls_memory_source source;
	uint32_t device; /* source gpu: its number; else 0 */
	rls_string_id operation; /* the innermost of the allocating thread at that instant */
	rls_string_id phase;
};

struct rls_event {
	enum rls_event_kind kind;
	uint32_t pid;
	uint32_t tid; /* 0 where the event belongs to the process or to nobody */
	uint64_t time_ns; /* for GPU events: the interval's start */
	union {
		struct {
			uint32_t ppid;
			uint32_t ns_pid; /* pid inside its own pid namespace; 0: same as pid */
			rls_string_id name;
			rls_string_id python; /* "3.11.2", "" when it is not Python */
			rls_string_id cmdline; /* JSON array text, "" when unknown */
			rls_string_id container; /* container id, "" when on the host */
		} process;
		struct {
			rls_string_id name;
			uint32_t ns_tid;
		} thread;
		struct {
			enum rls_category category;
		} category;
		struct {
			uint16_t depth; /* entries in stack, outermost first */
			/* So many of them, the outermost, this event does not enter: another thread
			 * has, or this one had, and has come back to them. */
			uint16_t continued;
			rls_string_id stack[RLS_OPERATION_DEPTH_MAX];
		} operation;
		struct {
			rls_string_id phase;
		} phase;
		struct {
			rls_string_id name; /* CUDA entry point */
			uint64_t correlation;
		} launch;
		struct {
			uint64_t end_ns;
			uint64_t correlation; /* 0: none */
			uint32_t device;
			uint32_t stream;
			enum rls_gpu_kind kind;
			rls_string_id name;
		} gpu;
		struct {
			uint64_t count; /* every hit, silent ones included */
			uint64_t cost_ns; /* what they cost by the calibration */
		} hits;
		struct {
			uint64_t ns;
		} off_cpu;
		struct {
			rls_string_id path; /* as the target sees it */
			rls_string_id role; /* "simulator", "backend", "cuda", "python", "native" */
			uint32_t sites;
		} library;
		struct {
			rls_string_id kernel;
			rls_string_id gpus; /* JSON array text, "" for none */
			rls_string_id tool; /* "rlscope-bpf x.y.z" that recorded */
			uint32_t cpus;
		} host;
		struct {
			rls_string_id
				boot; /* the kernel's boot id: same boot, same CLOCK_MONOTONIC */
			uint64_t realtime_ns; /* CLOCK_REALTIME at time_ns */
			uint64_t width_ns; /* what the reading is uncertain by */
		} clock;
		struct {
			rls_string_id buffer; /* "transitions", "control", ... */
			uint64_t dropped;
		} loss;
		struct {
			rls_string_id name; /* "emulated.entry.silent", ... */
			double value_ns;
			double error_ns; /* half width of the 95 % interval */
		} calibration;
		struct {
			rls_string_id text;
		} warning;
		struct {
			double gap_ns; /* CUPTI's own clock less CLOCK_MONOTONIC */
			uint64_t width_ns; /* what the reading is uncertain by */
			double drift_ppm; /* of the gap, since the process's first reading */
		} gpu_clock;
		struct {
			rls_string_id name; /* of the outermost entry point */
			uint64_t duration_ns; /* until time_ns; nested calls are part of it */
			uint32_t launches; /* 1 when it is one that starts work, else 0 */
		} cuda_call;
		struct {
			uint32_t id; /* from 1 */
			uint32_t parent; /* the caller's; 0: none */
			uint32_t line; /* 0: none, or none known */
			bool native; /* no Python: a function of a library */
			rls_string_id
				function; /* qualified as far as known; "" when it has no name */
			rls_string_id file; /* as the target sees it */
		} frame;
		struct {
			uint32_t frame; /* innermost; 0: nothing is known of the stack */
			enum rls_sample_kind kind;
			enum rls_category code; /* of the library that runs; 0: none with a role */
			uint64_t ns; /* that it stands for; waits: up to time_ns */
			uint32_t every; /* waits: one of so many was sampled; 0: all */
		} sample;
		struct {
			rls_string_id operation;
			rls_string_id function; /* globs: of names, */
			rls_string_id file; /* and of files; "": any */
		} operation_rule;
		struct {
			bool complete;
		} end;
		struct { /* sums since the recording began; frees: of blocks that were born in it */
			struct rls_memory_line of;
			uint64_t allocs, alloc_bytes;
			uint64_t frees, freed_bytes;
			uint64_t peak_bytes; /* the most that lived at once */
			uint64_t temporary_bytes; /* of freed_bytes: lived less than 10 ms */
			uint64_t error_bytes; /* of alloc_bytes, one standard deviation */
			enum rls_memory_method method;
		} memory_line;
		struct { /* sums since the recording began */
			struct rls_memory_line of; /* of no source */
			enum rls_copy_kind kind;
			uint64_t copies;
			uint64_t bytes; /* that were written */
		} copy_line;
		struct {
			uint64_t correlation; /* of its launch; 0: none */
			enum rls_copy_kind kind;
			uint64_t bytes;
		} gpu_copy;
		struct { /* blocks that lived from_ns <= ns < to_ns */
			struct rls_memory_line of;
			bool freed; /* else they live at time_ns, and that is their age */
			uint64_t from_ns, to_ns;
			uint64_t count, bytes;
		} memory_ages;
		struct { /* 0: not known */
			bool gpu; /* of the process on one GPU, device; else of its main memory */
			uint32_t device;
			uint64_t rss_bytes; /* resident */
			uint64_t used_bytes; /* of the limit: by all for which it holds */
			uint64_t limit_bytes; /* a cgroup's, or all that the machine or GPU has */
			uint64_t allocated_bytes, reserved_bytes; /* by a GPU's caching allocator */
			bool out_of_memory; /* an allocation has failed, or the kernel chose it to die */
		} memory_use;
		struct { /* one object of the process; of equal ids the last event counts */
			uint32_t id; /* from 1 */
			uint32_t parent; /* the layer that has it; 0: none, or none known */
			rls_string_id path; /* within the outermost layer; "": it is that */
			rls_string_id raw_path; /* with the parts that wrappers add; "": the same */
			rls_string_id type; /* its class */
		} layer_name;
		struct {
			uint32_t id; /* of the innermost; 0: none */
			uint32_t
				depth; /* calls that are open; RLS_LAYER_DEPTH_MAX at most are kept */
			bool begun; /* this is the begin of a call */
			enum rls_layer_pass pass;
		} layer;
		struct {
			bool open; /* from here on every boundary is traced */
		} window;
		struct {
			enum rls_category category; /* inferred from the code it executes */
			uint64_t waited_ns; /* 0: it is running; else it has waited there so long */
		} share;
		struct {
			double percent; /* of the time */
			double given_up_percent; /* of the time, at most: went to callers */
			uint32_t windowed_sites;
			uint32_t given_up_sites;
		} budget;
	};
};

#endif
