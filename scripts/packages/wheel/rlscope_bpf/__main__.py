"""python -m rlscope_bpf: the same as rlscope-bpf."""
from rlscope_bpf import main

main()
