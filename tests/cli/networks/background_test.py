#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""TCP transfers of `background:` beside RDMA traffic: goodput, shares of classes, losses, conservation, and bad input,
with expectations from formulas."""

import math
import pathlib
import sys
import unittest

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, ProgramTest, picoseconds_to_send, table, weft

RATE = 100 * 10**9
DELAY = 500_000  # ps
STAR = {"kind": "star", "hosts": 5, "link_rate": "100 Gb/s", "link_delay": "500 ns"}
MTU, HEADER, WIRE = 4096, 62, 20
# Of a frame of the network's largest size, Ethernet takes 18 B, IPv4 20, TCP 20 and its time stamps 12.
SEGMENT = MTU + HEADER - 18 - 20 - 20 - 12
FRAME = SEGMENT + 12 + 20 + 20 + 18
SILENCE = {"kind": "program", "ranks": 1, "operations": [{"rank": 0, "compute": "1 ns"}]}
ALL_REDUCE = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring", "ranks": 4, "size": "8 MiB"}
JOB = {"kind": "jobs", "jobs": [{"name": "job", "start": "1 ms", "workload": ALL_REDUCE}]}


def tcp(**keys):
    return {"kind": "tcp", "from": 4, "to": 0, "congestion_control": "linux_reno", **keys}


class Background(ProgramTest):
    def run_beside(self, workload, background, network=None, **parts):
        text = {"topology": STAR, "network": network or {}, "workload": workload, "background": background, **parts}
        self.runs = getattr(self, "runs", 0) + 1
        return self.simulate(text, output=f"out{self.runs}.h5")

    def test_tcp_gives_up_where_nothing_comes_back(self):
        """After 15 retransmissions, each twice as long after the one before (RFC 6298, 5.5), and the summary says so."""
        summary, _ = self.run_beside(SILENCE, [tcp(size="10 MB", min_rto="1 ms")],
                                     {"failures": [{"link": ["host0", "switch0"], "at": "20 us"}]})
        [row], [warning] = summary["transfers"], summary["warnings"]
        self.assertFalse(row["complete"])
        self.assertRegex(warning, rf"transfer 0, 'tcp', has delivered {row['bytes']} of 10000000 B: TCP has given up")
        pauses = (2**15 - 1) * 10**9
        self.assertTrue(pauses < summary["simulated_time_ps"] < 1.01 * pauses, summary["simulated_time_ps"])

    def test_an_endless_transfer_does_not_wait_for_one_that_has_given_up(self):
        """As above; and beside a transfer without an end the run has an end, too, at the next look, 100 us later."""
        network = {"failures": [{"link": ["host0", "switch0"], "at": "20 us"}]}
        summary, _ = self.run_beside(SILENCE, [tcp(size="10 MB", min_rto="1 ms"), tcp(min_rto="1 ms")], network)
        pauses = (2**15 - 1) * 10**9
        self.assertTrue(pauses < summary["simulated_time_ps"] < 1.01 * pauses, summary["simulated_time_ps"])
        self.assertFalse(summary["transfers"][0]["complete"])
        self.assertEqual(len(summary["warnings"]), 1, summary["warnings"])

    def test_a_transfer_that_has_given_up_is_not_cut_off_by_until(self):
        """Its sender and its receiver are on different processes of two. It gives up when one more
        timer has passed, at 2^16 ms."""
        network = {"failures": [{"link": ["host0", "switch0"], "at": "20 us"}]}
        text = {"topology": STAR, "network": network, "workload": SILENCE, "simulation": {"until": "100 s"},
                "background": [tcp(size="10 MB", min_rto="1 ms"), tcp(to=1, size="1 MB")]}
        found = []
        for ranks in (None, 2):
            summary, _ = self.simulate(text, output=f"until{ranks}.h5", ranks=ranks)
            self.assertEqual([row["complete"] for row in summary["transfers"]], [False, True])
            found.append((summary["complete"], summary["fingerprint"], summary["transfers"]))
        self.assertEqual(*found)
        self.assertTrue(found[0][0])

    def test_frames_of_the_class_of_data_are_as_the_reference_says(self):
        """At time 0 a host has a frame of TCP and a message in one class, which take turns: both are there before the
        first is sent, in weft's engine and in ns-3's own, where an application begins some events after time 0 has."""
        exchange = {"kind": "traffic", "pattern": "all_to_all", "size": "15 B", "ranks": 3}
        path = self.write({"topology": {**STAR, "hosts": 3}, "workload": exchange, "network": {"queues": "output"},
                           "background": [{"kind": "tcp", "from": 1, "to": 2, "size": "21 B", "priority": 3}]})
        self.run_weft("run", path, "-o", "turns.h5", "--quiet", "--verify")

    def test_goodput_alone_is_the_rate_less_headers(self):
        size = 20_000_000
        summary, path = self.run_beside(SILENCE, [tcp(size=f"{size} B")])
        [row] = summary["transfers"]
        self.assertTrue(row["complete"])
        self.assertEqual((row["bytes"], row["repeated_bytes"]), (size, 0))
        transfers = table(path, "transfers")
        # The connection is established after SYN and SYN-ACK; both have 20 B of options (RFC 9293, 7323, 2018), no
        # payload. ns-3 writes them as 78 B frames or less: between the least frame and that one.
        handshake = transfers["connected"][0] - transfers["start"][0]
        self.assertGreaterEqual(handshake, 4 * (DELAY + picoseconds_to_send(64 + WIRE, RATE)))
        self.assertLessEqual(handshake, 4 * (DELAY + picoseconds_to_send(82 + WIRE, RATE)))
        # From the first segment to the last: they cannot come faster than back to back.
        segments = -(-size // SEGMENT)
        last = size - (segments - 1) * SEGMENT
        frame = picoseconds_to_send(FRAME + WIRE, RATE)
        ideal = (segments - 2) * frame + picoseconds_to_send(last + FRAME - SEGMENT + WIRE, RATE)
        took = transfers["last"][0] - transfers["first"][0]
        self.assertGreaterEqual(took, ideal)
        # Slow start (RFC 5681): the window doubles in each round trip, from 10 segments (RFC 6928) up to the path's
        # bandwidth-delay product; each of these rounds wastes a round trip at most. One ACK for two segments.
        round_trip = 4 * DELAY + 3 * frame + 2 * picoseconds_to_send(82 + WIRE, RATE)
        rounds = math.ceil(math.log2(round_trip / frame / 10))
        self.assertLessEqual(took, ideal + max(rounds, 1) * round_trip)
        # Two links, all frames on each: segments, one each for SYN, ACK of SYN-ACK; FIN is on the last segment or alone.
        classes = table(path, "link_classes")
        sent = classes["packets"][classes["priority"] == 0]
        self.assertEqual(sorted(sent)[-1], sorted(sent)[-2])
        self.assertGreaterEqual(sorted(sent)[-1], segments + 2)

    def all_reduce_alone(self, network):
        summary, _ = self.run_beside(JOB, [], {"queues": "output", **network})
        return summary["collectives"][0]["time_ps"]

    # All-reduce and transfer reach host 0 through one port. Bytes of either that the port sends while the all-reduce
    # lasts are in proportion to the weights, if both always have something waiting there.
    def beside(self, priorities):
        network = {"priorities": priorities}
        summary, path = self.run_beside(JOB, [tcp(name="storage")], network, output={"sampling": "10 us"})
        [row] = summary["transfers"]
        self.assertEqual(row["size"], -1)
        time = summary["collectives"][0]["time_ps"]
        series = table(path, "transfers_series")
        self.assertEqual(series["bytes"].sum(), row["bytes"])
        # Intervals within the all-reduce.
        first, last = 1_000_000_000 + 10_000_000, (1_000_000_000 + time) // 10_000_000 * 10_000_000
        during = (series["time"] > first) & (series["time"] <= last)
        return time, 8e12 * series["bytes"][during].sum() / (last - first)

    def left(self, time):
        """The rest of the port's bytes beside the all-reduce in that time: 2 (n - 1) / n of 8 MiB pass there in packets."""
        packets = 2 * 3 * (8 * 2**20) // 4 // MTU
        return 1 - packets * picoseconds_to_send(MTU + HEADER + WIRE, RATE) / time

    def test_classes_share_a_port_by_their_weights(self):
        alone = self.all_reduce_alone({})
        link = RATE * SEGMENT / (FRAME + WIRE)  # of payload, when TCP has the port to itself
        for data, other in [(1, 1), (3, 1)]:
            time, goodput = self.beside(
                {"scheduling": "deficit_round_robin", "data_weight": data, "other_weight": other})
            # A round of the port: `data` packets, an ACK for each of those that host 0 sends meanwhile, and `other`
            # frames, which are as long as the packets. Alone the port is as busy, without the frames; the first and
            # last packets of the all-reduce, before and after others, are not slowed.
            alone_bytes = data * (FRAME + WIRE) + data * (66 + WIRE)
            round_bytes = alone_bytes + other * (FRAME + WIRE)
            self.assertLessEqual(time, alone * round_bytes / alone_bytes)
            self.assertGreaterEqual(time, 0.995 * alone * round_bytes / alone_bytes)
            self.assertGreaterEqual(goodput, 0.995 * RATE * other * SEGMENT / round_bytes)
            self.assertLessEqual(goodput, self.left(time) * link * 1.01)

    def test_strict_priority_protects_the_more_urgent_class(self):
        alone = self.all_reduce_alone({})
        link = RATE * SEGMENT / (FRAME + WIRE)
        time, goodput = self.beside({"scheduling": "strict"})
        # The first RDMA packet at the port waits for one frame at most, and from then on the port has RDMA to send.
        self.assertGreaterEqual(time, alone)
        self.assertLessEqual(time, alone + picoseconds_to_send(FRAME + WIRE, RATE))
        self.assertLessEqual(goodput, self.left(time) * link * 1.01)
        # The other way round TCP has all, and the all-reduce next to nothing until TCP ends.
        summary, _ = self.run_beside(JOB, [tcp(size="40 MB")], {"priorities": {"data": 3, "other": 5}})
        self.assertGreater(summary["collectives"][0]["time_ps"] + 1_000_000_000, summary["transfers"][0]["last_ps"])

    def test_losses_are_made_good_and_nothing_gets_lost_from_the_books(self):
        # Two senders at one port, whose queue holds 25 frames.
        size = 3_000_000
        background = [tcp(size=f"{size} B", congestion_control="cubic", name="a"),
                      tcp(**{"from": 3}, size=f"{size} B", congestion_control="cubic", name="b")]
        summary, path = self.run_beside(SILENCE, background, {"buffer": {"queue": "100 kB"}})
        self.assertGreater(summary["packets_dropped"], 0)
        for row in summary["transfers"]:
            self.assertTrue(row["complete"])
            self.assertEqual(row["bytes"], size)
        self.assertGreaterEqual(sum(row["repeated_bytes"] for row in summary["transfers"]),
                                summary["packets_dropped"] * SEGMENT // 2)
        links, classes = table(path, "links"), table(path, "link_classes")
        self.assertTrue(numpy.all(classes["peak_queue"] <= 100_000))
        host = numpy.array([name.startswith("host") for name in links["from_name"]])
        of = {link: at for at, link in enumerate(links["id"])}
        up = numpy.array([host[of[link]] for link in classes["link"]])
        dropped = classes["dropped"][~up].sum()
        self.assertEqual(classes["packets"][up].sum(), classes["packets"][~up].sum() + dropped)
        self.assertEqual(classes["dropped"].sum(), summary["packets_dropped"])

    def test_marks_keep_dctcp_from_filling_the_queue(self):
        network = {"ecn": {"kmin": "80 kB", "kmax": "80 kB"}}
        background = [tcp(congestion_control="dctcp", size="8 MB", **{"from": source}) for source in (3, 4)]
        summary, path = self.run_beside(SILENCE, background, network)
        self.assertGreater(summary["congestion"]["packets_marked"], 0)
        self.assertEqual([row["repeated_bytes"] for row in summary["transfers"]], [0, 0])
        unmarked, other = self.run_beside(
            SILENCE, [{**entry, "congestion_control": "linux_reno"} for entry in background], {"queues": "output"})
        self.assertEqual(unmarked["congestion"]["packets_marked"], 0)
        deep = [table(file, "link_classes")["peak_queue"].max() for file in (path, other)]
        self.assertLess(deep[0], deep[1] / 4)

    def test_lossless_priority_is_paused_and_not_dropped(self):
        network = {"flow_control": "pfc", "buffer": {"size": "1 MB"}}
        background = [tcp(size="3 MB", priority=3, **{"from": source}) for source in (2, 3, 4)]
        summary, path = self.run_beside(SILENCE, background, network)
        self.assertGreater(summary["congestion"]["pause_frames"], 0)
        self.assertEqual(summary["packets_dropped"], 0)
        self.assertEqual([row["repeated_bytes"] for row in summary["transfers"]], [0, 0, 0])
        classes = table(path, "link_classes")
        self.assertEqual(set(classes["priority"][classes["packets"] > 0]), {3})

    def test_frames_are_captured_as_they_are(self):
        self.run_beside(SILENCE, [tcp(size="10 kB")], output={"pcap": ["host4:0"]})
        capture = (self.folder / "out1.host4-0.pcap").read_bytes()
        self.assertEqual(capture[:4], bytes.fromhex("4d3cb2a1"))
        first = capture[24 + 16:]
        # Ethernet to host 0 from host 4, IPv4 with TCP from 10.0.0.4 to 10.0.0.0, SYN.
        self.assertEqual(first[:14], bytes.fromhex("020000000000" "020000000004" "0800"))
        self.assertEqual((first[23], first[26:34]), (6, bytes([10, 0, 0, 4, 10, 0, 0, 0])))
        self.assertEqual(first[14 + 20 + 13], 0x02)

    def test_frames_behind_a_message_count_as_queue(self):
        """At time 0 a host has a frame of TCP (SYN: 94 B with preamble and gap) and a message of one packet: whichever is
        first, 94 B and the packet have not been transmitted, as in the reference, and as samples show it."""
        star = {**STAR, "hosts": 2, "link_delay": "1 ps"}
        for size, workload in [
            (5, {"kind": "jobs", "jobs": [{"workload": {"kind": "checkpoint", "size": "5 B", "targets": 1}}]}),
            (1000, {"kind": "collective", "collective": "send_recv", "size": "1 kB"}),
        ]:
            with self.subTest(size=size):
                path = self.write({"topology": star, "workload": workload, "output": {"sampling": "1 ns"},
                                   "background": [{"kind": "tcp", "from": 0, "to": 1, "size": "1 B"}]})
                self.run_weft("run", path, "-o", "frames.h5", "--quiet", "--verify")
                links, series = (table(self.folder / "frames.h5", name) for name in ("links", "links_series"))
                self.assertGreaterEqual(links["peak_queue"][0], size + HEADER + WIRE + 94)
                self.assertTrue((series["queue"] <= links["peak_queue"][series["link"]]).all())

    def test_bad_entries_are_told_with_their_line(self):
        cases = [
            ([tcp(**{"from": 5})], {}, "from 0 to 4"),
            ([tcp(to=4)], {}, "found the host that sends"),
            ([tcp(priority=6)], {}, "expected 3"),
            ([tcp(segment="9 kB")], {}, "4088 B"),
            ([tcp(kind="sctp")], {}, "tcp"),
            ([tcp(sise="1 MB")], {}, "did you mean 'size'"),
            ([tcp()], {"ack": "none"}, "ack: none"),
            ([tcp()], {"fidelity": "ideal"}, "fidelity: packet"),
            ([tcp(congestion_control="dctcp", ecn=False)], {}, "dctcp"),
        ]
        for background, network, expected in cases:
            path = self.write({"topology": STAR, "network": network, "workload": SILENCE, "background": background})
            done = weft("run", path, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("experiment.yaml:5: ", done.err)
            self.assertIn(expected, done.err)


if __name__ == "__main__":
    unittest.main()
