#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""`weft serve`: many command lines with one start. The results are those of a start for each; what is refused does not
hold up the next one."""

import json
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, STAR, ProgramTest, attributes, served, servers, start, stop, weft  # noqa: E402

RUN = {"topology": STAR, "network": NETWORK, "simulation": {"seed": 3},
       "workload": {"kind": "traffic", "pattern": "permutation", "size": "20 kB"}}


class Serve(ProgramTest):
    def serve(self, requests, ranks=None):
        """The lines that it answers when the pipes of all processes have these lines, and how it ends."""
        pipes = self.folder / "pipes"
        pipes.mkdir(exist_ok=True)
        for rank in range(ranks or 1):
            (pipes / str(rank)).write_text("".join(f"{line}\n" for line in requests))  # files do as well as pipes
        return weft("serve", pipes, ranks=ranks, folder=self.folder)

    def request(self, name, *words, **more):
        return json.dumps({"folder": str(self.folder), "words": [str(word) for word in words], "out": f"{name}.out",
                           "err": f"{name}.err", **more})

    def test_results_are_those_of_a_start_for_each(self):
        path = self.write(RUN)
        queues = ["--set", "network.flow_control=pfc", "--set", "network.buffer.size=1 MB"]
        for ranks in (None, 2, 3):
            with self.subTest(ranks=ranks):
                # The first one again at the end: nothing is left of those between.
                words = {"a": [], "b": queues, "c": ["--engine", "ns3-default"] if ranks is None else [], "d": []}
                done = self.serve([self.request(name, "run", path, "-o", f"{name}.h5", "--quiet", *more)
                                   for name, more in words.items()], ranks)
                self.assertEqual((done.code, done.out.split()), (0, ["0"] * 4), done)
                for name, more in words.items():
                    self.run_weft("run", path, "-o", "alone.h5", "--quiet", *more)
                    self.assertEqual(attributes(self.folder / f"{name}.h5")["fingerprint"],
                                     attributes(self.folder / "alone.h5")["fingerprint"])
                    # Of the manifest only the command line and the number of processes differ.
                    self.assert_same_results(self.folder / "alone.h5", self.folder / f"{name}.h5")

    def test_what_is_refused_does_not_hold_up_the_next(self):
        bad = self.write({**RUN, "network": {"mtu": "no size"}}, "bad.yaml")
        for ranks in (None, 2):
            with self.subTest(ranks=ranks):
                done = self.serve([self.request("bad", "run", bad), self.request("unknown", "rum"),
                                   self.request("good", "list", "routing")], ranks)
                self.assertEqual((done.code, done.out.split()), (0, ["2", "2", "0"]), done)
                self.assertIn("bad.yaml:", (self.folder / "bad.err").read_text())
                self.assertIn("rum", (self.folder / "unknown.err").read_text())
                self.assertEqual((self.folder / "good.out").read_text(), weft("list", "routing").out)
                for name in ("bad", "unknown", "good"):
                    (self.folder / f"{name}.out").unlink()
                    (self.folder / f"{name}.err").unlink()

    def test_files_are_read_again_for_each(self):
        """A table of algorithms with the same name and another content, as in another folder or after a change."""
        work = {"kind": "collective", "collective": "all_reduce", "algorithm": "mine.yaml", "size": "40 kB"}
        path = self.write({**RUN, "workload": work})
        found = set()
        for algorithm in ("ring", "halving_doubling"):
            self.write(f"rules: [{{kind: all_reduce, algorithm: {algorithm}}}]\n", "mine.yaml")
            together, alone = (self.simulate(path, output=f"{start.__name__}.h5", start=start) for start in (served, weft))
            self.assert_same_results(together[1], alone[1])
            found.add(together[0]["fingerprint"])
        self.assertEqual(len(found), 2)

    def test_requests_that_are_wrong(self):
        good = self.request("good", "list")
        for request, word in [("no JSON", "syntax error"), ("{}", "folder"), ('{"folder": 3}', "folder"),
                              (self.request("x", "serve", "."), "'serve'")]:
            with self.subTest(request):
                done = self.serve([good, request, "", good])
                self.assertEqual((done.code, done.out), (0, "0\n2\n0\n"), done)
                self.assertEqual(len(done.messages()), 1, done)
                self.assertIn("pipes/0:2", done.messages()[0])
                self.assertIn(word, done.messages()[0])

    def test_folders_that_are_wrong(self):
        for words in ([], ["one", "two"], [self.folder / "none"]):
            with self.subTest(words):
                done = weft("serve", *words, folder=self.folder)
                self.assertEqual((done.code, len(done.messages())), (EXIT_INPUT, 1), done)
        good, nowhere = self.request("x", "list"), str(self.folder / "none")
        for ranks in (None, 2):
            for key, text in (("folder", "cannot enter"), ("out", "cannot write")):
                done = self.serve([good, self.request("x", "list", **{key: f"{nowhere}/x"}), good], ranks)
                self.assertEqual((done.code, done.out, len(done.messages())), (0, "0\n3\n0\n", 1), done)
                self.assertIn(text, done.messages()[0])

    def test_folders_are_relative_to_the_first_one(self):
        (self.folder / "inner").mkdir()
        done = self.serve([self.request(name, "list", "routing", folder="inner") for name in "ab"])
        self.assertEqual((done.code, done.out), (0, "0\n0\n"), done)
        for name in "ab":
            self.assertEqual((self.folder / "inner" / f"{name}.out").read_text(), weft("list", "routing").out)

    def test_a_signal_ends_it_while_it_waits(self):
        pipes = self.folder / "waits"
        pipes.mkdir()
        os.mkfifo(pipes / "0")
        process = start(["serve", pipes])
        file = os.open(pipes / "0", os.O_RDWR)
        os.write(file, self.request("list", "list").encode() + b"\n")
        self.assertEqual(process.stdout.readline(), "0\n")
        process.terminate()
        self.assertEqual(process.wait(timeout=10), 130)
        stop(process)
        os.close(file)


class Tests(ProgramTest):
    """What tests have of it, in weft_testing.py."""

    def test_a_process_that_dies_is_told(self):
        path = self.write(RUN)
        server = servers.take(2)
        self.assertEqual(server.run(["run", path, "-o", "a.h5", "--quiet"], self.folder, 60)[0], 0)
        server.process.kill()
        self.assertLess(server.run(["run", path, "-o", "b.h5", "--quiet"], self.folder, 60)[0], 0)
        servers.give_back(server, 2)
        self.assertNotIn(server, servers.idle[2])


if __name__ == "__main__":
    unittest.main()
