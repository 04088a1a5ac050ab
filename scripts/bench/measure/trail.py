"""Trails: what a work's pieces took, one by one, with and without a profiler.

The machine changes its speed, by some 5 % from one second to the next here. So every few milliseconds
a trail is paced: a fixed calculation, in which no profiler has a part, is timed, and what pieces took is
told as of the usual pace. Of the calculations around a time the fastest count: the others find caches cold, more
of them after work alone than after the same work watched, which made the machine seem up to 3 % faster while
a profiler looked on. That takes a third to two thirds of the drift out, and what is left is compared at several times.

Its CPUs are not equally fast either (2 to 3 % here, in code as large as PyTorch's; nothing in the pacing), so
that pieces are compared with others on the same CPU.

The machine also has bursts, in which all takes one and a half to four times as long for tens of
milliseconds, whether anybody looks on or not: one burst makes a second of work 10 % longer. So pieces
of one label (what they are, what came before, and the CPU) are compared with their own median in the same
state, and windows of time in which they are far above it are left out, in both states alike.
"""

import bisect

import pairs

WINDOW_NS = 25e6
BURST = 1.2
AFTER_TRACED_NS = 1e8   # what was traced is felt for so long
QUIET_SHARE_MIN = 0.5   # of a stretch that is compared
LEAST_PIECES = 20       # of a label, to know what it takes
PACING = ("pacing", "pace")     # what work.py calls the pieces of its pacing; the last one counts
PACE_AROUND_NS = 4e8    # longer than a tick of a profiler, or a window of its probes
PACE_GRID_NS = 1e8
PACE_FASTEST = 0.1


def timed(answer):
    """[(end ns, name, ns, cpu)]"""
    at_ns = answer["begin_ns"]
    for name, ns, cpu in answer["trail"]:
        at_ns += ns
        yield at_ns, name, ns, cpu


def fastest(values):
    return sorted(values)[int(PACE_FASTEST * len(values))]


class Pace:
    """How long the machine takes for what takes 1 at its usual speed, over a job's answers."""

    def __init__(self, answers):
        paces = [(at_ns, ns) for answer in answers for at_ns, name, ns, _ in timed(answer)
                 if name == PACING[-1]]
        self.times, self.took = [at_ns for at_ns, _ in paces], [ns for _, ns in paces]
        self.usual_ns = fastest(self.took)
        self.known = {}

    def around(self, time_ns):
        first = bisect.bisect_left(self.times, time_ns - PACE_AROUND_NS)
        last = bisect.bisect_right(self.times, time_ns + PACE_AROUND_NS)
        return fastest(self.took[first:last]) / self.usual_ns if last > first else 1

    def at(self, time_ns):
        place = time_ns // PACE_GRID_NS
        if place not in self.known:
            self.known[place] = self.around(place * PACE_GRID_NS)
        return self.known[place]


def as_they_were(answers):
    """For each answer of one job [(end ns, label, ns)]. A label: the name of the piece, that of the one before, and
    the CPU."""
    found = []
    for answer in answers:
        before, pieces = "", []
        for at_ns, name, ns, cpu in timed(answer):
            if name not in PACING:
                pieces.append((at_ns, (before, name, cpu), ns))
                before = name
        found.append(pieces)
    return found


def paced(answers):
    """The same at the usual pace."""
    pace = Pace(answers)
    return [[(at_ns, label, ns / pace.at(at_ns)) for at_ns, label, ns in pieces]
            for pieces in as_they_were(answers)]


def by_label(pieces):
    """{label: [ns…]}"""
    found = {}
    for _, label, ns in pieces:
        found.setdefault(label, []).append(ns)
    return {label: times for label, times in found.items() if len(times) >= LEAST_PIECES}


def usual(pieces):
    """{label: ns}"""
    return {label: pairs.median(times) for label, times in by_label(pieces).items()}


class Window:
    """Pieces in a row, how long they took together and what is usual, in ns."""

    def __init__(self):
        self.at_ns, self.took_ns, self.normal_ns, self.pieces = 0, 0, 0, []

    def add(self, piece, normal_ns):
        self.at_ns = piece[0]
        self.took_ns += piece[2]
        self.normal_ns += normal_ns
        self.pieces.append(piece)

    def level(self):
        return self.took_ns / self.normal_ns


def windows(pieces, normal):
    """Windows of WINDOW_NS; pieces of labels without a normal time are left out."""
    window = Window()
    for piece in pieces:
        if piece[1] not in normal:
            continue
        window.add(piece, normal[piece[1]])
        if window.normal_ns >= WINDOW_NS:
            yield window
            window = Window()
    if window.pieces:
        yield window


def burst_level(some):
    """Windows above it are bursts."""
    return BURST * pairs.median([window.level() for window in some])


def without_bursts(some, most=None):
    """Windows that are no bursts of the machine; most: their burst_level, where it is known from more of them."""
    most = most or burst_level(some)
    return [window for window in some if window.level() <= most]


def apart_from_traced(some, traced):
    """Windows neither while, nor right after, a profiler traced. traced: [(from ns, to ns)]."""
    return [window for window in some
            if not any(begin_ns < window.at_ns < end_ns + AFTER_TRACED_NS for begin_ns, end_ns in traced)]


class State:
    """Stretches of work in one state, each a list of pieces, without bursts."""

    def __init__(self, stretches):
        normal = usual(piece for one in stretches for piece in one)
        cut = [list(windows(one, normal)) for one in stretches]
        most = burst_level([window for one in cut for window in one])
        quiet = [[window for window in one if window.level() <= most] for one in cut]
        self.stretches = [[piece for window in one for piece in window.pieces] for one in quiet]
        self.quiet_shares = [len(some) / len(one) for some, one in zip(quiet, cut)]

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
    known = [(ns, reference[label]) for _, label, ns in pieces if label in reference]
    return sum(ns for ns, _ in known) / sum(ns for _, ns in known) if known else None


def pieces_in(operation, pieces):
    return [piece for piece in pieces if piece[1][1].split(", ")[0] == operation]


def work_ns(pieces, reference):
    """What all pieces would take by the reference."""
    return sum(reference.get(label, 0) for _, label, _ in pieces)
