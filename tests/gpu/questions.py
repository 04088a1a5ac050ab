"""What the project does not know before a GPU has been asked, and the check that answers it."""

# Question, the check that answers it, and the one that does where nothing can be recorded.
ANSWERED = [
    ("cuGetProcAddress returns what the exports are, so that probes on exports see those callers",
     "driver_entries", None),
    ("what libcuda's entries begin with, and so what a probe there costs", "driver_entries", None),
    ("as many launches are counted by probes as kernels by CUPTI, in PyTorch", "pytorch_counts",
     "alone_pytorch"),
    ("the same in JAX, which calls the driver", "jax_counts", "alone_jax"),
    ("the same in Triton", "triton_counts", "alone_triton"),
    ("the same in a program of nvcc's, with the runtime linked in and a graph", "nvcc_counts", "alone_nvcc"),
    ("nested runtime and driver calls share a correlation number; CUPTI's call and the probes' are one",
     "nesting", None),
    ("CUPTI's records are as long and as laid out as we take them", "alone_decoding", None),
    ("how far CUPTI's clock is from ours, and whether work ever begins before its launch", "clock",
     "alone_clock"),
    ("whether times are right after a second arming", "armed_twice", "alone_again"),
    ("how far before their launches CUPTI places kernels in a later session", "later_session", None),
    ("whether arming inside of cuInit is accepted", "from_the_first", "alone_pytorch"),
    ("whether records come while the GPU is never idle", "never_idle", "alone_never_idle"),
    ("whether attach shows GPU time within a second", "in_mid_life", "alone_in_mid_life"),
    ("busy time against CUDA events", "busy_time_is_that_of_events", "alone_busy"),
    ("torch.profiler before us: error 39, or a quiet takeover", "profiler_before_us", "alone_profiler_before"),
    ("torch.profiler after us: which registration wins", "profiler_after_us", "alone_profiler_after"),
    ("a graph's nodes, and whose operation they are", "graph_nodes", "alone_graphs"),
    ("graphs as a whole", "whole_graphs", "alone_graphs"),
    ("what a launch costs without the bridge, idle and armed", "cost", "alone_cost"),
    ("what CUPTI costs a training step and an inference", "alone_training", None),
    ("whether the bridge can be put into a job that runs", "alone_injected", None),
]

# Of the reference's lists, what belongs to hardware counters, which nothing here reads.
NOT_ASKED = [
    "tensor pipe operations against 2MNK, the weight of HFMA2, the fabric's share of L2 bytes",
    "the range profiler and kernel replay beside tracing, PM sampling beside tracing",
    "ceilings of the device (roofline)",
    "torch.profiler's experimental use of several subscribers (libcupti 13.3 and newer)",
]


def answer(results, check, instead):
    reported = results.get(check, {"held": None, "seen": "not run"})
    if reported["held"] is None and instead in results:
        return {"check": instead, **results[instead]}
    return {"check": check, **reported}


def answers(results):
    """One entry a question, with its check's outcome, for the results file."""
    reported = [{"question": question, **answer(results, check, instead)} for question, check, instead in ANSWERED]
    return reported + [{"question": question, "check": None, "held": None, "seen": "not asked by this version"}
                   for question in NOT_ASKED]
