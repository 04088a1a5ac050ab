"""Trails: what a work's pieces took, one by one, with and without a profiler.

The machine changes its speed, by some 5 % from one second to the next here. So work can have a twin: another
process, that does the same by turns with it, on the same CPU, for fractions of a second. What pieces took is converted
to the usual pace by the twin: drifts of 9 % within a minute are some 0.5 then.

Its CPUs are not equally fast either (2 to 3 % here, in code as large as PyTorch's), so
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
TWIN_AROUND_NS = 1e9
TWIN_GRID_NS = 1e8


def timed(answer):
    """[(end ns, name, ns, cpu)]"""
    at_ns = answer["begin_ns"]
    for name, ns, cpu in answer["trail"]:
        at_ns += ns
        yield at_ns, name, ns, cpu


class Twin:
    """What another process takes for the same work, of what is usual; it works by turns on the same CPU, and is not
    watched. A profiler that begins or ends holds it up all the same, by working there or beside it: at those times,
    apart, it says nothing of the machine's pace, and what it said right before or after stands."""

    def __init__(self, answers, apart=()):
        pieces = [piece for some in as_they_were(answers) for piece in some]
        self.windows = without_bursts(list(windows(pieces, usual(pieces))))
        self.telling = [window for window in self.windows
                        if not any(begin_ns < window.at_ns < end_ns for begin_ns, end_ns in apart)]
        self.times = [window.at_ns for window in self.telling]
        self.known = {}

    def between(self, begin_ns, end_ns):
        """At that time; where nothing of it is known, the nearest."""
        first, last = bisect.bisect_left(self.times, begin_ns), bisect.bisect_right(self.times, end_ns)
        if first == last:
            return self.between(begin_ns - TWIN_AROUND_NS, end_ns + TWIN_AROUND_NS)
        return level(self.telling[first:last])

    def during(self, answers):
        """All of it, whoever held it up."""
        begin_ns, end_ns = answers[0]["begin_ns"], answers[-1]["end_ns"]
        some = [window for window in self.windows if begin_ns <= window.at_ns <= end_ns]
        return level(some) if some else self.between(begin_ns, end_ns)

    def at(self, time_ns):
        place = time_ns // TWIN_GRID_NS
        if place not in self.known:
            self.known[place] = self.between(place * TWIN_GRID_NS - TWIN_AROUND_NS, place * TWIN_GRID_NS + TWIN_AROUND_NS)
        return self.known[place]

    def paced(self, answers):
        """As as_they_were, at the pace that is usual by the twin."""
        return [[(at_ns, label, ns / self.at(at_ns)) for at_ns, label, ns in pieces]
                for pieces in as_they_were(answers)]


def as_they_were(answers):
    """For each answer of one job [(end ns, label, ns)]. A label: the name of the piece, that of the one before, and
    the CPU."""
    found = []
    for answer in answers:
        before, pieces = "", []
        for at_ns, name, ns, cpu in timed(answer):
            if name != pairs.WAITING:
                pieces.append((at_ns, (before, name, cpu), ns))
                before = name
        found.append(pieces)
    return found


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


def level(some):
    """How long windows took together, of what is usual."""
    return sum(window.took_ns for window in some) / sum(window.normal_ns for window in some)


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
