#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""fidelity: loggp against schedules that are derived here by the rules of LogGOPSim (github.com/spcl/LogGOPSim
LogGOPSim.cpp; T. Hoefler, T. Schneider, A. Lumsdaine, doi:10.1145/1851476.1851564). In nanoseconds, with s the bytes:

  a send takes its processor o + (s - 1) O, and its NIC g + (s - 1) G
  o + L after its beginning it is there, and takes the receiver's processor o + (s - 1) max(O, G), its NIC g + (s - 1) G
  up to S bytes it is done with its processor, above when a recv and it have met
"""

import functools
import itertools
import pathlib
import random
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import goal_files
import loggops_reference
from weft_testing import EXIT_INPUT, STAR, ProgramTest, table, two_at_a_time, weft

NS = 1000  # picoseconds
L, o, g, G = 2500, 1500, 1000, 6  # those of LogGOPSim's command line, with O = 0 and S = 65535
LARGE = 70_000


def schedule(*ranks):
    """Statements of each rank, separated by semicolons."""
    text = f"num_ranks {len(ranks)}\n"
    for rank, statements in enumerate(ranks):
        text += f"rank {rank} {{\n" + "".join(f"{one.strip()}\n" for one in statements.split(";")) + "}\n"
    return text


def ring(ranks, size, calc):
    """2 (n - 1) rounds of a send, a recv and a calc: for 4 ranks 4 * 6 * 3 = 72 operations."""
    programs = []
    for rank in range(ranks):
        lines = []
        for step in range(2 * (ranks - 1)):
            lines.append(f"s{step}: send {size}b to {(rank + 1) % ranks} tag {step}")
            if step > 0:
                lines.append(f"s{step} requires c{step - 1}")
            lines += [f"r{step}: recv {size}b from {(rank - 1) % ranks} tag {step}", f"c{step}: calc {calc}",
                      f"c{step} requires r{step}"]
        programs.append(";".join(lines))
    return schedule(*programs)


def at_random(seed):
    """Messages between four ranks and computations; each operation waits for up to two before it. Times are multiples of 500
    ns, so that many events are simultaneous. Each message has a different tag: for equal tags, weft matches messages in the
    order of the file, and LogGOPSim in the order of arrival."""
    draw = random.Random(seed)
    programs = [[] for _ in range(4)]
    tags = itertools.count()

    def add(rank, text):
        label = f"l{sum(1 for line in programs[rank] if ':' in line)}"
        before = [line.split(":")[0] for line in programs[rank] if ":" in line]
        programs[rank].append(f"{label}: {text}")
        for other in sorted(set(draw.sample(before, min(len(before), draw.randint(0, 2))))):
            programs[rank].append(f"{label} {draw.choice(['requires', 'requires', 'irequires'])} {other}")
    for _ in range(draw.randint(5, 25)):
        if draw.random() < 0.4:
            add(draw.randrange(4), f"calc {500 * draw.randint(0, 12)}")
            continue
        # Operations that are added to both at the same moment cannot wait for each other in a cycle.
        source, target = draw.sample(range(4), 2)
        size = draw.choice([0, 1, 2, 501, 1001, 70_000])
        tag = next(tags)
        add(source, f"send {size}b to {target} tag {tag}")
        add(target, f"recv {size}b from {source} tag {tag}")
    for program in programs:
        program.append("calc 0")
    return schedule(*map(";".join, programs))


# name: (schedule, parameters beside the defaults, when each rank has done its last operation)
CASES = {
    # One message of a byte: o, L, o.
    "eager": (schedule("send 1b to 1", "recv 1b from 0"), {}, [o, o + L + o]),
    # The receiver's processor is charged G for each byte but the first, the sender's O = 0.
    "G at the receiver": (schedule("send 8b to 1", "recv 8b from 0"), {}, [o, o + L + o + 7 * G]),
    # O above G: both processors are charged O.
    "O at both": (schedule("a: send 1001b to 1; b: calc 500; b requires a", "recv 1001b from 0"), {"O": 2, "G": 1},
                  [o + 1000 * 2 + 500, o + L + o + 1000 * 2]),
    # The second send waits for the processor (o > g).
    "o between sends": (schedule("send 1b to 1; send 1b to 2", "recv 1b from 0", "recv 1b from 0"), {},
                        [2 * o, o + L + o, o + o + L + o]),
    # For the NIC, first because of g, then because of (s - 1) G.
    "g between sends": (schedule("send 1b to 1; send 1b to 2", "recv 1b from 0", "recv 1b from 0"), {"g": 4000},
                        [4000 + o, o + L + o, 4000 + o + L + o]),
    "G between sends": (schedule("send 201b to 1; send 201b to 2", "recv 201b from 0", "recv 201b from 0"), {},
                        [g + 200 * G + o, o + L + o + 200 * G, g + 200 * G + o + L + o + 200 * G]),
    # Both are there at o + L; the second waits until the processor has taken the first.
    "two at a receiver": (schedule("recv 1b from 1; recv 1b from 2", "send 1b to 0", "send 1b to 0"), {},
                          [o + L + o + o, o, o]),
    # The message is there at o + L = 4000 and waits for the processor until 10000.
    "busy receiver": (schedule("send 1b to 1", "recv 1b from 0; calc 10000"), {}, [o, 10_000 + o]),
    # Computations of one cpu one after another, of two at the same time.
    "cpus": (schedule("calc 1000; calc 2000", "calc 1000; calc 2000 cpu 1"), {}, [3000, 2000]),
    # irequires: a send on the cpu of the calc waits for its end, one on another cpu for its beginning alone.
    "irequires": (schedule("a: calc 5000; b: send 1b to 1; b irequires a", "recv 1b from 0",
                           "a: calc 5000; b: send 1b to 3 cpu 1; b irequires a", "recv 1b from 2"), {},
                  [5000 + o, 5000 + o + L + o, 5000, o + L + o]),
    # Rendezvous with a recv that waits: they match at o + L, and then the sender is done.
    "rendezvous, recv first": (schedule(f"a: send {LARGE}b to 1; b: calc 100; b requires a", f"recv {LARGE}b from 0"), {},
                               [o + L + 100, o + L + o + (LARGE - 1) * G]),
    # Until 10000 the receiver computes. Then the message takes its processor, which was there first; the recv is
    # handled then, too, so that they match at 10000.
    "rendezvous, recv last": (schedule(f"a: send {LARGE}b to 1; b: calc 100; b requires a",
                                       f"a: calc 10000; b: recv {LARGE}b from 0; b requires a"), {},
                              [10_000 + 100, 10_000 + o + (LARGE - 1) * G]),
    # The same bytes below S are eager: the sender continues after o.
    "S": (schedule(f"a: send {LARGE}b to 1; b: calc 100; b requires a", f"a: calc 10000; b: recv {LARGE}b from 0; b requires a"),
          {"S": LARGE}, [o + 100, 10_000 + o + (LARGE - 1) * G]),
    # A chain: each hop o + L + o, and the next begins when the recv has ended.
    "chain": (schedule("send 1b to 1", "a: recv 1b from 0; b: send 1b to 2; b requires a", "recv 1b from 1"), {},
              [o, o + L + o + o, 2 * (o + L + o)]),
    # All ranks in step: a round is o + L + o + (s - 1) G and the calc.
    "ring": (ring(4, 4096, 250), {}, 4 * [6 * (o + L + o + 4095 * G + 250)]),
}


class LogGp(ProgramTest):
    def experiment(self, text, parameters=None, workload=None):
        (self.folder / "schedule.goal").write_text(text)
        model = {key: f"{value} B" if key == "S" else f"{value} ns" for key, value in (parameters or {}).items()}
        return {"topology": STAR, "network": {"fidelity": "loggp", "loggp": model},
                "workload": workload or {"kind": "goal", "file": "schedule.goal"}, "simulation": {"seed": 1}}

    def test_schedules(self):
        for name, (text, parameters, finished) in CASES.items():
            with self.subTest(name=name):
                summary, results = self.simulate(self.experiment(text, parameters))
                self.assertEqual((table(results, "ranks")["finished"] / NS).tolist(), finished)
                self.assertEqual(summary["simulated_time_ps"] / NS, max(finished))
                self.assertTrue(summary["complete"])

    def test_schedules_at_random(self):
        """Against the model written once more, for all ranks."""
        parameters = ({}, {"o": 500, "g": 500, "G": 1, "S": 1000}, {"L": 0, "o": 1000, "g": 2500, "G": 0, "O": 1},
                      {"L": 3700, "o": 200, "g": 5, "G": 1, "S": 0})
        for seed in range(40):
            text, given = at_random(seed), parameters[seed % len(parameters)]
            with self.subTest(seed=seed):
                _, results = self.simulate(self.experiment(text, given))
                self.assertEqual((table(results, "ranks")["finished"] / NS).tolist(),
                                 loggops_reference.finished(goal_files.parse(text), **given), text)

    def test_all_operations_are_executed(self):
        summary, _ = self.simulate(self.experiment(CASES["ring"][0]))
        self.assertEqual(summary["operations"], 72)
        self.assertEqual(summary["messages"], 24)
        self.assertEqual(summary["fidelity"], "loggp")

    def test_the_same_on_any_number_of_processes(self):
        path = self.write(self.experiment(CASES["ring"][0]))
        one, *others = two_at_a_time([functools.partial(self.simulate, path, output=f"{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
        for summary, results in others:
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"])
            self.assert_same_results(one[1], results)

    def test_messages_that_nobody_receives(self):
        """Traffic is written into memory: no recv ever matches it, however large it is. A job of it ends when it has been
        delivered: o + L + o + (s - 1) G."""
        network = {"fidelity": "loggp"}
        for kind in ({"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": f"{LARGE} B"},
                     {"kind": "jobs", "jobs": [{"workload": {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "ranks": 2,
                                                             "size": f"{LARGE} B"}}]}):
            summary, results = self.simulate({"topology": STAR, "network": network, "workload": kind})
            self.assertEqual(summary["simulated_time_ps"], NS * (o + L + o + (LARGE - 1) * G))
            self.assertEqual(max(table(results, "ranks")["finished"]), NS * (o + L + o + (LARGE - 1) * G))
            if "jobs" in kind:
                self.assertEqual(list(table(results, "jobs")["end"]), [NS * (o + L + o + (LARGE - 1) * G)])

    def test_collectives(self):
        """A ring of 4 ranks, one slice per chunk, in which all are in step: 6 rounds as above without the calc. A slice is
        sent as soon as the one before has arrived; sending it takes the processor while nothing arrives."""
        workload = {"kind": "collective", "collective": "all_reduce", "size": "16384 B", "algorithm": "ring",
                    "slices_per_chunk": 1}
        summary, results = self.simulate(self.experiment("", None, workload))
        end = 6 * (o + L + o + 4095 * G)
        self.assertEqual((table(results, "ranks")["finished"] / NS).tolist(), 4 * [end])
        self.assertEqual(summary["simulated_time_ps"] / NS, end + L)  # the last credit

    def test_complaints(self):
        for network, part in (({"fidelity": "ideal", "loggp": {"L": "1 us"}}, "expected fidelity: loggp with it"),
                              ({"fidelity": "loggp", "loggp": {"l": "1 ns"}}, "unknown key 'l'"),
                              ({"fidelity": "loggp", "loss": {"rate": 0.1}}, "found with fidelity: loggp, which has no faults")):
            experiment = {**self.experiment(CASES["eager"][0]), "network": network}
            done = weft("run", self.write(experiment), "-o", "out.h5", folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
