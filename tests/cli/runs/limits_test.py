#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Processors: 2
"""Experiments at the limits: times near 106 days, buffers in which nothing fits, little memory, large seeds, two runs into one
file."""

import os
import pathlib
import re
import resource
import signal
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import (EXIT_ENVIRONMENT, EXIT_INPUT, NETWORK, STAR, ProgramTest, attributes, start, stop, table,
                          wait_until, weft)

DAYS = "106 days"
INCAST = {"kind": "traffic", "pattern": "incast", "size": "100 kB"}
PAIR = {"kind": "traffic", "pattern": "pairs", "pairs": [[0, 1]], "size": "8 kB"}


def experiment(topology=None, network=None, workload=None, **parts):
    return {"topology": {**STAR, **(topology or {})}, "network": {**NETWORK, **(network or {})},
            "workload": workload or PAIR, **parts}


class LimitsTest(ProgramTest):
    def fails(self, text, code, *patterns, words=(), ranks=None, command="run"):
        """One message, the exit code, no results."""
        path = self.write(text)
        output = ["-o", "out.h5", "--quiet"] if command == "run" else []
        done = weft(command, path, *output, *words, folder=self.folder, ranks=ranks, seconds=60)
        self.assertEqual(done.code, code, done)
        self.assertEqual(len(done.messages()), 1, done)
        for pattern in patterns:
            self.assertRegex(done.messages()[0], pattern)
        self.assertFalse(list(self.folder.glob("*.h5*")), done)
        return done


class Times(LimitsTest):
    def test_later_than_the_end(self):
        """Before the run, with the line of the value."""
        cases = [
            experiment(workload={**INCAST, "start": "9223372 s"}),
            experiment(workload={**INCAST, "start": ["0 s", "9158400 s"]}),
            experiment(workload={"kind": "collective", "collective": "all_reduce", "size": "1 kB", "iterations": 3,
                                 "gap": "9223372 s"}),
            experiment(workload={"kind": "collective", "collective": "all_reduce", "size": "1 kB", "iterations": 3,
                                 "gap": "5000000 s"}),
            experiment(workload={"kind": "jobs", "jobs": [{"name": "a", "ranks": 2, "start": "9223372 s",
                                                           "workload": {**PAIR}}]}),
        ]
        for text in cases:
            with self.subTest(text["workload"]):
                self.fails(text, EXIT_INPUT, r"experiment\.yaml:\d+: ", DAYS)

    def test_the_last_start(self):
        """A microsecond before the end there is time for a message of a microsecond."""
        last = 106 * 24 * 3600 * 10**12 - 4 * 10**6
        for fidelity in ["packet", "ideal"]:
            with self.subTest(fidelity):
                summary, results = self.simulate(experiment(network={"fidelity": fidelity},
                                                            workload={**PAIR, "start": f"{last} ps"}))
                self.assertTrue(summary["complete"])
                self.assertEqual(table(results, "messages")["issued"][0], last)
                self.assertLess(table(results, "messages")["delivered"][0], last + 4 * 10**6)
                results.unlink()

    def test_runs_that_come_to_the_end(self):
        """Events that are too late during a run: alone, on several processes, and under ns-3's own engine."""
        last = {**INCAST, "start": "9158399999999999999 ps"}
        computing = {"kind": "program", "ranks": 2, "operations": [
            {"rank": 0, "compute": "5000000 s", "id": 1}, {"rank": 0, "compute": "5000000 s", "after": [1]}]}
        late_job = {"kind": "jobs", "jobs": [{"name": "a", "ranks": 2, "start": "5000000 s",
                                              "workload": {**PAIR, "start": "5000000 s"}}]}
        for workload in [last, computing, late_job]:
            for words, ranks in [((), None), ((), 3), (("--engine", "ns3-default"), None)]:
                with self.subTest(workload=workload["kind"], words=words, ranks=ranks):
                    self.fails(experiment(workload=workload), EXIT_ENVIRONMENT, DAYS, words=words, ranks=ranks)

    def test_ideal_network(self):
        huge = {**PAIR, "size": "4194304 TiB"}
        for workload in [huge, {**INCAST, "size": "524288 TiB"}, {**PAIR, "start": "9158399999999999999 ps"}]:
            for ranks in [None, 2]:
                with self.subTest(workload, ranks=ranks):
                    self.fails(experiment(network={"fidelity": "ideal"}, workload=workload), EXIT_ENVIRONMENT, DAYS,
                               ranks=ranks)

    def test_queues_that_reach_beyond_the_end(self):
        """Packets of half an hour each: two thousand of them behind each other are longer than simulated time."""
        slow = {"link_rate": "20 b/s"}
        crowd = {**INCAST, "size": "16 MB"}
        patient = {"recovery": "go_back_n", "go_back_n": {"timeout": "3600 s"}}
        for network in [{"window": "1 GiB"}, {"window": "1 GiB", **patient}]:
            for ranks in [None, 2]:
                with self.subTest(network, ranks=ranks):
                    self.fails(experiment(slow, network, crowd), EXIT_ENVIRONMENT, DAYS, ranks=ranks)

    def test_slow_links_are_exact_or_refused(self):
        self.fails(experiment({"link_rate": "1 b/s"}), EXIT_INPUT, r":\d+: ", "4178 B|4.178 kB", "at least 10 b/s",
                   "3600 s|1 h")
        summary, results = self.simulate(experiment({"link_rate": "10 b/s"}))
        wire = 4178 * 8 * 10**12 // 10
        self.assertTrue(summary["complete"])
        # Two packets of 4 KiB (the second one shorter) over two links, one behind the other.
        second = (8000 - 4096 + 82) * 8 * 10**12 // 10
        self.assertEqual(table(results, "messages")["delivered"][0], 2 * wire + second + 2 * 500_000)

    def test_timers(self):
        late = {"recovery": "go_back_n", "go_back_n": {"timeout": "9223372 s"}}
        self.fails(experiment(network=late), EXIT_INPUT, r":\d+: ", DAYS)
        late["go_back_n"]["timeout"] = "9000000 s"
        self.fails(experiment(network=late), EXIT_INPUT, r":\d+: ", "at most 3.6 ks|at most 3600 s")
        self.fails(experiment(topology={"link_delay": "5000 s"}), EXIT_INPUT, r":\d+: ", "at most 3.6 ks|at most 3600 s")

    def test_a_link_that_fails_for_ever_does_not_stop_time(self):
        """Timeouts behind a dead link continue until nothing has arrived for long, for any length of the timeout."""
        dead = {"failures": [{"link": ["host1", "switch0"], "at": "0 s"}]}
        for timeout in ["1 ms", "3600 s"]:
            with self.subTest(timeout):
                network = {**dead, "recovery": "go_back_n", "go_back_n": {"timeout": timeout}}
                self.fails(experiment(network=network), EXIT_ENVIRONMENT, "none has arrived")


class Buffers(LimitsTest):
    FRAME = 4096 + 62

    def test_nothing_fits(self):
        """The least size that is named is right: with one byte less it is refused again."""
        for buffer in [{"size": "8 KiB", "alpha": 0.25}, {"size": "10 kB", "alpha": 0.1, "reserve": "10 B"}]:
            with self.subTest(buffer):
                text = experiment(network={"buffer": buffer})
                done = self.fails(text, EXIT_INPUT, r"experiment\.yaml:\d+: ", "no frame of")
                least = self.bytes_of(re.search(r"a size of at least ([\d.]+ \w+)", done.messages()[0]).group(1))
                buffer["size"] = f"{least - 1} B"
                self.fails(experiment(network={"buffer": buffer}), EXIT_INPUT, "no frame of")
                buffer["size"] = f"{least} B"
                summary, results = self.simulate(experiment(network={"buffer": buffer}))
                self.assertTrue(summary["complete"])
                results.unlink()

    def test_threshold(self):
        buffer = {"size": "1 MiB", "threshold": "4 kB"}
        done = self.fails(experiment(network={"buffer": buffer}), EXIT_INPUT, "a threshold of at least")
        buffer["threshold"] = re.search(r"at least ([\d.]+ \w+)", done.messages()[0]).group(1)
        self.assertEqual(self.bytes_of(buffer["threshold"]), self.FRAME)
        summary, _ = self.simulate(experiment(network={"buffer": buffer}))
        self.assertTrue(summary["complete"])

    @staticmethod
    def bytes_of(text):
        number, unit = text.split()
        return round(float(number) * {"B": 1, "kB": 1000, "KiB": 1024, "MB": 10**6, "MiB": 2**20}[unit])

    def test_a_run_that_loses_everything_ends(self):
        """All report the same, with the same times: the checks are at the same moments for any number of processes."""
        network = {"loss": [{"link": "all", "probability": 1}]}
        said = set()
        for words, ranks in [((), None), ((), 2), ((), 3), (("--engine", "ns3-default"), None)]:
            with self.subTest(words=words, ranks=ranks):
                done = self.fails(experiment(network=network), EXIT_ENVIRONMENT, "none has arrived", words=words,
                                  ranks=ranks)
                said.add(done.messages()[0])
        self.assertEqual(len(said), 1, said)
        self.assertIn("from 0 s to 1 s of simulated time", said.pop())

    def test_a_run_that_waits_for_a_link_goes_on(self):
        """Three seconds without a link, and nothing but losses meanwhile: there is an end to that."""
        network = {"failures": [{"link": ["host1", "switch0"], "at": "0 s", "until": "3 s"}]}
        summary, results = self.simulate(experiment(network=network))
        self.assertTrue(summary["complete"])
        self.assertGreater(table(results, "messages")["delivered"][0], 3 * 10**12)


class Sizes(LimitsTest):
    def test_descriptions_do_not_count_for_ever(self):
        ring = {"kind": "collective", "collective": "all_reduce", "algorithm": "ring"}
        whole = self.numbers(experiment(workload={**ring, "size": "64 MiB"}))
        for more, scale in [({"size": "1048576 TiB"}, 2**34), ({"size": "64 MiB", "chunk_size": "1 B"}, 1)]:
            with self.subTest(more):
                begin = time.monotonic()
                found = self.numbers(experiment(workload={**ring, **more}))
                self.assertLess(time.monotonic() - begin, 30)
                self.assertAlmostEqual(found["payload"] / whole["payload"] / scale, 1, delta=0.01)
        self.assertAlmostEqual(found["messages"] / (6 * 2**26), 1, delta=0.01)

    def numbers(self, text):
        out = self.run_weft("describe", self.write(text)).out
        value, unit = re.search(r"payload +([\d.e+]+) (\w+)", out).groups()
        scale = 2 ** (10 * ["B", "KiB", "MiB", "GiB", "TiB", "PiB"].index(unit))
        return {"payload": float(value) * scale,
                "messages": int(re.search(r"messages +([\d,]+)", out).group(1).replace(",", ""))}

    def test_channels(self):
        ring = {"kind": "collective", "collective": "all_reduce", "size": "1 MiB", "channels": 1000000000}
        for command in ["run", "describe"]:
            self.fails(experiment(workload=ring), EXIT_INPUT, r":\d+: .*from 1 to 1024", command=command)

    def test_too_many_operations_to_count(self):
        many = {**PAIR, "start": {"process": "periodic", "interval": "1 ps", "count": 10**12}}
        self.fails(experiment(workload=many), EXIT_INPUT, "more than 100000000 operations", command="describe")


class Seeds(LimitsTest):
    def test_all_of_64_bits(self):
        for seed in [2**63 - 1, 2**63, 2**64 - 1]:
            for words, parts in [(["--seed", str(seed)], {}), ([], {"simulation": {"seed": seed}})]:
                with self.subTest(seed, words=words):
                    _, results = self.simulate(experiment(**parts), *words)
                    self.assertEqual(int(attributes(results, "manifest")["seed"]), seed)
                    results.unlink()
        for seed in [2**64, "-1", "1.5"]:
            self.fails(experiment(simulation={"seed": seed}), EXIT_INPUT, r":\d+: ", "from 0 to 18446744073709551615")


class TwoRuns(LimitsTest):
    LONG = experiment(workload={**PAIR, "size": "1 TiB"})

    def begin(self):
        process = start(["run", self.write(self.LONG), "-o", "out.h5", "--quiet"], folder=self.folder)
        self.addCleanup(stop, process)
        wait_until(lambda: (self.folder / "out.h5.partial").exists(), "the file", process)
        time.sleep(0.5)  # the lock is there a moment after the file
        return process

    def test_into_one_file(self):
        first = self.begin()
        for ranks in [None, 2]:
            second = weft("run", self.write(experiment(), "short.yaml"), "-o", "out.h5", "--quiet", folder=self.folder,
                          ranks=ranks)
            self.assertEqual(second.code, EXIT_ENVIRONMENT, second)
            self.assertEqual(len(second.messages()), 1, second)
            self.assertIn(f"process {first.pid} is writing it", second.messages()[0])
            self.assertIn("experiment.yaml", second.messages()[0])
        self.assertIsNone(first.poll())
        first.send_signal(signal.SIGTERM)
        first.communicate(timeout=30)
        self.assertEqual(attributes(self.folder / "out.h5")["complete"], 0)

    def test_what_a_dead_run_leaves_is_no_obstacle(self):
        first = self.begin()
        first.kill()
        first.communicate()
        self.assertTrue((self.folder / "out.h5.partial").exists())
        summary, results = self.simulate(experiment())
        self.assertTrue(summary["complete"])
        self.assertFalse((self.folder / "out.h5.partial").exists())


class Memory(LimitsTest):
    def test_too_little_for_the_machine(self):
        """One message of ours and none of Open MPI, alone and on several processes."""
        big = experiment(topology={"hosts": 60000})
        limit = 700 * 2**20  # of address space: libraries take half of it
        for ranks in [None, 2]:
            with self.subTest(ranks=ranks):
                done = weft("run", self.write(big), "--set", "network.queues=output", "-o", "out.h5", "--quiet",
                            folder=self.folder, ranks=ranks, seconds=120,
                            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
                if done.code == 0:
                    self.skipTest("there was memory enough")
                self.assertEqual(done.code, EXIT_ENVIRONMENT, done)
                self.assertEqual([line for line in done.err.splitlines() if line], ["weft: out of memory"], done)


if __name__ == "__main__":
    unittest.main()
