#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Links with separate framing: the times of packets there, by hand, in both networks and on any number of processes."""

import functools
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, table, two_at_a_time, weft

# 400 Gb/s: 20 ps per byte. Frames of 128 B with 16 B, answered by 16 B.
PS = 20
FRAMING = {"payload": "128 B", "overhead": "16 B", "answer": "16 B"}
DELAY = 1_000_000  # ps
MTU = 4096


def two_hosts(size, acks=True, both=False, framing=FRAMING, **network):
    link = {"rate": "400 Gb/s", "delay": "1 us"} | ({"framing": framing} if framing else {})
    return {
        "topology": {"kind": "graph", "hosts": 2, "switches": 1,
                     "links": [{"from": f"host{i}", "to": "switch0", **link} for i in range(2)]},
        "network": {"mtu": f"{MTU} B", "header": "62 B", "wire_overhead": "20 B", "ack": "66 B" if acks else "none",
                    "switch_latency": "0 ns", "window": "1 MiB", **network},
        "workload": {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]] + ([[1, 0]] if both else []),
                     "size": f"{size} B"},
        "simulation": {"seed": 1},
    }  # fmt: skip


def framed(payload, answers=0):
    """Bytes of a data packet: its payload, and for each begun 128 B the overhead of a frame (and of its answer)."""
    return payload + max(1, -(-payload // 128)) * (16 + answers)


class LinkFraming(ProgramTest):
    def delivered(self, text):
        _, results = self.simulate(text)
        return int(table(results, "messages")["delivered"].max()), results

    def test_time_of_a_message(self):
        # Over two equal links, stored between them: all packets on the first, the last one once more on the second.
        for acks in (True, False):
            for size in (1, 128, 129, MTU, 10 * MTU, 10 * MTU + 700):
                last = self.time_over_two_links(size, 0 if acks else 16)
                self.assertEqual(self.delivered(two_hosts(size, acks))[0], last, f"{size} B, ACKs {acks}")
                # The ideal network has no packets of ACKs: answers are counted with the data.
                ideal = self.time_over_two_links(size, 16)
                self.assertEqual(self.delivered(two_hosts(size, acks, fidelity="ideal"))[0], ideal, f"{size} B, ideal")

    def time_over_two_links(self, size, answers):
        packets = [MTU] * (size // MTU) + ([size % MTU] if size % MTU else [])
        times = [PS * framed(payload, answers) for payload in packets]
        # A shorter last packet waits at the switch until the one before has gone.
        behind = max(times[-1], times[-2]) if len(times) > 1 else 0
        return sum(times[:-1]) + max(times[-1] + DELAY, DELAY + behind) + times[-1] + DELAY

    def test_queues_count_frames(self):
        """Two packets of 1 B reach a switch at one time, and one waits for the other, 17 B with its frame, for 17 B: in the mean
        17 B for that part of the run, and at most both. An Ethernet frame of 1 B would have 83 B."""
        text = two_hosts(1, acks=False)
        text["topology"] |= {"hosts": 3, "links": text["topology"]["links"] + [text["topology"]["links"][0] | {"from": "host2"}]}
        text["workload"]["pairs"] = [[0, 1], [2, 1]]
        for queues in ("fifo", "output"):
            frame = framed(1, 16)  # without ACKs with its answer
            summary, results = self.simulate(text if queues == "fifo" else {
                **text, "network": {**text["network"], "ack": "66 B", "queues": "output"}})
            if queues == "output":
                frame = framed(1)
            links = table(results, "links")
            into = [name == "host1" for name in links["to_name"]]
            self.assertEqual(links["peak_queue"][into].tolist(), [2 * frame], queues)
            mean = frame * PS * frame / summary["simulated_time_ps"]
            self.assertAlmostEqual(links["mean_queue"][into][0], mean, delta=1e-9, msg=queues)

    def test_busy_with_data_and_answers(self):
        """Both ways: of 10 flits 8 are data, 1 is a header, and 1 answers a frame of the other direction."""
        packets = 100
        _, results = self.delivered(two_hosts(packets * MTU, both=True))
        for busy in table(results, "links")["busy"]:
            self.assertEqual(int(busy), packets * PS * (framed(MTU) + MTU // 128 * 16))
        self.assertEqual(MTU / (framed(MTU) + MTU // 128 * 16), 0.8)

    def test_the_same_on_any_number_of_processes_and_by_both_engines(self):
        text = two_hosts(50 * MTU + 100, both=True)
        runs = [functools.partial(self.simulate, text, output=f"{ranks}.h5", ranks=ranks) for ranks in (1, 2, 3)]
        runs.append(functools.partial(self.simulate, text, "--engine", "ns3-default", output="reference.h5"))
        one, *others = two_at_a_time(runs)
        for summary, results in others:
            self.assert_same_results(one[1], results, [], f"{summary['mpi_ranks']} ranks, {summary['engine']}")

    def test_export_and_errors(self):
        path = self.write(two_hosts(1))
        self.run_weft("topology", path, "--export", "yaml", "-o", "machine.yaml", "--quiet")
        self.assertIn("framing: {payload: 128 B, overhead: 16 B, answer: 16 B}", (self.folder / "machine.yaml").read_text())
        wrong = weft("run", self.write(two_hosts(1, framing={"payload": "0 B", "overhead": "16 B"})), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertIn("found 0 B; expected 1 to 4096 B", wrong.err)

    def test_series_count_what_the_link_carries(self):
        """The queue of a framed link is reported in the bytes of its own frames, like the link's longest queue."""
        path = self.write({
            "topology": {"kind": "star", "hosts": 2, "link_rate": "800 Gb/s", "link_delay": "60 ns",
                         "server": {"gpus": 1, "inside": "none", "nics": 1, "gpu_rate": "400 Gb/s", "pcie_rate": "10 Gb/s",
                                    "pcie_delay": "25 ps", "pcie_framing": {"payload": "288 B", "overhead": "7 B"}}},
            "network": {"mtu": "280 B", "queues": "output"},
            "workload": {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": "41 kB"}, "output": {"sampling": "1 us"}})  # fmt: skip
        results = self.simulate(path)[1]
        series, links = table(results, "links_series"), table(results, "links")
        peak = dict(zip(links["id"], links["peak_queue"]))
        # The GPU's 400 Gb/s enter a link of 10: most of 41 kB wait there for some intervals. A packet of 280 B has 7 B
        # more on that link; with the network's headers it would have 66 more.
        self.assertGreater(series["queue"].max(), 30_000)
        self.assertLess(series["queue"].max(), 41_000 * 287 / 280)
        for link, queue in zip(series["link"], series["queue"]):
            self.assertLessEqual(queue, peak[link])


if __name__ == "__main__":
    unittest.main()
