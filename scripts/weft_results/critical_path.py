# SPDX-License-Identifier: GPL-2.0-only
"""The critical path of a packet run: the chain of operations and messages that ends with the run, each of which began
when the previous one ended. Its steps follow each other without a gap, so that they add up to the time of the run, or,
beside background jobs, of the other jobs.

For each message and each communication the simulator records the message that it had to wait for (`cause`). An
operation is assumed to have waited for the operation of the same rank that ended when it began."""

import re
from dataclasses import dataclass, field

import numpy as np

from weft_results.errors import ResultsError

COMPUTE, SEND, HOST = 0, 2, 4  # of /operations/kind
# What a packet waits for once it has left its sender.
ON_THE_WAY = ("queueing", "paused", "slowed")
# Keys of `network` about the bytes on a wire, with their defaults.
BYTES = {"window": "256 KiB", "mtu": "4096 B", "header": "62 B", "wire_overhead": "20 B",
         "ack": "66 B"}
SCALES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
MAX_TIME = 1 << 63  # ps
NEEDED = {"messages": ["id", "source", "destination", "issued", "delivered", "collective", "cause"],
          "operations": ["rank", "operation", "start", "end", "kind", "collective", "cause", "label"]}
HOW = "needs rows of all messages with causes, and operations: output: {attribution: full, operations: true}"
JOINED = {"compute": "compute operations", "host": "operations of the host"}  # what several of a rank are called
MAX_MESSAGES = 20_000_000  # they fit into memory


@dataclass
class Step:
    """A stretch of the path, on `rank`. `kind`: compute; host (only its host worked, or it paused); message; handling (between a message and the events that waited
    for it: copies, reductions, launches, latencies); credits (a slot at a receiver was not free yet); sending (until a
    message was acknowledged); launch (from the beginning of a communication to its first message); idle."""

    kind: str
    start: int  # ps
    end: int  # ps
    rank: int
    label: str = ""
    collective: int = -1
    message: int = -1  # row of /messages
    parts: dict = field(default_factory=dict)  # of a message: {part: ps}

    @property
    def time(self):
        return self.end - self.start


class Messages:
    """Rows of /messages, found by their ids."""

    def __init__(self, run):
        self.columns = run.table("messages", NEEDED["messages"])
        self.parts = run.table("messages", run.parts("messages"))
        self.round_trips = RoundTrips(run)
        ids = self.columns["id"].astype(np.int64)
        self.order = np.argsort(ids, kind="stable")
        self.ids = ids[self.order]
        self.sent = None  # Sent, once it is needed

    def row(self, number):
        """The row of a message, None for -1."""
        if number < 0 or len(self.ids) == 0:
            return None
        place = min(int(np.searchsorted(self.ids, number)), len(self.ids) - 1)
        return int(self.order[place]) if self.ids[place] == number else None

    def get(self, row, column):
        return int(self.columns[column][row])

    def freed_by(self, row, time):
        """The message that the receiver of a slice of a collective sent when the slice's slot became free, before `time`; None if it
        sends none. A receiver takes a slice and passes on the next one in one step, once the slice is there and there is a slot for
        what it sends: what made that send late made the slot late."""
        if self.get(row, "collective") < 0:
            return None
        if self.sent is None:
            self.sent = Sent(self.columns)
        return self.sent.last_before(self.get(row, "collective"), self.get(row, "destination"), self.get(row, "delivered"), time)

    def parts_of_credit(self, row, time):
        """Parts of the `time` that the credit for the slot of a message was on its way: longer than on an idle network, it waited in
        queues."""
        idle = min(self.round_trips.idle_credit(row), time)
        return {name: part for name, part in (("credits", idle), ("queueing", time - idle)) if part}

    def parts_of(self, row):
        parts = {name.removeprefix("part_"): int(values[row]) for name, values in self.parts.items() if values[row]}
        if "window" not in parts:
            return parts
        late = parts["window"] - self.round_trips.idle_waits(row, parts.get("ahead", 0))
        return late_acknowledgements(parts, late)


class Sent:
    """Rows of messages by the collective and the rank that sent them, in order of time."""

    def __init__(self, columns):
        self.order = np.lexsort((columns["issued"], columns["source"], columns["collective"]))
        self.issued = columns["issued"][self.order]
        self.ranks, self.collectives = columns["source"][self.order], columns["collective"][self.order]

    def last_before(self, collective, rank, begin, end):
        """The row of the last one that was sent at `begin` or later, and before `end`, or None."""
        first, last = np.searchsorted(self.collectives, [collective, collective + 1])
        first, last = first + np.searchsorted(self.ranks[first:last], [rank, rank + 1])
        place = first + int(np.searchsorted(self.issued[first:last], end)) - 1
        return int(self.order[place]) if place >= first and self.issued[place] >= begin else None


class Fastest:
    """The fastest of the links that leave a node. `links`: (from, to, bit/s) of each direction."""

    def __init__(self, links):
        self.links = {}  # {node: {neighbour: bit/s}}
        for node, to, rate in links:
            known = self.links.setdefault(node, {})
            known[to] = max(known.get(to, 0), rate)

    def of(self, node):
        return max(self.links.get(node, {}).values(), default=0)

    def behind(self, host):
        """(switch of a host with one link, the fastest link from there to other switches), or None. Nodes with one link are hosts."""
        switches = list(self.links.get(host, {}))
        if len(switches) != 1:
            return None
        rates = [rate for to, rate in self.links.get(switches[0], {}).items() if len(self.links.get(to, {})) > 1]
        return (switches[0], max(rates)) if rates else None


class RoundTrips:
    """How long messages would wait for acknowledgements on an idle network."""

    def __init__(self, run):
        self.sizes = sizes_of(run)
        self.window = self.sizes["window"] if self.sizes else 0
        needed = {"messages": ["bytes", "ideal", "source", "destination"], "ranks": ["rank", "node"], "links": ["from", "to", "rate"]}
        if not all(run.has(table, *columns) for table, columns in needed.items()):
            self.window = 0
        if self.window:
            self.messages = run.table("messages", needed["messages"])
            ranks, links = (run.table(name, needed[name]) for name in ("ranks", "links"))
            nodes = dict(zip(ranks["rank"].tolist(), ranks["node"].tolist()))
            fastest = Fastest(zip(*(links[name].tolist() for name in needed["links"])))
            self.rates = {rank: fastest.of(node) for rank, node in nodes.items()}
            self.inside = {rank: fastest.behind(node) for rank, node in nodes.items()}

    def on_wire(self, size):
        """Bytes with those of frames around them."""
        return size + -(-size // self.sizes["mtu"]) * (self.sizes["header"] + self.sizes["wire_overhead"])

    def rate(self, row):
        """bit/s that the links of a message have at most, by both hosts and, if these are at different switches, by the links between
        switches there; 0 if it is unknown."""
        ends = [int(self.messages[end][row]) for end in ("source", "destination")] if self.window else []
        rates = [self.rates.get(end, 0) for end in ends]
        inside = [self.inside.get(end) for end in ends]
        if ends and all(inside) and inside[0][0] != inside[1][0]:
            rates += [rate for _, rate in inside]
        return min(rates, default=0)

    def idle_waits(self, row, ahead):
        """At most this long, in ps: without queues a window is acknowledged a round trip after its first packet was begun. On the way
        a packet takes a frame and the latency, which is what the message takes beyond its frames at the rate; an ACK, whose
        frame is no longer, takes no more than that latency and its frame. The message waits so in each round trip, also in
        those of earlier messages, which its queue pair sent for `ahead` ps."""
        rate = self.rate(row)
        if not rate:
            return MAX_TIME
        size, latency = int(self.messages["bytes"][row]), self.latency(row, rate)
        frames = self.on_wire(max(self.sizes["mtu"], self.sizes["server_mtu"])) + self.sizes["ack"] + self.sizes["wire_overhead"]
        wait = 2 * latency + picoseconds(frames - self.on_wire(self.window), rate)
        sent = size + ahead * rate // (8 * 10**12)
        return max(wait, 0) * max(-(-sent // self.window), 1)

    def latency(self, row, rate):
        """What a message takes beyond its frames at the rate."""
        return max(int(self.messages["ideal"][row]) - picoseconds(self.on_wire(int(self.messages["bytes"][row])), rate), 0)

    def idle_credit(self, row):
        """At most this long, in ps, the credit for the slot of a message is on its way on an idle network: as an ACK."""
        rate = self.rate(row)
        return self.latency(row, rate) + picoseconds(self.sizes["ack"] + self.sizes["wire_overhead"], rate) if rate else MAX_TIME


def picoseconds(size, rate):
    return size * 8 * 10**12 // rate


def sizes_of(run):
    """{key: bytes} of the network; None if the experiment does not say them, congestion control changes the window, or ACKs wait
    for further packets."""
    try:
        network = run.experiment.get("network") or {}
        if network.get("congestion_control", "none") != "none" or network.get("ack_interval", 1) != 1:
            return None
    except (ResultsError, AttributeError):
        return None
    found = {}
    for key, default in BYTES.items() | {("server_mtu", network.get("mtu", BYTES["mtu"]))}:
        match = re.fullmatch(r"\s*([0-9.]+)\s*([KMGT]i|[kMGT]|)B\s*", str(network.get(key, default)))
        if not match:
            return None
        found[key] = int(float(match[1]) * SCALES[match[2]])
    return found if found["window"] and found["mtu"] else None


def late_acknowledgements(parts, late):
    """The parts of a message of whose waits for acknowledgements `late` ps are due to what packets before it waited for on
    their way: taken to be what the message's last packet waited for, or queues if it did not wait."""
    if late <= 0:
        return parts
    causes = {name: parts[name] for name in ON_THE_WAY if name in parts} or {"queueing": 1}
    total, left = sum(causes.values()), late
    found = {**parts, "window": parts["window"] - late}
    for number, (name, time) in enumerate(causes.items(), 1):
        share = left if number == len(causes) else late * time // total
        found[name] = found.get(name, 0) + share
        left -= share
    return {name: time for name, time in found.items() if time}


def determines_end(run, ranks):
    """True for each of `ranks` of a job for whose end the run waited. Background jobs go on until all others have ended;
    where there are no others, all count."""
    everyone = np.ones(len(ranks), dtype=bool)
    if not run.has("jobs", "first_rank", "ranks", "background"):
        return everyone
    jobs = run.table("jobs", ["first_rank", "ranks", "background"])
    counts = everyone.copy()
    for first, number, background in zip(*(jobs[name].tolist() for name in ("first_rank", "ranks", "background"))):
        if background:
            counts &= (ranks < first) | (ranks >= first + number)
    return counts if counts.any() else everyone


class Operations:
    """Rows of /operations, found by their ends and by their messages."""

    def __init__(self, run):
        self.columns = run.table("operations", NEEDED["operations"])
        ranks, ends, starts = (self.columns[name] for name in ("rank", "end", "start"))
        self.count = np.flatnonzero(determines_end(run, ranks))
        # Among operations with the same end, the one that began last is found first, unless it took no time.
        self.order = np.lexsort((self.columns["operation"], starts, ends, ranks))
        self.ranks = ranks[self.order]
        calls = np.flatnonzero(self.columns["collective"] >= 0)
        self.of_call = {(int(ranks[row]), int(self.columns["collective"][row])): int(row) for row in calls}
        sends = np.flatnonzero((self.columns["kind"] == SEND) & (self.columns["cause"] >= 0))
        self.of_message = {int(self.columns["cause"][row]): int(row) for row in sends}

    def get(self, row, column):
        return int(self.columns[column][row])

    def kind(self, row):
        """`kind` of a step for an operation that no message ended."""
        return {COMPUTE: "compute", HOST: "host"}.get(self.get(row, "kind"), "handling")

    def label(self, row):
        return str(self.columns["label"][row])

    def last(self):
        """The operation that ended last, of jobs for which the run waited; None if there is none."""
        if len(self.count) == 0:
            return None
        ranks, starts, ends = (self.columns[name][self.count] for name in ("rank", "start", "end"))
        return int(self.count[np.lexsort((-ranks.astype(np.int64), starts, ends))[-1]])

    def before(self, rank, time, seen):
        """The operation of a rank that ended last at `time` or earlier and is not in `seen`; None if there is none."""
        first, last = np.searchsorted(self.ranks, [rank, rank + 1])
        ends = self.columns["end"][self.order[first:last]]
        place = int(np.searchsorted(ends, time, side="right"))
        while place > 0:
            place -= 1
            row = int(self.order[first + place])
            if row not in seen:
                return row
        return None


class Walk:
    """From the end of the run back to its beginning."""

    def __init__(self, run):
        self.messages, self.operations = Messages(run), Operations(run)
        self.steps, self.seen = [], set()
        # Rows of operations whose start or end could not be later without a later end of the run. Operations before an
        # idle time of the rank could be later.
        self.starts, self.ends, self.binding = set(), set(), True

    def add(self, kind, start, end, rank, **more):
        if end > start:
            self.steps.append(Step(kind, start, end, rank, **more))

    def all(self):
        row = self.operations.last()
        while row is not None:
            row = self.operation(row)
        return self.steps[::-1]

    def operation(self, row):
        """Adds the steps of an operation from its end back to the beginning of an operation; returns the previous
        operation."""
        get = self.operations.get
        self.seen.add(row)
        if self.binding:
            self.ends.add(row)
        rank, start, end = get(row, "rank"), get(row, "start"), get(row, "end")
        message = self.messages.row(get(row, "cause"))
        if get(row, "kind") in (COMPUTE, HOST) or message is None:
            self.add(self.operations.kind(row), start, end, rank, label=self.operations.label(row), collective=get(row, "collective"))
            if self.binding:
                self.starts.add(row)
            return self.ahead_of(rank, start)
        delivered = min(self.messages.get(message, "delivered"), end)
        own = self.messages.get(message, "source") == rank
        kind = ("sending" if get(row, "kind") == SEND else "credits") if own else "handling"
        self.add(kind, delivered, end, rank, label=self.operations.label(row), collective=get(row, "collective"))
        return self.follow(message, delivered)

    def follow(self, message, time):
        """The chain of messages that ends with one that was delivered at `time`."""
        get = self.messages.get
        while True:
            # Without acknowledgements a message ends for its sender when it has left, before it is delivered.
            whole = time == get(message, "delivered")
            self.of_message("message" if whole else "sending", message, get(message, "issued"), time, message=message,
                            parts=self.messages.parts_of(message) if whole else {})
            message = self.slots(message)
            cause, issued = self.messages.row(get(message, "cause")), get(message, "issued")
            if cause is None:
                break
            time = min(get(cause, "delivered"), issued)
            own = get(cause, "source") == get(message, "source")
            self.of_message("credits" if own else "handling", message, time, issued)
            message = cause
        rank, sender = get(message, "source"), self.sender(message)
        if sender is None:
            return self.ahead_of(rank, issued)
        start = min(self.operations.get(sender, "start"), issued)
        self.seen.add(sender)
        if self.binding:
            self.starts.add(sender)
        self.of_message("launch", message, start, issued)
        return self.ahead_of(rank, start)

    def slots(self, message):
        """Adds the way of each credit for which `message` waited, and gives the message whose sending freed the first slot, or the
        same message. What its receiver waited for meanwhile is that for which it was late."""
        get = self.messages.get
        while True:
            cause = self.messages.row(get(message, "cause"))
            own = cause is not None and get(cause, "source") == get(message, "source")
            freed = self.messages.freed_by(cause, get(message, "issued")) if own else None
            if freed is None:
                return message
            start, end = get(freed, "issued"), get(message, "issued")
            self.of_message("credits", message, start, end, parts=self.messages.parts_of_credit(cause, end - start))
            message = freed

    def of_message(self, kind, row, start, end, **more):
        """Adds a step of the rank and the operation that send a message."""
        sender = self.sender(row)
        label = self.operations.label(sender) if sender is not None else ""
        self.add(kind, start, end, self.messages.get(row, "source"), label=label,
                 collective=self.messages.get(row, "collective"), **more)

    def sender(self, message):
        """The operation that sent a message."""
        get = self.messages.get
        if get(message, "collective") >= 0:
            return self.operations.of_call.get((get(message, "source"), get(message, "collective")))
        return self.operations.of_message.get(get(message, "id"))

    def ahead_of(self, rank, time):
        """The operation before `time`; the time between them was idle."""
        row = self.operations.before(rank, time, self.seen)
        end = 0 if row is None else self.operations.get(row, "end")
        self.add("idle", end, time, rank)
        self.binding = self.binding and end == time
        return row


def missing(run):
    """The reason why a file has no critical path, as text; None if it has one."""
    if not all(run.has(table, *columns) for table, columns in NEEDED.items()):
        return HOW
    if run.rows("messages") > MAX_MESSAGES:
        return f"has {run.rows('messages')} messages; the critical path of at most {MAX_MESSAGES} can be followed"
    return None


def critical_path(run):
    """The steps of a run in order of time; ResultsError if the file lacks the necessary data."""
    reason = missing(run)
    if reason is not None:
        raise run.error(reason)
    return Walk(run).all()


def sums(steps):
    """{kind: ps}, the largest first; messages by their parts: {"transfer": ps, "queueing": ps, ...}."""
    found = {}
    for step in steps:
        for kind, time in (step.parts or {step.kind: step.time}).items():
            found[kind] = found.get(kind, 0) + time
    return dict(sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def by_operation(steps):
    """Neighbouring steps of the same collective, or of the same label, as one: [(label, collective, start, end, ranks,
    messages, sums)] in order of time."""
    groups = []
    for step in steps:
        name = (step.label, step.collective, step.kind in (*JOINED, "idle") and (step.kind, step.rank))
        if groups and groups[-1][0] == name:
            groups[-1][1].append(step)
        else:
            groups.append((name, [step]))
    return [{"label": name[0], "collective": name[1], "kind": group[0].kind if name[2] else "communication",
             "start": group[0].start, "end": group[-1].end, "ranks": sorted({step.rank for step in group}),
             "messages": sum(step.kind == "message" for step in group), "sums": sums(group)}
            for name, group in groups]


def stretches(groups):
    """The result of by_operation(), with neighbouring compute operations of a rank, or of its host, joined: `operations`
    is their number."""
    merged = []
    for group in groups:
        last = merged[-1] if merged else None
        kind = group["kind"]
        if last and last["kind"] == kind and kind in JOINED and last["ranks"] == group["ranks"]:
            last["end"], last["operations"] = group["end"], last["operations"] + 1
            last["sums"] = {kind: last["sums"][kind] + group["sums"][kind]}
        else:
            merged.append({**group, "operations": 1})
    return merged


def name_of(stretch):
    """Readable text for the result of stretches()."""
    if stretch["kind"] == "idle":
        return "idle"
    if stretch["kind"] in JOINED:
        return stretch["label"] if stretch["operations"] == 1 else f"{stretch['operations']} {JOINED[stretch['kind']]}"
    number = f" (/collectives/id {stretch['collective']})" if stretch["collective"] >= 0 else ""
    return f"{stretch['label'] or 'communication'}{number}"
