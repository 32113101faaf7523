#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""weft collective and weft perf: steps, proofs, closed forms, schedule files and their errors, nccl-tests' table."""

import json
import math
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

WEFT = os.environ["WEFT"]

XML = """<algo name="pair" nchunksperloop="2" nchannels="1" proto="Simple" ngpus="2" coll="allreduce" inplace="1">
  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="2" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="r" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="0" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="1" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="2" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="1" deps="0" hasdep="0"/>
      <step s="3" type="r" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="1" cnt="1" depid="0" deps="1" hasdep="1"/>
    </tb>
  </gpu>
</algo>
"""

STAR = """topology: {kind: star, hosts: 8, link_rate: 400 Gb/s, link_delay: 500 ns}
network: {mtu: 4096 B}
"""


class Collective(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def weft(self, *words, code=0):
        done = subprocess.run([WEFT, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout if code == 0 else done.stderr

    def json(self, *words):
        return json.loads(self.weft("collective", *words, "--json"))

    def cost(self, algorithm, kind, ranks, size, *words):
        return self.json(
            algorithm, "--kind", kind, "--ranks", ranks, "--size", size, "--cost", "--latency", "1us", "--rate", "80Gb/s", *words
        )["cost"]

    def test_closed_forms(self):
        # Thakur, Rabenseifner, Gropp 2005, doi:10.1177/1094342005051521: alpha = 1 us, beta = 100 ps per byte.
        whole = ["--chunk-size", "1GiB", "--slices", "1"]
        alpha, beta = 1_000_000, 100
        for p, size in ((8, 64_000), (32, 32 * 16 * 50)):
            log = p.bit_length() - 1
            share = size * (p - 1) // p
            cases = {
                ("recursive_doubling", "all_reduce"): (log, log * size),
                ("halving_doubling", "all_reduce"): (2 * log, 2 * share),
                ("swing", "all_reduce"): (2 * log, 2 * share),
                ("ring", "all_reduce"): (2 * (p - 1), 2 * share),
                ("ring", "all_gather"): (p - 1, share),
                ("ring", "reduce_scatter"): (p - 1, share),
                ("recursive_doubling", "all_gather"): (log, share),
                ("bruck", "all_gather"): (log, share),
                ("pat", "all_gather"): (log, share),
                ("pat", "reduce_scatter"): (log, share),
                ("bruck", "all_to_all"): (log, log * size // 2),
                ("pairwise", "all_to_all"): (p - 1, share),
                ("binomial", "broadcast"): (log, log * size),
                ("binomial", "reduce"): (log, log * size),
                ("binomial", "scatter"): (log, share),
                ("binomial", "gather"): (log, share),
                ("scatter_allgather", "broadcast"): (log + p - 1, 2 * share),
                ("direct", "all_reduce"): (2, 2 * share),
                ("direct", "all_gather"): (1, share),
                ("linear", "all_to_all"): (1, share),
            }
            for (algorithm, kind), (rounds, serial) in cases.items():
                cost = self.cost(algorithm, kind, p, size, *whole)
                self.assertEqual((cost["rounds"], cost["time_ps"]), (rounds, rounds * alpha + serial * beta), (algorithm, kind, p))

    def test_closed_forms_of_grids_and_pipelines(self):
        alpha, beta = 1_000_000, 100
        # Bucket on k1 x k2 and hierarchical with g ranks of N servers: 2 sum(k - 1) alpha + 2 (P-1)/P S beta.
        cost = self.cost("bucket", "all_reduce", 32, 512_000, "--dimensions", "8x4")
        self.assertEqual(cost["time_ps"], 2 * (7 + 3) * alpha + 2 * 512_000 * 31 // 32 * beta)
        cost = self.cost("hierarchical", "all_reduce", 32, 512_000, "--ranks-per-server", "4")
        self.assertEqual(cost["time_ps"], 2 * (3 + 7) * alpha + 2 * 512_000 * 31 // 32 * beta)
        # The halves of an all-reduce: sum(k - 1) messages of each rank, also with several channels (each its own) and if the
        # last blocks are short, which by_dimension has where the size is no multiple of the ranks.
        grids = (("hierarchical", ["--ranks-per-server", "4"], 3 + 7), ("bucket", ["--dimensions", "8x4"], 7 + 3),
                 ("by_dimension", ["--dimensions", "8x4"], 7 + 3))
        for algorithm, words, rounds in grids:
            for kind in ("all_gather", "reduce_scatter"):
                with self.subTest(algorithm=algorithm, kind=kind):
                    cost = self.cost(algorithm, kind, 32, 512_000, *words)
                    self.assertEqual((cost["rounds"], cost["messages"]), (rounds, 32 * rounds))
                    self.assertEqual(cost["time_ps"], rounds * alpha + 512_000 * 31 // 32 * beta)
                    self.assertEqual(self.cost(algorithm, kind, 32, 512_001, *words)["messages"], 32 * rounds)
                    several = self.cost(algorithm, kind, 32, 512_000, *words, "--channels", 3)
                    self.assertEqual((several["rounds"], several["messages"]), (rounds, 3 * 32 * rounds))
        # A chain of q chunks of c bytes: (p - 2 + q) (alpha + c beta) if each message waits for the one before on the link;
        # here links pipeline: (p - 1) (alpha + c beta) for the first chunk, then c beta for each further one.
        for p, q, c in ((2, 5, 1000), (9, 20, 4000)):
            cost = self.cost("chain", "broadcast", p, q * c, "--chunk-size", c, "--credits", 1000)
            self.assertEqual(cost["time_ps"], (p - 1) * (alpha + c * beta) + (q - 1) * c * beta)

    def test_rounds_and_bytes_are_never_below_the_bounds(self):
        for p in (6, 13):
            for algorithm in ("halving_doubling", "swing", "double_binary_tree", "bucket", "hierarchical"):
                found = self.json(algorithm, "--kind", "all_reduce", "--ranks", p, "--size", 1000 * p, "--check", "--cost")
                self.assertTrue(found["check"]["right"])
                self.assertGreaterEqual(found["check"]["bytes_sent"], 2 * (p - 1) * 1000 * p)
                self.assertGreaterEqual(found["cost"]["rounds"], math.ceil(math.log2(p)))

    def test_steps_as_json_match(self):
        found = self.json("ring", "--ranks", 3, "--size", 3072, "--show")
        steps = [s for s in found["steps"] if s["rank"] == 0]
        self.assertEqual(
            [(s["kind"], s["peer"], s["offset"], s["bytes"]) for s in steps],
            [
                ("send", 1, 2048, 1024),
                ("recv_reduce_send", 1, 1024, 1024),
                ("recv_reduce_copy_send", 1, 0, 1024),
                ("recv_copy_send", 1, 2048, 1024),
                ("recv", 2, 1024, 1024),
            ],
        )
        sent = sorted((s["rank"], to, s["bytes"]) for s in found["steps"] for to in s["send_to"])
        got = sorted((of, s["rank"], s["bytes"]) for s in found["steps"] for of in s["receive_from"])
        self.assertEqual(sent, got)

    def test_bytes_between_servers(self):
        # All-reduce along rails: each of 8 ranks sends 2 (N-1)/N of a quarter between its N = 2 servers.
        found = self.json(
            "hierarchical", "--kind", "all_reduce", "--ranks", 8, "--ranks-per-server", 4, "--size", 8 * 1024, "--check"
        )["check"]
        self.assertEqual(found["bytes_between_servers"], 8 * (8 * 1024 // 4))

    def test_schedule_files(self):
        path = self.folder / "pair.xml"
        path.write_text(XML)
        self.assertTrue(self.json(path, "--size", "1MiB", "--check")["check"]["right"])
        self.assertTrue(self.json(path, "--check")["check"]["right"])  # of 64 KiB in each of its chunks
        text = self.weft("collective", path, "--text")
        (self.folder / "pair.schedule").write_text(text)
        self.assertEqual(self.weft("collective", "pair.schedule", "--text"), text)
        both = [self.json(name, "--size", "8MiB", "--cost")["cost"] for name in ("pair.xml", "pair.schedule")]
        self.assertEqual(both[0], both[1])
        (self.folder / "run.yaml").write_text(
            STAR + "workload: {kind: collective, collective: all_reduce, ranks: 2, size: 8 MiB, algorithm: pair.xml}\n"
        )
        self.weft("run", "run.yaml", "--quiet", "-o", "run.h5")

    def test_wrong_schedule_files(self):
        cases = [
            ('type="rrc"', 'type="rrx"', "bad.xml:5: GPU 0: thread block 0, step 1:", "known here"),
            ('deps="0" hasdep="0"', 'deps="7" hasdep="0"', "thread block 0, step 2: deps=\"7\"", "has 1 steps"),
            ('depid="1"', 'depid="9"', "there is no such thread block", ""),
            ('depid="0" deps="1" hasdep="1"', 'depid="0" deps="2" hasdep="1"', "hasdep=\"0\" and notifies no other block", ""),
            ('srcoff="1" dstbuf="s" dstoff="0" cnt="1"', 'srcoff="1" dstbuf="s" dstoff="0" cnt="2"', "has 2 chunks", "step 0"),
            ('ngpus="2"', 'ngpus="3"', "GPU 2 of 3 has no element", ""),
            ('send="1" recv="1"', 'send="1" recv="-1"', "it receives, but recv", "step 1"),
            ('coll="allreduce"', 'coll="allredcue"', "did you mean 'allreduce'", ""),
            ("</algo>", "", "this is no XML", "bad.xml"),
            # A step less: its partner waits for ever. And one of another type: something is missing in the sum.
            (XML.splitlines()[5] + "\n", "", "bad.xml", "s=\"3\"; steps are numbered"),
            ('type="rrc"', 'type="r"', "the schedule is wrong", "should of"),
            ('step s="3" type="r" srcbuf="i" srcoff="1"', 'step s="3" type="nop" srcbuf="i" srcoff="1"', "never received", ""),
        ]
        for old, new, *parts in cases:
            self.assertIn(old, XML)
            (self.folder / "bad.xml").write_text(XML.replace(old, new, 1))
            message = self.weft("collective", "bad.xml", "--size", "1MiB", code=2)
            for part in parts:
                self.assertIn(part, message, (old, new))
        head = "schedule x all_reduce ranks 2 chunks 2\nrank 0\nlane to 1 from 1\n"
        for line, part in [
            ("  sned source input 0", "did you mean 'send'"),
            ("  send", "send needs 'source BUFFER CHUNK'"),
            ("  send source input 0 after 3 0", "no step 0 of lane 3"),
            ("rank 5", "found '5'"),
            ("  recv target output 0", "waits for ever for byte 0 from rank 1"),
        ]:
            (self.folder / "bad.schedule").write_text(head + line + "\n")
            message = self.weft("collective", "bad.schedule", "--size", "2B", code=2)
            self.assertIn(part, message)
            self.assertIn("bad.schedule", message)

    def test_words_that_are_wrong(self):
        for words, part in [
            (["rin", "--ranks", "4", "--size", "1B"], "did you mean 'ring'"),
            (["ring", "--size", "1B"], "needs --ranks"),
            (["ring", "--ranks", "4"], "needs --size"),
            (["ring", "--ranks", "0", "--size", "1B"], "--ranks"),
            (["ring", "--kind", "all_to_all", "--ranks", "4", "--size", "1B"], "cannot do 'all_to_all'"),
            (["ring", "--ranks", "4", "--size", "1B", "--root", "1"], "has none"),
            (["swing", "--ranks", "12", "--size", "1B", "--dimensions", "4x3"], "no power of two"),
            (["bucket", "--ranks", "12", "--size", "1B", "--dimensions", "4x4"], "16 nodes"),
            (["hierarchical", "--ranks", "12", "--size", "1B", "--ranks-per-server", "5"], "whole servers"),
            (["ring", "--ranks", "4", "--size", "1B", "--text"], "no schedule file"),
        ]:
            self.assertIn(part, self.weft("collective", *words, code=2))

    def test_picture(self):
        self.weft("collective", "ring", "--ranks", 4, "--size", "4KiB", "--picture", "ring.svg")
        self.assertEqual((self.folder / "ring.svg").read_text().count("<title>"), 2 * 3 * 4)
        # Three aggregators, after the ranks: two leaves and the switch above.
        self.weft("collective", "collnet", "--ranks", 4, "--ranks-per-leaf", 2, "--size", "4KiB", "--picture", "net.svg")
        picture = (self.folder / "net.svg").read_text()
        self.assertEqual(re.findall(">((?:rank|switch) \\d)<", picture), [f"rank {i}" for i in range(4)] + [f"switch {i}" for i in range(3)])
        ends = [float(y) for y in re.findall('y[12]="([0-9.]+)"', picture)]
        self.assertLess(max(ends), float(re.search('height="([0-9]+)"', picture)[1]))

    def test_communicators_in_opposite_orders_are_a_deadlock(self):
        # Ranks 0 and 1 are in both communicators. With the gates, rank 0 starts b when a is done (rank 2 tells it), and
        # rank 1 starts a when b is done; without them both run at the same time.
        gates = """    - {rank: 0, id: gate_b, recv: 1 kB, from: 2}
    - {rank: [1, 3], id: gate_b, compute: 1 us}
    - {rank: 1, id: gate_a, recv: 1 kB, from: 3}
    - {rank: [0, 2], id: gate_a, compute: 1 us}
"""
        text = (
            STAR
            + """workload:
  kind: program
  ranks: 4
  communicators: {a: [0, 1, 2], b: [1, 0, 3]}
  operations:
"""
            + gates
            + """    - {id: suma, collective: all_reduce, size: 1 MiB, communicator: a, stream: none, after: gate_a}
    - {id: sumb, collective: all_reduce, size: 1 MiB, communicator: b, stream: none, after: gate_b}
    - {rank: 2, send: 1 kB, to: 0, after: suma}
    - {rank: 3, send: 1 kB, to: 1, after: sumb}
"""
        )
        (self.folder / "crossed.yaml").write_text(text)
        message = self.weft("run", "crossed.yaml", "--quiet", "-o", "two.h5", code=2)
        cycle = message[message.index("This is a deadlock") :].splitlines()[1:]
        self.assertEqual(
            [line.split(":")[0].strip() for line in cycle],
            ["rank 0 waits for rank 1", "rank 1 waits for rank 0"],
        )
        self.assertIn("'suma'", cycle[0])
        self.assertIn("'sumb'", cycle[1])
        self.assertIn("channel 0, step ", cycle[0])
        free = "\n".join(line for line in text.splitlines() if "gate" not in line or "collective" in line)
        free = free.replace(", after: gate_a", "").replace(", after: gate_b", "")
        free = "\n".join(line for line in free.splitlines() if "send:" not in line) + "\n"
        (self.folder / "free.yaml").write_text(free)
        self.weft("run", "free.yaml", "--quiet", "-o", "two.h5")

    def test_perf_prints_the_table_of_nccl_tests(self):
        (self.folder / "star.yaml").write_text(STAR)
        out = self.weft("perf", "all_gather", "-b", "1K", "-e", "64K", "-f", "4", "star.yaml", "--csv", "a.csv", "--plot", "a.svg")
        rows = [line.split() for line in out.splitlines() if not line.startswith("#")]
        self.assertEqual([(int(r[0]), int(r[1])) for r in rows], [(n << 10, (n << 10) // 8 // 4) for n in (1, 4, 16, 64)])
        for size, _, kind, redop, root, time, algbw, busbw, *choice in rows:
            self.assertEqual(choice, ["ring", "simple", "1"])
            self.assertEqual((kind, redop, root), ("float", "none", "-1"))
            # GB/s = 10^9 B/s; both numbers are printed with two decimals.
            self.assertAlmostEqual(float(algbw), int(size) / float(time) / 1e3, delta=0.0051 + float(algbw) * 0.01)
            self.assertAlmostEqual(float(busbw), float(algbw) * 7 / 8, delta=0.011)
        self.assertEqual(len((self.folder / "a.csv").read_text().splitlines()), 5)
        self.assertIn("</svg>", (self.folder / "a.svg").read_text())


if __name__ == "__main__":
    unittest.main()
