# SPDX-License-Identifier: GPL-2.0-only
import random
import statistics

from measured_times import larger_packets
from oracles.wire import quantity

SOURCE = "Tolly reports 225112 and 225107 (64 H20, NCCL 2.22.3); Gangidi et al., SIGCOMM 2024"
SECONDS = 75

PACKETS = 8  # times as large as in the experiment, and as few
LEAVES, UPLINKS, RINGS_OF_A_NIC = 4, 16, 2  # 16 NICs of a leaf; a ring leaves it once, by one NIC of eight
SEEDS = range(1, 7)  # of hashes, for one queue pair; the first three of them for more
# Bus bandwidth with planned paths over that with ECMP (225112), by MiB.
MEASURED = {512: 1.1043, 1024: 1.1129, 8192: 1.1732, 16384: 1.2276}
# One queue pair over several, with the queue pair in the hash: "up to 40 %".
META = 1.40
SHARE_WITHIN = 10  # percent above the time of the fullest port's bytes alone
DRAWS = 20_000


def fullest(draw):
    """The most rings on one port of a leaf or to a leaf, if every flow takes a random cable up and then one of its spine's cables
    down: balls into bins."""
    most = 0
    for _ in range(LEAVES):
        up, down = [0] * UPLINKS, [0] * UPLINKS
        for _ in range(UPLINKS):  # as many rings leave a leaf as it has cables
            cable = draw.randrange(UPLINKS)
            spine = cable % 2
            up[cable] += 1
            down[2 * draw.randrange(UPLINKS // 2) + spine] += 1
        most = max(most, *up, *down)
    return most


def check(case):
    network = case.experiment["network"]
    mtu, extra = quantity(network["mtu"]), quantity(network["header"]) + quantity(network["wire_overhead"])
    rate = quantity(case.experiment["topology"]["link_rate"]) / 8e12 * mtu / (mtu + extra)  # payload bytes per ps

    def run(**changes):
        return case.run({key.replace("__", "."): value for key, value in changes.items()} | larger_packets(network, PACKETS))[0]

    def queue_pairs(number, seed):
        return run(network__connections={"queue_pairs": number}, simulation__seed=seed)

    def busbw(result):
        return result.summary["collectives"][0]["busbw_GBps"]

    bounds, most, alone = [], [], []
    for seed in SEEDS:
        result = queue_pairs(1, seed)
        kinds, payload = result.links["link_class"].astype(str), result.links["payload_bytes"]
        bounds.append((payload[kinds == "leaf-spine"].max() / rate, result.time))
        most.append(RINGS_OF_A_NIC * payload[kinds == "leaf-spine"].max() / payload[kinds == "nic"].max())
        alone.append(busbw(result))

    over = [100 * (time / bound - 1) for bound, time in bounds]
    case.add(f"one queue pair: time over that of the fullest port's bytes, {len(bounds)} seeds", f"0 to {SHARE_WITHIN} % more",
             f"{min(over):+.1f} to {max(over):+.1f} %", "", 0 <= min(over) and max(over) <= SHARE_WITHIN)  # fmt: skip
    draw = random.Random(1)
    drawn = [fullest(draw) for _ in range(DRAWS)]
    case.within("one queue pair: rings on the fullest port, balls into bins, mean of the seeds",
                [(statistics.mean(drawn), 3 * statistics.stdev(drawn) / len(most) ** 0.5, statistics.mean(most))])  # fmt: skip
    if not case.compares:
        return
    balanced = busbw(run(network__load_balancing="adaptive"))
    several = {number: [busbw(queue_pairs(number, seed)) for seed in SEEDS[:3]] for number in (2, 4)}
    for number, values in {1: alone, **several}.items():
        gains = sorted(100 * (balanced / value - 1) for value in values)
        case.compare(f"{number} queue pair{'s' * (number > 1)}: gain of balanced paths over ECMP, 512 MiB, {len(values)} seeds",
                     ", ".join(f"+{100 * (gain - 1):.1f} % ({mib} MiB)" for mib, gain in MEASURED.items()),
                     f"{gains[0]:+.0f} to {gains[-1]:+.0f} %, mean {statistics.mean(gains):+.0f} %", "")  # fmt: skip
    ratios = sorted(100 * (many / one - 1) for many, one in zip(several[4], alone, strict=False))
    case.compare("gain of four queue pairs over one, 512 MiB, 3 seeds", f"up to +{100 * (META - 1):.0f} %",
                 f"{ratios[0]:+.0f} to {ratios[-1]:+.0f} %, mean {statistics.mean(ratios):+.0f} %", "")  # fmt: skip
