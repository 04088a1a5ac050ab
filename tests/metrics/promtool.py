"""promtool, of the system or as scripts/setup fetches it."""

import os
import shutil

CLIENTS = os.environ.get("RLSCOPE_CLIENTS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "rlscope-bpf", "clients")


def promtool():
    """Its path, or None."""
    return shutil.which("promtool") or shutil.which(
        "promtool", path=os.path.join(CLIENTS, "prometheus", "usr", "bin"))


MISSING = "no promtool here: scripts/setup clients fetches it"
