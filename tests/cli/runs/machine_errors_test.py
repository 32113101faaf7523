#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Runs in: quick
"""Every way in which a machine and its network can be wrong: one message that names the line, and what would be right."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from error_testing import GOOD, ErrorTest, with_part

GRAPH = """\
  kind: graph
  hosts: 2
  switches: 1
  link_rate: 400 Gb/s
  link_delay: 500 ns
  links:
    - {from: host0, to: switch0}
    - {from: host1, to: switch0}
"""
STAR = GOOD[GOOD.index("  kind: star") : GOOD.index("network:")]


def failures_with_rates(count):
    """Entries of `failures`, each with a rate of its own for a microsecond."""
    return ", ".join(f"{{link: all, at: {i} us, until: {i + 1} us, rate: {1000 + i} Mb/s}}" for i in range(count))


class Machine(ErrorTest):
    def test_links(self):
        self.wrong(("500 ns", "0 ns"), "zero delay")
        self.wrong(("400 Gb/s", "0 Gb/s"), "above 0")
        self.wrong(("400 Gb/s", "-400 Gb/s"), "-400 Gb/s")

    def test_network(self):
        self.wrong(("mtu: 4096 B", "mtu: 0 B"), "mtu.*found 0 B.*1 B to 65535 B")
        self.wrong(("mtu: 4096 B", "mtu: 64 KiB"), "mtu.*64 KiB.*65535 B")
        self.wrong(("header: 62 B", "header: 0 B"), "header")
        self.wrong(("ack: 66 B", "ack: non"), "ack")
        self.wrong(("ack: 66 B", "ack: 0 B"), "ack.*0 B")
        self.wrong(("window: 256 KiB", "window: 0 B"), "window.*0 B")
        self.wrong(("switch_latency: 0 ns", "switch_latency: 0"), "switch_latency.*unit")

    def bad_network(self, keys, pattern, at, start=GOOD):
        """`keys`: lines for `network:`; the error is expected at the line of `at`."""
        lines = "".join(f"  {line}\n" for line in keys)
        self.wrong(("  window: 256 KiB\n", "  window: 256 KiB\n" + lines), pattern, start, name="; ".join(keys), at=at)

    def test_buffers(self):
        pfc = ["flow_control: pfc", "buffer: {size: 10 MB}"]
        for keys, pattern, at in [
            (["buffer: {size: 1 kB}"], "found 1 kB; expected a packet memory of 4158 B to", "buffer"),
            (["buffer: {size: 10 MB, alpha: 0}"], "alpha.*'0'", "buffer"),
            (["buffer: {size: 10 MB, alpha: 1, threshold: 1 MB}"], "beside alpha", "buffer"),
            (["buffer: {size: 10 MB, reserve: 1 MB}"], "4 ports: .*12 MB of reserves do not fit.*10 MB", "buffer"),
            (["buffer: {size: 10 MB, queue: 100 B}"], "found 100 B; expected an output queue of 4158 B", "buffer"),
            (["buffer: {sizes: 10 MB}"], "unknown key 'sizes'.*did you mean 'size'", "buffer"),
            (["flow_control: pfcc"], "'pfcc'.*did you mean 'pfc'", "flow_control"),
            (["flow_control: pfc"], "pfc is found without buffer.size", "flow_control"),
            (["flow_control: pfc", "buffer: {size: 100 kB}"], "of headroom.*do not fit into a packet memory of 100 kB",
             "buffer"),
            (pfc + ["pfc: {headroom: 20 MB}"], "80 MB of headroom.*do not fit.*10 MB", "buffer"),
            (pfc + ["pfc: {headroom: 0 B}"], "found 0 B; expected a headroom of 1 B", "pfc: {"),
            (pfc + ["pfc: {quanta: 70000}"], "from 1 to 65535.*'70000'", "pfc: {"),
            # Two packets of 4178 B are 131 times 512 bits.
            (pfc + ["pfc: {quanta: 130}"], "found 130; expected at least 131.*two packets of 4178 B", "pfc: {"),
            (pfc + ["pfc: {watchdog: 0 us}"], "found 0; expected a time above 0", "pfc: {"),
            (["pfc: {quanta: 200}"], "found without flow_control: pfc", "pfc"),
            (["credit: {buffer: 100 kB}"], "found without flow_control: credit", "credit"),
            (["flow_control: credit", "credit: {buffer: 100 B}"], "an input buffer of 4158 B", "credit: {"),
            (["flow_control: credit", "credit: {buffer: 2 GiB}"], "found 2 GiB; expected an input buffer of 4158 B to 1 GiB",
             "credit: {"),
            (["flow_control: credit", "buffer: {size: 10 MB}"], "credit, whose buffers are those of each link",
             "buffer: {size"),
            (["trimming: true"], "without a limit of the queues", "trimming"),
            (["trimming: yess"], "expected true or false", "trimming"),
            (["switching: cut"], "'cut'.*cut_through", "switching"),
        ]:
            self.bad_network(keys, pattern, at)

    def test_priorities_and_marks(self):
        for keys, pattern, at in [
            (["priorities: {data: 8}"], "from 0 to 7.*'8'", "priorities"),
            (["priorities: {data: 6}"], "data 6, control 6 and other 0; expected three different", "priorities"),
            (["priorities: {control: 2}"], "control 2 below another", "priorities"),
            (["priorities: {storage: 2}"], "unknown key 'storage'", "priorities"),
            (["priorities: {data_weight: 2}"], "found with strict scheduling", "priorities"),
            (["priorities: {scheduling: deficit_round_robin, data_weight: 0}"], "from 1 to 1000.*'0'", "priorities"),
            (["priorities: {scheduling: round_robin}"], "'round_robin'.*deficit_round_robin, strict, weighted_round_robin, fifo", "priorities"),
            (["ecn: {kmin: 100 kB}"], "kmin is there and kmax is not", "ecn"),
            (["ecn: {kmax: 100 kB}"], "found without kmin", "ecn"),
            (["ecn:", "  kmin: 100 kB", "  kmax: 99 kB"], "found 99 kB, below kmin; expected at least 100 kB", "kmax"),
            (["ecn: {kmin: 1 kB, kmax: 2 kB, pmax: 1.5}"], "pmax.*1.5", "ecn"),
            (["ecn: {mark: leaving}"], "'leaving'.*departure, arrival", "ecn"),
        ]:
            self.bad_network(keys, pattern, at)

    def test_connections(self):
        for keys, pattern, at in [
            (["recovery: go_back"], "'go_back'.*go_back_n, selective_repeat, go_back_0", "recovery"),
            (["load_balancing: spray", "recovery: go_back_n"], "expected selective_repeat", "recovery"),
            (["selective_repeat: {timeout: 1 ms}"], "found with recovery: go_back_n", "selective_repeat"),
            (["go_back_n: {timeout: 0 us}"], "found 0; expected a time above 0", "go_back_n"),
            (["go_back_n: {timeout: 10 us, timeout_low: 20 us}"], "found 20 us; expected above 0 and at most timeout", "go_back_n"),
            (["go_back_n: {reordering: 3}"], "unknown key 'reordering'", "go_back_n"),
            (["recovery: selective_repeat", "selective_repeat: {reordering: 0}"], "from 1 to 32767.*'0'",
             "selective_repeat: {"),
            (["ack_interval: 0"], "from 1 to 1024.*'0'", "ack_interval"),
            (["load_balancing: sprayed"], "'sprayed'.*did you mean 'spray'", "load_balancing"),
            (["flowlet: {gap: 5 us}"], "found without load_balancing: flowlet", "flowlet"),
            (["load_balancing: flowlet", "flowlet: {gap: 0 us}"], "found 0; expected a time above 0", "flowlet: {"),
            (["congestion_control: dcqn"], "'dcqn'.*did you mean 'dcqcn'", "congestion_control"),
            (["dctcp: {gain: 0.5}"], "found with congestion_control: none", "dctcp"),
            (["loss: [{link: [host0, host1], probability: 0.1}]"], "no link between host0 and host1", "loss"),
            (["loss: [{link: all, probability: 2}]"], "probability.*'2'", "loss"),
            (["failures: [{link: all, at: 3 us, until: 2 us}]"], "not after its beginning 3 us", "failures"),
            (["reconvergence: 3 us"], "found without failures", "reconvergence"),
            (["queues: committed", "congestion_control: dcqcn", "ecn: {}"],
             "found committed with ecn, congestion_control, which need queues by class; expected output", "queues"),
            (["queues: committed", "loss: [{link: all, probability: 0.1}]"], "found committed with loss", "queues"),
            ([f"failures: [{failures_with_rates(256)}]", "congestion_control: hpcc"], "at most 256 rates .* on links with 257",
             "congestion_control"),
        ]:
            self.bad_network(keys, pattern, at)
        for key in ["queues: output", "load_balancing: spray", "ack_interval: 2", "loss: [{link: all, probability: 0.1}]"]:
            self.wrong(("ack: 66 B", f"ack: none\n  {key}"), "found none beside keys that need reliable connections")

        torus = with_part("kind: star\n  hosts: 4", "kind: torus\n  dims: [4, 4]")
        for balancing in ("adaptive", "flowlet"):
            self.bad_network([f"load_balancing: {balancing}", "routing: minimal_adaptive"],
                             f"found {balancing}, by which switches choose ports, with routing 'minimal_adaptive'",
                             "load_balancing", torus)

    def test_fat_tree(self):
        tree = with_part("kind: star\n  hosts: 4", "kind: fat_tree\n  k: 4")
        self.wrong(("k: 4", "k: 5"), "even; found 5; use 4 or 6", tree)
        self.wrong(("k: 4", "k: 0"), "from 2 to", tree)
        self.wrong(("k: 4", "k: 1000"), "from 2 to", tree)
        self.wrong(("k: 4", "k: 4\n  hosts: 16"), "unknown key 'hosts'", tree, at="hosts: 16")

    def test_graph(self):
        graph = with_part(STAR, GRAPH)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch1}"), "unknown node 'switch1'", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1}"), "missing key 'to'", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: host1}"), "linked to itself", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host0, to: switch0}"), "host0 has a link already", graph)
        self.wrong(("\n    - {from: host1, to: switch0}", ""), "host1 has no link", graph, at="hosts: 2", name="unlinked")
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch0, delay: 0 ns}"), "zero delay", graph)
        self.wrong(("{from: host1, to: switch0}", "{from: host1, to: switch0, rate: 0 b/s}"), "above 0", graph)
        self.wrong(("switches: 1", "switches: 2"), "not connected", graph, at="topology:")
        self.wrong(("links:\n", "links:\n    - host0\n"), "expected a map", graph, at="- host0")

    def test_line(self):
        line = with_part("kind: star\n  hosts: 4", "kind: line\n  links: 2")
        self.wrong(("500 ns", "[500 ns]"), "1 values for 2 links", line)
        self.wrong(("500 ns", "[500 ns, 0 ns]"), "zero delay", line)
        self.wrong(("400 Gb/s", "[400 Gb/s, 0 Gb/s]"), "above 0", line)


if __name__ == "__main__":
    unittest.main()
