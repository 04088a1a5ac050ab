"""Trails: what a work's pieces took, one by one, with and without a profiler.

The machine has bursts, in which all takes one and a half to four times as long for tens of
milliseconds, whether anybody looks on or not: one burst makes a second of work 10 % longer. So pieces
of one label (what they are, and what came before) are compared with their own median in the same
state, and windows of time in which they are far above it are left out, in both states alike.
"""

import pairs

WINDOW_NS = 25e6
BURST = 1.2
QUIET_SHARE_MIN = 0.5   # of a stretch that is compared
LEAST_PIECES = 20       # of a label, to know what it takes


def labelled(trail):
    """[(label, ns)]: what a piece is, is said by its name and by that of the one before."""
    before = ""
    for name, ns in trail:
        yield (before, name), ns
        before = name


def by_label(pieces):
    """{label: [ns…]} of (label, ns)."""
    found = {}
    for label, ns in pieces:
        found.setdefault(label, []).append(ns)
    return {label: times for label, times in found.items() if len(times) >= LEAST_PIECES}


def windows(trail, usual):
    """[(level, [(label, ns)…])]: the trail in windows, and how long each took of what is usual. Pieces of
    labels without a usual time are left out."""
    window, normal_ns = [], 0
    for label, ns in labelled(trail):
        if label not in usual:
            continue
        window.append((label, ns))
        normal_ns += usual[label]
        if normal_ns >= WINDOW_NS:
            yield sum(ns for _, ns in window) / normal_ns, window
            window, normal_ns = [], 0


class State:
    """Stretches of work in one state, each a list of trails, without bursts."""

    def __init__(self, stretches):
        usual = {label: pairs.median(times)
                 for label, times in by_label(
                     piece for one in stretches for trail in one for piece in labelled(trail)).items()}
        cut = [[window for trail in one for window in windows(trail, usual)] for one in stretches]
        most = BURST * pairs.median([level for one in cut for level, _ in one])
        self.stretches = [[piece for level, window in one if level <= most for piece in window]
                          for one in cut]
        self.quiet_shares = [sum(level <= most for level, _ in one) / len(one) for one in cut]

    def burst_share(self):
        return 1 - sum(self.quiet_shares) / len(self.quiet_shares)

    def means(self):
        """{label: mean ns}"""
        pieces = (piece for one in self.stretches for piece in one)
        return {label: sum(times) / len(times) for label, times in by_label(pieces).items()}

    def levels(self, reference):
        """How long each stretch took, of what its pieces take by the reference; None: too little of
        it was quiet."""
        return [level_of(pieces, reference) if share >= QUIET_SHARE_MIN else None
                for pieces, share in zip(self.stretches, self.quiet_shares)]


def level_of(pieces, reference):
    known = [(ns, reference[label]) for label, ns in pieces if label in reference]
    return sum(ns for ns, _ in known) / sum(ns for _, ns in known)


def work_ns(trails, reference):
    """What all pieces of the trails would take by the reference."""
    return sum(reference.get(label, 0) for trail in trails for label, _ in labelled(trail))
