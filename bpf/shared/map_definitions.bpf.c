#include "bpf/shared/interpreter.bpf.h"
#include "bpf/shared/maps.bpf.h"

struct threads_map threads SEC(".maps");
struct tracked_map tracked SEC(".maps");
struct ranges_map ranges SEC(".maps");
struct interpreters_map interpreters SEC(".maps");
struct images_map images SEC(".maps");
struct names_map names_sent SEC(".maps");
struct annotated_threads_map annotated_threads SEC(".maps");
struct site_hits_map site_hits SEC(".maps");
struct cells_map cells SEC(".maps");
struct scopes_map scopes SEC(".maps");
struct site_calls_map site_calls SEC(".maps");
struct transitions_map transitions SEC(".maps");
struct ring_map control SEC(".maps");
struct ring_map gpu SEC(".maps");

const volatile bool totals_mode = false;
const volatile bool windows = false;
const volatile bool stacks_sampled = false;
const volatile bool each_off_cpu = false;
const volatile __u32 transitions_mask = 0;
const volatile __u32 transitions_room = 0;
__u64 transition_ends[RLS_ENDS] __attribute__((aligned(64))) = {};
__u64 recording_since_ns = 0;
__u64 stopped_ns = 0;
__u32 window_edges = 0;
__u64 window_edge_ns = 0;
bool hits_uncounted = false;
bool ranges_windowed = false;
__u64 ranges_begun[2] = {0};
__u32 settings_generation = 0;
__u32 pid_namespace = 0;
__u32 event_cost_ns = 0;
__u32 edge_cost_ns = 0;
__u32 later_edge_cost_ns = 0;
__u32 cost_before_ns[2] = {};
__u32 close_sample_cost_ns = 0;
bool category_samples_wanted = false;
bool stacks_wanted = false;
__u64 states_since_ns = 0;
__u32 waits_per_window = 0;
__u64 drops[RLS_DROP_MAX] = {};
__u64 batch_hits = 0;
__u32 names_given = 0;
__u64 burden[RLS_BURDENS] = {};

char license_text[] SEC("license") = "Dual BSD/GPL";
