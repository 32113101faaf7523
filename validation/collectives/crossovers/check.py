# SPDX-License-Identifier: GPL-2.0-only
import json
import subprocess

from oracles.wire import Network, quantity, serialization, train

from collectives.crossovers.machines import MACHINES, changes

NVLINK = 3_600_000_000_000  # bit/s of a GPU
SOURCE = "Hockney 1994; Thakur et al. 2005; De Sensi et al. 2024; NCCL"


class Rounds:
    """Alpha-beta time of an algorithm in rounds, whose messages share links."""

    def __init__(self, experiment, links_of):
        """links_of(from, to): names of the links of that path, in order."""
        self.network = Network.of(experiment)
        topology = experiment["topology"]
        self.rate, self.delay = quantity(topology["link_rate"]), quantity(topology["link_delay"])
        # A torus gives a host the rate of all links of its router, two here.
        self.host_rate = 2 * self.rate if topology["kind"] == "torus" else self.rate
        self.links_of = links_of
        self.known = {}

    def alone(self, links, size):
        """Store-and-forward time over so many links; the first and the last one are a host's."""
        frames = self.network.frames(size)
        rates = [self.host_rate, *[self.rate] * (links - 2), self.host_rate]
        delays = [self.delay + self.network.latency] * (links - 1) + [self.delay]
        return train([0] * len(frames), frames, rates, delays)[-1]

    def loads(self, ways):
        """For each path, the number of messages that share its fullest link; and the mean over the links between
        routers."""
        load = {}
        for links in ways:
            for link in links:
                load[link] = load.get(link, 0) + 1
        between = [count for link, count in load.items() if link[0] not in ("up", "down")]
        mean = sum(between) / len(between) if between else 1
        return [max(load[link] for link in links) for links in ways], max(mean, 1)

    def total(self, rounds, even=False):
        """A rank starts a round when the data of the previous round has arrived. All messages of a round have one size.

        The fullest links decide while ranks work in step; otherwise the mean load of the links (`even`) is the lower
        bound.
        """
        clock = {}
        for messages in rounds:
            size = messages[0][2]
            ways = [self.links_of(source, destination) for source, destination, _ in messages]
            key = tuple(map(tuple, ways))
            if key not in self.known:
                self.known[key] = self.loads(ways)
            alone = {links: self.alone(links, size) for links in set(map(len, ways))}
            ended = dict(clock)
            for number, (source, destination, _) in enumerate(messages):
                fullest, mean = self.known[key]
                shared = ((mean if even else fullest[number]) - 1) * serialization(self.network.wire(size), self.rate)
                arrival = clock.get(source, 0) + alone[len(ways[number])] + round(shared)
                ended[destination] = max(ended.get(destination, 0), arrival)
            clock = ended
        return max(clock.values())


def ring(ranks, size):
    return [[(r, (r + 1) % ranks, size // ranks) for r in range(ranks)]] * (2 * (ranks - 1))


def halving_doubling(ranks, size):
    """Nearest partners first, with half of the vector; and back."""
    levels = range(ranks.bit_length() - 1)
    scatter = [[(r, r ^ 1 << level, size >> level + 1) for r in range(ranks)] for level in levels]
    return scatter + scatter[::-1]


def swing(ranks, size):
    levels = range(ranks.bit_length() - 1)
    rho = [(1 - (-2) ** (level + 1)) // 3 for level in levels]
    scatter = [
        [(r, (r + (rho[level] if r % 2 == 0 else -rho[level])) % ranks, size >> level + 1) for r in range(ranks)]
        for level in levels
    ]
    return scatter + scatter[::-1]


def links_of_leaves(source, destination):
    if source // 4 == destination // 4:
        return [("up", source), ("down", destination)]
    return [("up", source), ("leaf up", source // 4), ("leaf down", destination // 4), ("down", destination)]


def links_of_ring(source, destination):
    """The shorter direction around the ring."""
    steps = (destination - source) % 16
    hops = [((source + i) % 16, +1) for i in range(steps)] if steps <= 8 else [
        ((source - i) % 16, -1) for i in range(16 - steps)
    ]  # fmt: skip
    return [("up", source), *hops, ("down", destination)]


def crossover(difference, least, most, runs=3):
    """The size at which a rising or falling function changes its sign, by false position over multiples of 1 KiB."""
    low, high = difference(least), difference(most)
    if low * high > 0:
        raise RuntimeError(f"the order of the two is the same at {least} and {most} B")
    for _ in range(runs):
        middle = round((least * high - most * low) / (high - low) / 1024) * 1024
        if middle in (least, most):
            return middle
        found = difference(middle)
        if found * low > 0:
            least, low = middle, found
        else:
            most, high = middle, found
    return round((least * high - most * low) / (high - low))


class Machines:
    """Runs of one case on its machines."""

    def __init__(self, case):
        self.case = case

    def time(self, machine, algorithm, size, **options):
        changed = changes(machine, algorithm, size)
        changed["workload"] |= options
        return self.case.run(changed)[0].time

    def longer(self, machine, name, **options):
        """Time of 64 MiB minus that of 32 MiB, in us."""
        return (self.time(machine, name, 64 << 20, **options) - self.time(machine, name, 32 << 20, **options)) / 1e6

    def measured(self, machine, one, other, predicted):
        """The size from which on the other algorithm is faster, near the predicted one."""
        return crossover(lambda size: self.time(machine, one, size) - self.time(machine, other, size),
                         predicted // 2048 * 1024, predicted // 512 * 1024)  # fmt: skip

    def compare(self, text, machine, one, other, predicted):
        found = self.measured(machine, one, other, predicted)
        self.case.within(text, [(predicted / 1024, predicted / 10240, found / 1024)], "KiB", 0)

    def model(self, algorithm):
        """Weft's own alpha-beta model, which has no network: alpha is the time of a small packet over the switch."""
        run, experiment = self.case.run({**changes("switch", "halving_doubling", 16), "workload": {
            "kind": "traffic", "pattern": "permutation", "ranks": 16, "size": "64 B", "shift": 1}})  # fmt: skip
        options = MACHINES["switch"]["algorithms"][algorithm]
        words = [f"--{key.replace('_', '-').replace('slices-per-chunk', 'slices')}={value}" for key, value in options.items()]
        wire = Network.of(experiment).wire(4096)

        def cost(size):
            done = subprocess.run(
                [self.case.weft, "collective", algorithm, "--ranks", "16", "--size", str(size), "--cost", "--json",
                 "--latency", f"{run.time} ps", "--rate", f"{400 * 4096 // wire} Gb/s", *(w.replace(" ", "") for w in words)],
                capture_output=True, text=True, check=True,
            )  # fmt: skip
            return json.loads(done.stdout)["cost"]["time_ps"]

        return cost


def predict(one, other):
    return crossover(lambda size: one(size) - other(size), 16 << 10, 16 << 20, 12)


def on_one_switch(machines):
    predicted = predict(machines.model("double_binary_tree"), machines.model("ring"))
    machines.compare("one switch: from here on a ring is faster than NCCL's trees",
                     "switch", "double_binary_tree", "ring", predicted)  # fmt: skip
    predicted = predict(machines.model("recursive_doubling"), machines.model("halving_doubling"))
    machines.compare("one switch: from here on halving-doubling is faster than recursive doubling",
                     "switch", "recursive_doubling", "halving_doubling", predicted)  # fmt: skip


def on_leaves(machines):
    _, experiment = machines.case.run(changes("leaves", "ring", 1024))
    leaves = Rounds(experiment, links_of_leaves)
    predicted = predict(lambda size: leaves.total(halving_doubling(16, size)), lambda size: leaves.total(ring(16, size)))
    machines.compare("oversubscribed leaves: from here on a ring is faster than halving-doubling",
                     "leaves", "halving_doubling", "ring", predicted)  # fmt: skip


def on_a_torus(machines):
    case = machines.case
    _, experiment = case.run(changes("torus", "swing", 1024))
    torus = Rounds(experiment, links_of_ring)
    least, most = (
        predict(lambda size, even=even: torus.total(swing(16, size), even), lambda size: torus.total(ring(16, size)))
        for even in (False, True)
    )
    found = machines.measured("torus", "swing", "bucket", (least + most) // 2)
    between = ((least + most) / 2048, (most - least) / 2048, found / 1024)
    case.within("torus: from here on bucket is faster than Swing; loads of the fullest link, and the mean", [between], "KiB", 0)
    sizes = [64 << 10, 1 << 20, 16 << 20]
    case.at_least("torus: time of recursive doubling, at least that of Swing",
                  [(machines.time("torus", "swing", size), machines.time("torus", "halving_doubling", size)) for size in sizes])  # fmt: skip


def wire_time(size, rate):
    return size / 4096 * serialization(4096 + 82, rate)


def nvlink_time(size, rate):
    """Over NVLink: frames of 128 B with a flit of 16 B each, and without ACKs another flit for the answer."""
    return size / 128 * serialization(128 + 16 + 16, rate)


def on_servers(machines):
    nic, size = 400_000_000_000, 16 << 20
    flat = wire_time(2 * 31 * size / 32, nic)
    hierarchical = nvlink_time(2 * 7 * size / 8, NVLINK) + wire_time(2 * 3 * size / 32, nic)
    one_ring = {"channels": 1}  # it enters and leaves each server by one NIC
    rows = []
    for algorithm, of_bytes in (("ring", flat), ("hierarchical", hierarchical)):
        latency = machines.time("servers", algorithm, 128 << 10, **one_ring)
        middle, half = (of_bytes + latency / 2) / 1e6, latency / 2e6
        rows.append((middle, half, machines.time("servers", algorithm, size, **one_ring) / 1e6))
    machines.case.within("4 servers: 16 MiB by one flat ring and hierarchically; bytes, and bytes plus the time of 128 KiB", rows, "us", 0)


def on_nvswitch(machines):
    case, added = machines.case, 32 << 20
    rings = nvlink_time(2 * 7 * added / 8, NVLINK) / 1e6
    same = {"chunk_size": "128 KiB", "channels": 1}  # NVLS's own chunk depends on the size
    ring_time, nvls_time = machines.longer("nvswitch", "ring", channels=1), machines.longer("nvswitch", "nvls", **same)
    case.within("NVSwitch: time of 64 MiB less that of 32 MiB, ring", [(rings, 0.02 * rings, ring_time)], "us", 0)
    even = wire_time(9 * added / 8, NVLINK) / 1e6
    case.within("NVSwitch, GPU ports as fast as NVLink: the same of nvls, S + S/n over NVLink",
                [(even, 0.002 * even, machines.longer("nvswitch_even", "nvls", **same))], "us", 1)  # fmt: skip
    piled, a_slice = nvls_behind_faster_ports(added)
    case.within("NVSwitch: the same of nvls behind ports for NVLink and PCIe together", [(piled, a_slice, nvls_time)], "us", 1)
    case.at_least("NVSwitch: ring, at least as long as nvls", [(round(nvls_time), round(ring_time))], "us")


def nvls_behind_faster_ports(added):
    """(time, time of a slice) in us. Nothing limits the rate at which a GPU contributes data, so that data queues behind its port,
    which is faster than NVLink. The sums that it sends out again (p of NVLink's rate) queue behind this data, beside the data
    that it contributes (c)."""
    even = nvlink_time(9 * added / 8, NVLINK) / 1e6
    faster = nvlink_time(4096, NVLINK) / wire_time(4096, NVLINK + 504_000_000_000)
    c = 1 / (1 + 1 / (8 * faster))
    p = c / (8 * faster)
    idle = (1 - c / 8 - 8 * p) / c  # share of the path down, until all is contributed: the time of S over c
    # Sums go on slice by slice.
    return even + nvlink_time(added * idle, NVLINK) / 1e6, nvlink_time(128 << 10, NVLINK) / 1e6


def check(case):
    machines = Machines(case)
    for part in (on_one_switch, on_leaves, on_a_torus, on_servers, on_nvswitch):
        part(machines)
