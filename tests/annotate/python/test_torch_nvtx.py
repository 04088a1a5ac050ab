"""torch.cuda.nvtx ranges, with the library named in NVTX_INJECTION64_PATH."""

import os
import sys

try:
    from torch.cuda import nvtx
    nvtx.mark("is NVTX built in?")
except (ImportError, RuntimeError) as reason:
    print("skipped:", reason)
    sys.exit(77)

import records
import rlscope

assert os.environ["NVTX_INJECTION64_PATH"], "not set by the test"

with rlscope.operation("step"):
    nvtx.range_push("inference")
    assert records.stack() == ["step", "inference"], records.stack()
    nvtx.range_pop()
    with nvtx.range("batch {}", 3):
        assert records.stack() == ["step", "batch 3"], records.stack()
    nvtx.range_pop()
    assert records.stack() == ["step"], records.stack()
assert records.stack() == []
