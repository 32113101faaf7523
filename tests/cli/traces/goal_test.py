#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""GOAL schedules: end times that are derived here, all operations executed, the same on any number of processes."""

import functools
import gzip
import json
import pathlib
import random
import struct
import subprocess
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import goal_files
from weft_testing import (EXIT_INPUT, NETWORK, STAR, WEFT, ProgramTest, environment, picoseconds_to_send, table,
                          two_at_a_time, weft)

US = 10**6  # picoseconds
PAIR = """num_ranks 2
// a comment
rank 0 {
l1: calc 10000 cpu 0
l2: send 4096b to 1 tag 7 cpu 0 nic 0
l2 requires l1
}
/* and
another */
rank 1 {\r
\tl1 : recv 4096b from 0 tag 7
  l2: calc 5000
  l2 requires l1
}
"""


def message_time(size):
    """A message of one packet over two links of 400 Gb/s and 500 ns, with 62 B of headers and 20 B on the wire."""
    return 2 * (picoseconds_to_send(size + 82, 400 * 10**9) + 500_000)

ANY = """num_ranks 3
rank 0 {
first: recv 4096b from -1 tag 5
second: recv 4096b from -1 tag 5
c: calc 1000
c requires first
}
rank 1 {
c: calc 10000
s: send 4096b to 0 tag 5
s requires c
}
rank 2 {
c: calc 3000
s: send 4096b to 0 tag 5
s requires c
}
"""


# Two messages of one source, destination and tag.
BUFFERS = """num_ranks 2
rank 0 {{
a: send {}b to 1
b: send {}b to 1
}}
rank 1 {{
a: recv {}b from 0
b: recv {}b from 0
}}
"""


def ring(ranks, size):
    """A ring all-reduce: 2 (n - 1) rounds of a recv, and a send that waits for that of the round before; between them,
    n - 1 times, the reduction. For 4 ranks 4 * (6 + 6 + 3) = 60 operations."""
    text = f"num_ranks {ranks}\n"
    for rank in range(ranks):
        text += f"rank {rank} {{\n"
        for step in range(2 * (ranks - 1)):
            text += f"s{step}: send {size}b to {(rank + 1) % ranks} tag {step}\n"
            if step > 0:
                text += f"s{step} requires {'c' if step <= ranks - 1 else 'r'}{step - 1}\n"
            text += f"r{step}: recv {size}b from {(rank - 1) % ranks} tag {step}\n"
            if step < ranks - 1:
                text += f"c{step}: calc 100\nc{step} requires r{step}\n"
        text += "}\n"
    return text


class Goal(ProgramTest):
    def experiment(self, text, name="schedule.goal"):
        (self.folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return {"topology": STAR, "network": NETWORK, "workload": {"kind": "goal", "file": name},
                "simulation": {"seed": 1}, "output": {"operations": True}}

    def rows(self, text):
        """(rank, line's place) -> (start, end) in microseconds; ids are places in a rank's schedule."""
        _, results = self.simulate(self.experiment(text))
        rows = table(results, "operations")
        return {(int(rank), int(number)): (start / US, end / US)
                for rank, number, start, end in zip(rows["rank"], rows["operation"], rows["start"], rows["end"])}

    def test_a_message_between_two_computations(self):
        for text in (PAIR, gzip.compress(PAIR.encode()), PAIR.replace("\n", "\r\n")):
            _, results = self.simulate(self.experiment(text))
            self.assertEqual(table(results, "ranks")["finished"][1], 15 * US + message_time(4096))

    def test_a_recv_is_a_buffer(self):
        """A recv may be larger than its message, as in MPI: LogGOPSim matches by source and tag (match() of LogGOPSim.cpp),
        and the message has the bytes of its send. Whether the recv or the message is first, the run is that of equal sizes,
        also where the largest send is larger than the smallest recv, in binary and on several processes."""
        late = PAIR.replace("\tl1 : recv", "l0: calc 50000\n\tl1 : recv").replace("  l2: calc 5000", "  l1 requires l0\n  l2: calc 5000")
        for same, larger in ((PAIR, PAIR.replace("recv 4096b", "recv 65536b")),
                             (late, late.replace("recv 4096b", "recv 65536b")),
                             (BUFFERS.format(100, 8, 100, 8), BUFFERS.format(100, 8, 100, 50)),
                             (BUFFERS.format(8, 100, 8, 100), BUFFERS.format(8, 100, 9, 101))):
            one, results = self.simulate(self.experiment(same))
            for content, ranks in ((larger, None), (larger, 2), (goal_files.binary(larger), None)):
                summary, again = self.simulate(self.experiment(content), output="again.h5", ranks=ranks)
                self.assertEqual(summary["fingerprint"], one["fingerprint"])
                self.assert_same_results(results, again, ignore=["/manifest/experiment_text"])
            one, two = (weft("run", self.write(self.experiment(text)), "-o", "out.h5", "--summary", "json", "--quiet", "--set",
                             "network.fidelity=loggp", folder=self.folder).summary() for text in (same, larger))
            self.assertEqual(one["fingerprint"], two["fingerprint"])

    def test_a_ring_is_executed_to_its_end(self):
        """Every round takes a message, and the first three a reduction of 100 ns: all are in step. The last two sends start
        when a message arrives, behind its ACK of 66 + 20 B on the same port."""
        text = ring(4, 1024)
        summary, results = self.simulate(self.experiment(text))
        self.assertTrue(summary["complete"])
        self.assertEqual(len(table(results, "operations")["rank"]), 60)
        recvs = [end for kind, end in zip(table(results, "operations")["kind"], table(results, "operations")["end"])
                 if kind in (3, "recv")]
        self.assertEqual(max(recvs), 6 * message_time(1024) + 3 * 100_000 + 2 * picoseconds_to_send(86, 400 * 10**9))

    def test_cpus_and_requires(self):
        """cpu 0: the 2 us that wait for cpu 1's 4 us let those behind pass. irequires of a send that waits for cpu 1."""
        rows = self.rows("""num_ranks 2
rank 0 {
a: calc 4000 cpu 1
b: calc 2000 cpu 0
b requires a
c: calc 3000 cpu 0
d: calc 1000
s: send 8b to 1
s requires a
e: calc 500 cpu 2
e irequires s
}
rank 1 {
r: recv 8b from 0
}
""")
        self.assertEqual([rows[0, i] for i in (0, 1, 2, 3, 5)], [(0, 4), (4, 6), (0, 3), (3, 4), (4, 4.5)])
        self.assertEqual(rows[0, 4][0], 4)

    def test_blanks_and_options_as_txt2bin_takes_them(self):
        """Blanks before the b, and around colons; carriage returns; comments before a statement."""
        plain = "num_ranks 2\nrank 0 {\na: calc 1000\nb: send 4096b to 1 tag 3 cpu 0 nic 1\nb requires a\n}\n" \
                "rank 1 {\nrecv 4096b from 0 tag 3\n}\n"
        other = "// made by hand\r\nnum_ranks 2\r\n/* two\nranks */\r\nrank 0 {\r\na : calc  1000\r\n" \
                "b :\tsend 4096 b to 1\ttag 3 cpu 0 nic 1\r\n// first a\r\nb  requires\ta\r\n}\r\n" \
                "rank 1\t{\r\n  recv 4096\tb from 0 tag 3\r\n}\r\n"
        self.assertEqual(*(str(self.rows(text)) for text in (plain, other)))

    def test_dependencies_on_what_stands_below(self):
        rows = self.rows("num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 2000 cpu 1\na requires b\n}\n")
        self.assertEqual(sorted(rows.values()), [(0, 2), (2, 3)])

    def test_dependencies_in_any_order(self):
        """240 computations on a cpu each, which wait for up to three others anywhere in the file: each starts when the last of
        these has ended."""
        draw = random.Random(7)
        count = 240
        order = list(range(count))
        draw.shuffle(order)
        times = [draw.randrange(1, 50) for _ in order]
        waits = [draw.sample(order[:at], min(at, draw.randrange(4))) for at in range(count)]
        due, relations = {}, []
        for name, time, before in zip(order, times, waits):
            begin = max((due[one][1] for one in before), default=0)
            due[name] = (begin, begin + time)
            relations += [f"l{name} requires l{one}\n" for one in before]
        time_of = dict(zip(order, times))
        text = "num_ranks 1\nrank 0 {\n" + "".join(f"l{i}: calc {1000 * time_of[i]} cpu {i}\n" for i in range(count)) + \
            "".join(relations) + "}\n"
        for content, name in ((text, "any.goal"), (goal_files.binary(text), "any.bin")):
            _, results = self.simulate(self.experiment(content, name))
            rows = table(results, "operations")
            self.assertEqual(sorted(zip(rows["start"] / US, rows["end"] / US)), sorted(due.values()))

    def test_the_same_on_any_number_of_processes(self):
        path = self.write(self.experiment(ring(4, 30_000)))
        one, *others = two_at_a_time([functools.partial(self.simulate, path, output=f"{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
        for summary, results in others:
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"])
            self.assert_same_results(one[1], results)

    # Recvs from any rank and with any tag -----------------------------------------------------------------------------

    def test_a_recv_from_any_rank_takes_what_comes_first(self):
        """Rank 2 sends at 3 us and rank 1 at 10 us: the recv that was posted first takes the message of rank 2."""
        rows = self.rows(ANY)
        arrival = message_time(4096) / US
        self.assertEqual([rows[0, i][1] for i in (0, 1)], [3 + arrival, 10 + arrival])
        self.assertEqual(rows[0, 2], (3 + arrival, 4 + arrival))

    def test_messages_that_have_come_are_taken_in_the_order_in_which_they_came(self):
        """Rank 0 computes 50 us before it receives; of rank 1, with any tag, and of any rank with tag 7."""
        rows = self.rows("num_ranks 3\nrank 0 {\nc: calc 50000\na: recv 8b from 1 tag -1\nb: recv 8b from -1 tag 7\n"
                         "a requires c\nb requires a\n}\nrank 1 {\ns: send 8b to 0 tag 3\n}\n"
                         "rank 2 {\ns: send 8b to 0 tag 7\n}\n")
        self.assertEqual([rows[0, i][1] for i in (1, 2)], [50, 50])

    def test_a_recv_that_takes_another_one_s_message_leaves_it_waiting(self):
        """MPI's rule: the recv of any tag is first, and takes the message with tag 2, for which the other one waits."""
        text = "num_ranks 2\nrank 0 {\na: recv 8b from 1 tag -1\nb: recv 8b from 1 tag 2\n}\n" \
               "rank 1 {\na: send 8b to 0 tag 2\nb: send 8b to 0 tag 1\n}\n"
        done = weft("run", self.write(self.experiment(text)), "-o", "out.h5", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("recv of 8 B from rank 1, tag 2: no such message has come", done.err)

    def test_any_is_the_same_in_binary_and_on_any_number_of_processes(self):
        one, results = self.simulate(self.experiment(ANY))
        binary = self.experiment(goal_files.binary(ANY), "schedule.bin")
        for ranks in (None, 2, 3, 4, 8):
            summary, again = self.simulate(binary, output=f"{ranks}.h5", ranks=ranks)
            self.assertEqual(summary["fingerprint"], one["fingerprint"])
            self.assert_same_results(results, again, ignore=["/manifest/experiment_text"])
        self.run_weft("export", "goal", self.write(binary), "-o", "again.goal")
        self.assertIn("recv 4096b from -1 tag 5", (self.folder / "again.goal").read_text())
        done = weft("run", self.write(binary), "-o", "out.h5", "--set", "network.fidelity=loggp", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("rank 0 has recvs from any rank", done.err)

    # The binary form -------------------------------------------------------------------------------------------------

    def test_binary_is_the_same_as_text(self):
        text = ring(4, 1024).replace("calc 100", "calc 100 cpu 9")
        one, results = self.simulate(self.experiment(text))
        for content in (goal_files.binary(text), gzip.compress(goal_files.binary(text))):
            summary, again = self.simulate(self.experiment(content, "schedule.bin"), output="again.h5")
            self.assertEqual(summary["fingerprint"], one["fingerprint"])
            self.assertEqual(summary["operations"], 60)
            self.assert_same_results(results, again, ignore=["/manifest/experiment_text"])

    def test_binary_nodes_that_wait_for_what_stands_below(self):
        text = "num_ranks 1\nrank 0 {\na: calc 1000\nb: calc 2000 cpu 1\na requires b\n}\n"
        _, results = self.simulate(self.experiment(goal_files.binary(text)))
        rows = table(results, "operations")
        self.assertEqual(sorted(zip(rows["start"] / US, rows["end"] / US)), [(0, 2), (2, 3)])

    def test_text_to_binary_to_text_is_the_identity(self):
        """Also in the other direction, and against a writer of the binary form that is not weft's."""
        text = """num_ranks 2

rank 0 {
l1: calc 729000
l2: send 4096b to 1 tag 7 cpu 1 nic 2
l2 requires l1
l3: recv 9223372036854775807b from 1
l3 irequires l2
l4: calc 0 cpu 255
l4 requires l1
l4 requires l3
l4 irequires l2
}

rank 1 {
l1: recv 4096b from 0 tag 7
l2: send 9223372036854775807b to 0
}
"""
        def written(content, name, output):
            self.run_weft("export", "goal", self.write(self.experiment(content, name)), "-o", output)
            return (self.folder / output).read_bytes()
        self.assertEqual(written(text, "first.goal", "first.bin"), goal_files.binary(text))
        self.assertEqual(written(goal_files.binary(text), "other.bin", "again.goal"), text.encode())
        self.assertEqual(written(text, "first.goal", "same.goal"), text.encode())
        report = self.run_weft("export", "goal", self.write(self.experiment(text)), "-o", "x.goal").out
        self.assertEqual(report, "x.goal: 2 ranks, 6 operations: calc 2, send 2, recv 2\n")

    def peak_of(self, name, count):
        """Bytes of a run of a schedule that is there. A shell starts it: the memory of this process would count for its
        children."""
        path = self.write({"topology": STAR, "network": NETWORK, "workload": {"kind": "goal", "file": name},
                           "output": {"messages": "none"}})
        done = subprocess.run(["sh", "-c", '"$0" run "$1" -o out.h5 --summary json --quiet; exit $?', WEFT, path],
                              cwd=self.folder, env=environment(), capture_output=True, text=True)
        self.assertEqual(json.loads(done.stdout)["operations"], 2 * count, done.stderr)
        with h5py.File(self.folder / "out.h5") as file:
            return int(file["manifest/parallel/peak_memory"][:].sum())

    def test_memory_does_not_follow_the_length_of_a_binary_schedule(self):
        """Ten times the operations of two ranks, each behind the one before."""
        peaks = []
        for count in (10_000, 100_000):
            size = 8 + 4 + 39 * count + 4 * (count - 1)
            with open(self.folder / "long.bin", "wb") as file:
                file.write(struct.pack("<QIBBQQQQ", 4223, 2, 0, 0, 38, 38 + size, 38 + size, 38 + 2 * size))
                for rank in (0, 1):
                    file.write(struct.pack("<III", count, 1, 0))
                    for i in range(count):
                        message = i % 50 == 49
                        file.write(struct.pack("<IBIQIBBIIII", int(i > 0), 1 + rank if message else 3, 1 - rank,
                                               100 if message else 1000, 0, 0, 0, int(i < count - 1), i, 0, i + 1))
                    for i in range(1, count):
                        file.write(struct.pack("<I", i))
            peaks.append(self.peak_of("long.bin", count))
        self.assertLess(peaks[1], peaks[0] + 2 * 2**20, peaks)

    def test_memory_does_not_follow_the_length_of_a_text(self):
        """The same as text, all dependencies behind all operations. Sorted runs of 32,768 records are full in the shorter
        schedule, too; kept in memory, an operation with its label takes 150 B or more: 20 MB for 2 x 70,000."""
        peaks = []
        for count in (50_000, 120_000):
            with open(self.folder / "long.goal", "w", encoding="ascii") as file:
                file.write("num_ranks 2\n")
                for rank in (0, 1):
                    message = "recv 100b from 0" if rank else "send 100b to 1"
                    file.write(f"rank {rank} {{\n")
                    file.writelines(f"l{i}: {message if i % 50 == 49 else 'calc 1000'}\n" for i in range(count))
                    file.writelines(f"l{i} requires l{i - 1}\n" for i in range(1, count))
                    file.write("}\n")
            peaks.append(self.peak_of("long.goal", count))
        self.assertLess(peaks[1], peaks[0] + 2 * 2**20, peaks)

    def test_memory_does_not_follow_the_length_of_a_text_in_another_order(self):
        """Of each two operations the first waits for the second one, so that only one of them is held at a time. As a whole
        in memory an operation takes 50 B or more: 7 MB for 2 x 70,000."""
        peaks = []
        for count in (50_000, 120_000):
            with open(self.folder / "long.goal", "w", encoding="ascii") as file:
                file.write("num_ranks 2\n")
                for rank in (0, 1):
                    message = "recv 100b from 0" if rank else "send 100b to 1"
                    file.write(f"rank {rank} {{\n")
                    for i in range(0, count, 2):
                        file.write(f"l{i}: {message if i % 50 == 0 else 'calc 1000'}\nl{i + 1}: calc 1000\n")
                        file.write(f"l{i} requires l{i + 1}\n" + (f"l{i + 1} requires l{i - 2}\n" if i else ""))
                    file.write("}\n")
            peaks.append(self.peak_of("long.goal", count))
        self.assertLess(peaks[1], peaks[0] + 2 * 2**20, peaks)

    def test_labels(self):
        """At any place of the relation; labels of any length with the same beginning."""
        long = "a_label_of_many_letters"
        text = f"""num_ranks 1
rank 0 {{
x: calc 1000
{long}1: calc 4000 cpu 1
{long}2: calc 2000 cpu 2
y: calc 500 cpu 3
c: calc 100 cpu 4
c requires x
d: calc 100 cpu 5
d requires {long}1
e: calc 100 cpu 6
e requires {long}2
e requires x
e requires {long}2
}}
"""
        rows = self.rows(text)
        self.assertEqual([rows[0, i][0] for i in range(7)], [0, 0, 0, 0, 1, 4, 2])

    def test_complaints_about_binary_files(self):
        good = goal_files.binary(PAIR)
        node = 14 + 2 * 16 + 12  # the first of rank 0, behind its counts and its one root

        def with_bytes(at, content):
            return good[:at] + content + good[at + len(content):]
        for content, part in (
                (good[:-1], "the file ends in the middle; it has been cut off"),
                (good[:30], "the file ends in the middle"),
                (with_bytes(0, struct.pack("<Q", 2342)), "a simulator has overwritten the file"),
                (with_bytes(8, struct.pack("<I", 0)), "0 ranks; expected 1 to"),
                (with_bytes(14, struct.pack("<Q", 2)), "the part of rank 0 is from 2"),
                (with_bytes(node + 4, b"\x04"), "rank 0, node 0: found the type 4"),
                (with_bytes(node, struct.pack("<I", 3)), "rank 0, node 0: it says that it waits for 3 nodes; 0 say so"),
                (with_bytes(node + 9, struct.pack("<Q", 2**63)), "rank 0, node 0: the size is 9223372036854775808"),
                (with_bytes(node + 39 + 5, struct.pack("<I", 0)), "rank 0, node 1: a message of a rank to itself"),
                (with_bytes(node + 39 + 5, struct.pack("<I", 9)), "rank 0, node 1: rank 9 is out of range"),
                (with_bytes(node + 39 + 17, struct.pack("<I", 2**32 - 1)), "rank 0, node 1: a send with any tag (-1)"),
                (with_bytes(node + 39 + 17, struct.pack("<I", 8)), "rank 1, node 0: the recv from rank 0 to rank 1 with tag 7 has "
                                                                   "no send: there are 0 sends and 1 recvs")):
            with self.subTest(part=part):
                done = weft("run", self.write(self.experiment(content, "schedule.bin")), "-o", "out.h5", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part, done.err)

    def test_complaints(self):
        for text, part in (
                (PAIR.replace("num_ranks", "ranks"), "schedule.goal:1: found 'ranks'; expected 'num_ranks'"),
                (PAIR.replace("rank 1", "rank 2"), "schedule.goal:10: found rank 2; expected rank 1"),
                (PAIR.replace("l2 requires l1", "l2 requires l7"), "schedule.goal:6: no operation of rank 0 above has the label 'l7'"),
                (PAIR.replace("l2: send", "l2 requires l1\nl2: send", 1), "schedule.goal:5: no operation of rank 0 above has the label 'l2'"),
                (PAIR.replace("l2 requires l1", "l7 requires l2\nl1 requires l8", 1),
                 "schedule.goal:6: no operation of rank 0 above has the label 'l7'"),
                (PAIR.replace("l2: send", "l1: calc 1\nl2: send", 1),
                 "schedule.goal:5: the label 'l1' is that of line 4; expected another one for each operation of rank 0"),
                (PAIR.replace("l2 requires l1", f"{'l' * 40}: calc 1\nl2 requires l1\n{'l' * 40}: calc 2", 1),
                 "schedule.goal:8: the label 'llll"),
                (PAIR.replace("to 1", "to 0"), "schedule.goal:5: a message of a rank to itself"),
                (PAIR.replace("to 1", "to 5"), "schedule.goal:5: rank 5 is out of range"),
                (PAIR.replace("to 1", "to -1"), "schedule.goal:5: the other rank is '-1'"),
                (PAIR.replace("l1: calc 10000", "l0: send 1b to 1\nl1: calc 10000").replace("from 0", "from -1"),
                 "schedule.goal:12: rank 1 receives 1 messages, some from any rank or with any tag (-1), and 2 are sent"),
                (PAIR.replace("send 4096b", "send 4096"), "schedule.goal:5: the size is '4096'; expected bytes such as 4096b"),
                (PAIR.replace("send 4096b", "send 4097b"), "schedule.goal:5: message 0 from rank 0 to rank 1 with tag 7: "
                                                           "the send has 4097 bytes, and the recv on line 11 has room for "
                                                           "4096; expected a recv of as many or more"),
                (BUFFERS.format(8, 100, 50, 99), "schedule.goal:4: message 1 from rank 0 to rank 1 with tag 0: the send "
                                                 "has 100 bytes, and the recv on line 8 has room for 99"),
                (PAIR.replace("nic 0", "nic 0 fast"), "schedule.goal:5: found 'fast'; expected tag, cpu or nic"),
                (PAIR.replace("recv 4096b from 0 tag 7", "calc 1"), "schedule.goal:5: the send from rank 0 to rank 1 with "
                                                                    "tag 7 has no recv"),
                (PAIR.replace("l2 requires l1\n}", "l2 requires l1\nl1 requires l2\n}", 1),
                 "schedule.goal:4: the operation waits, through others or directly, for itself"),
                (PAIR[:-3], "schedule.goal:13: the file ends in the middle of a schedule"),
                (PAIR[:60], "schedule.goal:5: found 's'"),
                (PAIR.replace("calc 10000", "calc 99999999999999999"), "schedule.goal:4: a calc of 99999999999999999 ns"),
                (PAIR.replace("num_ranks 2", "num_ranks 9"), "schedule.goal:15: the file ends in the middle of a schedule")):
            with self.subTest(part=part):
                done = weft("run", self.write(self.experiment(text)), "-o", "out.h5", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
