#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`weft compare`: the changes between two runs are named first, numbers are those of the files, runs that cannot be compared
are compared as far as they can be, and nothing is divided by nothing."""

import copy
import html.parser
import json
import pathlib
import resource
import signal
import sys
import unittest

import h5py
import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, SOURCE, STAR, ProgramTest, attributes  # noqa: E402
from weft_testing import start, stop, table, weft  # noqa: E402

sys.path.insert(0, str(SOURCE / "scripts"))
from weft_commands.compare_inputs import differing, flattened  # noqa: E402
from weft_commands.quantities import percent_text, quantity_text, time_text  # noqa: E402

# Eight hosts at two switches, which one link connects: messages from one half to the other are slow if that link is.
LINKS = [
    *({"from": f"host{i}", "to": f"switch{i // 4}", "rate": "100 Gb/s"} for i in range(8)),
    {"from": "switch0", "to": "switch1", "rate": "400 Gb/s"},
]
RING = {
    "topology": {"kind": "graph", "hosts": 8, "switches": 2, "link_delay": "500 ns", "links": LINKS},
    "workload": {"kind": "collective", "collective": "all_to_all", "algorithm": "nccl_p2p", "ranks": 8, "size": "1 MiB",
                 "iterations": 2},
    "output": {"operations": True},
}  # fmt: skip
STEP = {
    "topology": STAR,
    "workload": {"kind": "program", "ranks": 4, "operations": [
        {"rank": "all", "id": "forward", "compute": "100 us"},
        {"id": "gradients", "collective": "all_reduce", "size": "1 MiB", "after": "forward"},
        {"rank": "all", "id": "optimizer", "compute": "50 us", "after": "gradients"},
    ]},
    "output": {"operations": True},
}  # fmt: skip


def changed(experiment, *path, value):
    """The experiment with one value changed."""
    other = copy.deepcopy(experiment)
    inner = other
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return other


class Compare(ProgramTest):
    def run_one(self, experiment, name):
        _, path = self.simulate(experiment, output=f"{name}.h5")
        return path

    def compare(self, *words, code=0):
        done = weft("compare", *words, folder=self.folder)
        self.assertEqual(done.code, code, done)
        return done

    def compared(self, *paths):
        def refuse(word):
            self.fail(f"{word} is no JSON")

        return json.loads(self.compare(*paths, "--json").out, parse_constant=refuse)

    def first_comparison(self, *paths):
        return self.compared(*paths)["comparisons"][0]

    def assert_some_sentence(self, found, *texts):
        self.assertTrue(any(all(text in sentence for text in texts) for sentence in found["sentences"]),
                        f"{texts} in {found['sentences']}")


class KnownAnswers(Compare):
    def test_a_link_of_half_the_rate_is_named_first(self):
        fast = self.run_one(RING, "fast")
        slow = self.run_one(changed(RING, "topology", "links", 8, "rate", value="100 Gb/s"), "slow")
        found = self.first_comparison(fast, slow)
        rate = {"key": "topology.links[8].rate", "first": "400 Gb/s", "second": "100 Gb/s"}
        self.assertEqual(found["inputs"], [rate])
        self.assertEqual({row["what"] for row in found["links"][:2]}, {"switch0 -> switch1", "switch1 -> switch0"})
        self.assertEqual(found["links"][0]["rate"], [400 * 10**9, 100 * 10**9])
        self.assert_some_sentence(found, "slow.h5 takes ", "% longer than fast.h5")
        self.assert_some_sentence(found, "One input differs", "topology.links[8].rate (400 Gb/s and 100 Gb/s)")
        self.assert_some_sentence(found, "Of the links, switch", "its rate is 100 Gb/s instead of 400 Gb/s")
        self.assert_some_sentence(found, "all_to_all", "nccl_p2p, 2 calls")
        self.assert_some_sentence(self.first_comparison(slow, fast), "fast.h5 takes ", "% less time than slow.h5")

    def test_a_straggler_is_named(self):
        even = self.run_one(STEP, "even")
        noise = {"slow_ranks": [{"ranks": [2], "factor": 1.5}]}
        uneven = self.run_one(changed(STEP, "workload", "compute_noise", value=noise), "uneven")
        found = self.first_comparison(even, uneven)
        self.assert_some_sentence(found, "Rank 2 is a straggler: compute +75 us", "no change at the median rank")
        self.assertEqual([row["rank"] for row in found["ranks"]], [2])
        self.assertEqual(found["ranks"][0]["change"], 75_000_000)
        other = self.first_comparison(uneven, even)
        self.assertFalse([sentence for sentence in other["sentences"] if "straggler" in sentence])

    def test_the_call_that_is_named_is_of_the_kind_that_is_named(self):
        """Four all-to-alls send 3/4 of 1 MiB each, and one all-reduce twice as much: it changes more than each of them, and less
        than all."""
        def calls(exchanged, summed):
            return {**STEP, "workload": {"kind": "program", "ranks": 4, "operations": [
                *({"collective": "all_to_all", "size": exchanged, "algorithm": "nccl_p2p", "label": f"exchange {i}"}
                  for i in range(4)),
                {"collective": "all_reduce", "size": summed, "algorithm": "ring", "label": "sum"}]}}

        small, large = (self.run_one(calls(size, size), name) for size, name in (("64 KiB", "small"), ("1 MiB", "large")))
        found = self.first_comparison(small, large)
        self.assertEqual(found["calls"][0]["what"], "sum")
        self.assertEqual(found["collectives"][0]["what"], "all_to_all")
        self.assert_some_sentence(found, "all_to_all changed most", "most of all exchange")

    def test_a_lower_rate_of_a_link_is_told(self):
        whole = self.run_one(STEP, "whole")
        slow = {"at": "0 us", "link": ["host1", "switch0"], "rate": "10 Gb/s"}
        found = self.first_comparison(whole, self.run_one(changed(STEP, "network", value={"failures": [slow]}), "slow"))
        self.assert_some_sentence(found, "host1", "its rate is 10 Gb/s instead of 400 Gb/s")

    def test_all_ranks_slower_are_no_stragglers(self):
        short = self.run_one(STEP, "short")
        long = self.run_one(changed(STEP, "workload", "operations", 0, "compute", value="130 us"), "long")
        found = self.first_comparison(short, long)
        self.assertFalse([sentence for sentence in found["sentences"] if "straggler" in sentence])
        self.assertEqual(found["headline"]["change"], 30_000_000)
        self.assert_some_sentence(found, "Of the change in time, 100 % is compute (+30 us)")
        self.assertEqual([row["what"] for row in found["operators"]], ["forward"])
        self.assertEqual(found["operators"][0]["change"], 30_000_000)

    def test_another_algorithm_is_told(self):
        names = ["ring", "recursive_doubling"]
        step = changed(STEP, "workload", "operations", 1, "size", value="4 KiB")
        runs = [changed(step, "workload", "operations", 1, "algorithm", value=name) for name in names]
        paths = [self.run_one(run, name) for run, name in zip(runs, names)]
        found = self.first_comparison(*paths)
        self.assertEqual(found["collectives"][0]["algorithm"], names)
        self.assert_some_sentence(found, "all_reduce", "ring -> recursive_doubling")

    def test_the_same_run_twice(self):
        path = self.run_one(STEP, "step")
        found = self.first_comparison(path, path)
        self.assertEqual(found["sentences"], ["step.h5 is as fast as step.h5, to the last picosecond: step time "
                                              f"{time_text(found['headline']['first'])}.", "No input differs."])
        for name in ("inputs", "outcome", "shares", "collectives", "calls", "operators", "ranks", "links", "counts"):
            self.assertEqual(found[name], [], name)

    def test_parts_account_for_the_time(self):
        """Where the files have them, instead of the values known without them."""
        paths = [self.run_one(STEP, name) for name in ("one", "two")]
        for path, queueing in zip(paths, (0, 3_000_000)):
            with h5py.File(path, "r+") as file:
                time = int(file["jobs/time"][0]) + queueing
                file["jobs/time"][0], file["jobs/step_time"][0] = time, time
                for table_name, column in [(name, column) for name in file for column in file[name]]:
                    if column.startswith("part_"):
                        del file[table_name][column]
                file["jobs/part_transfer"] = np.array([4 * (time - queueing)])
                file["jobs/part_queueing"] = np.array([4 * queueing])
                file["messages/part_queueing"] = np.arange(file["messages/id"].shape[0]) + queueing
        found = self.first_comparison(*paths)
        self.assertEqual([(row["what"], row["change"]) for row in found["shares"]], [("queueing", 3_000_000)])
        self.assert_some_sentence(found, "100 % is queueing (+3 us)")
        rows = len(table(paths[0], "messages")["id"])
        self.assertEqual([row["change"] for row in found["parts"]["messages"]], [rows * 3_000_000])


    def test_parts_are_of_a_step_as_the_headline(self):
        """A run of one call, and one of three calls of half the bytes: a step is faster, the run is slower, and the parts add up to
        the change of the step."""
        one = self.run_one(changed(RING, "workload", "iterations", value=1), "one")
        three = changed(RING, "workload", "iterations", value=3)
        found = self.first_comparison(one, self.run_one(changed(three, "workload", "size", value="512 KiB"), "three"))
        headline = found["headline"]
        self.assertLess(headline["change"], 0)
        time = next(row for row in found["outcome"] if row["what"] == "time")
        self.assertGreater(time["change"], 0)
        # step_time is rounded to whole ps.
        self.assertAlmostEqual(sum(row["change"] for row in found["shares"]), headline["change"], delta=1)


class Numbers(Compare):
    def test_they_are_those_of_the_files(self):
        first = self.run_one(RING, "first")
        second = self.run_one(changed(RING, "workload", "size", value="2 MiB"), "second")
        found = self.first_comparison(first, second)
        outcome = {row["what"]: row for row in found["outcome"]}
        for path, side in ((first, "first"), (second, "second")):
            self.assertEqual(outcome["simulated time"][side], attributes(path)["simulated_time"])
            jobs, calls = table(path, "jobs"), table(path, "collectives")
            for what, column in (("time", "time"), ("step time", "step_time")):
                self.assertEqual(outcome[what][side], jobs[column][0])
            # As in the summary of a run, waiting for peers is no exposed communication.
            self.assertEqual(outcome["exposed communication"][side], jobs["exposed"][0] - jobs["waiting"][0])
            self.assertEqual(found["collectives"][0][side], calls["time"].sum())
            by_label = {row["what"]: row[side] for row in found["calls"]}
            self.assertEqual(by_label, dict(zip(calls["label"], calls["time"])))
            operators = table(path, "operations")
            self.assertEqual(found["operators"][0][side], (operators["end"] - operators["start"]).sum() / 8)
            links = table(path, "links")
            by_name = {row["what"]: row for row in found["links"]}
            place = ("first", "second").index(side)
            for source, target, busy, size in zip(*(links[name] for name in ("from_name", "to_name", "busy", "payload_bytes"))):
                row = by_name[f"{source} -> {target}"]
                self.assertEqual((row["busy"][place], row["bytes"][place]), (busy, size))
                self.assertEqual(row[side], row["busy"][place] + row["waiting"][place])
        self.assertAlmostEqual(sum(row["change"] for row in found["shares"]), outcome["step time"]["change"], delta=1)
        for name in ("outcome", "collectives", "calls", "operators", "links"):
            changes = [abs(row["change"]) for row in found[name]]
            self.assertEqual(changes, sorted(changes, reverse=True))
            for row in found[name]:
                self.assertEqual(row["change"], row["second"] - row["first"])
                if row["first"]:
                    self.assertAlmostEqual(row["percent"], 100 * row["change"] / row["first"])

    def test_waiting_is_what_messages_waited(self):
        """Three senders of one packet each to one receiver, on links of one rate: two wait, for one packet and two."""
        experiment = {"topology": STAR, "network": {"mtu": "4096 B", "header": "62 B", "ack": "none"},
                      "workload": {"kind": "program", "ranks": 4, "operations": [
                          *({"rank": i, "send": "4096 B", "to": 0} for i in (1, 2, 3)),
                          *({"rank": 0, "recv": "4096 B", "from": i} for i in (1, 2, 3))]}}  # fmt: skip
        alone = copy.deepcopy(experiment)
        alone["workload"]["operations"] = [experiment["workload"]["operations"][i] for i in (0, 3)]
        found = self.first_comparison(self.run_one(alone, "alone"), self.run_one(experiment, "crowd"))
        row, = (row for row in found["links"] if row["what"] == "switch0 -> host0")
        one_packet = row["busy"][0]
        self.assertEqual(row["busy"][1], 3 * one_packet)
        self.assertAlmostEqual(row["waiting"][1] / (3 * one_packet), 1, places=3)
        self.assertEqual(row["waiting"][0], 0)

    def test_acks_do_not_count_as_packets_that_wait(self):
        """The same, and the receiver sends 512 packets to host 4, whose ACKs pass the link at which three packets meet: they are
        nearly all of its packets, and next to none of the bytes that wait there."""
        sends = [*((i, 0, "4096 B") for i in (1, 2, 3)), (0, 4, "2 MiB")]
        experiment = {"topology": {**STAR, "hosts": 5}, "network": {"mtu": "4096 B", "header": "62 B", "ack": "66 B"},
                      "workload": {"kind": "program", "ranks": 5, "operations": [
                          *({"rank": a, "send": size, "to": b} for a, b, size in sends),
                          *({"rank": b, "recv": size, "from": a} for a, b, size in sends)]}}  # fmt: skip
        alone = copy.deepcopy(experiment)
        alone["workload"]["operations"] = [experiment["workload"]["operations"][i] for i in (3, 7)]
        found = self.first_comparison(self.run_one(alone, "alone"), self.run_one(experiment, "crowd"))
        row, = (row for row in found["links"] if row["what"] == "switch0 -> host0")
        one_packet = (4096 + 62 + 20) * 8e12 / row["rate"][1]
        self.assertAlmostEqual(row["waiting"][1] / (3 * one_packet), 1, delta=0.1)
        self.assertEqual(row["bytes"], [0, 3 * 4096])

    def test_nothing_is_divided_by_nothing(self):
        without = self.run_one({**RING, "output": {}}, "without")
        computing = changed(RING, "workload", "gap", value="10 us")
        found = self.first_comparison(without, self.run_one(computing, "with"))
        row, = (row for row in found["outcome"] if row["what"] == "compute")
        self.assertEqual((row["first"], row["percent"]), (0, None))

    def test_several_runs_against_the_first(self):
        paths = [self.run_one(changed(STEP, "topology", "link_rate", value=f"{rate} Gb/s"), str(rate))
                 for rate in (100, 200, 400)]
        result = self.compared(*paths)
        self.assertEqual([run["name"] for run in result["runs"]], ["100.h5", "200.h5", "400.h5"])
        self.assertEqual([(one["first"], one["second"]) for one in result["comparisons"]],
                         [("100.h5", "200.h5"), ("100.h5", "400.h5")])
        text = self.compare(*paths).out
        self.assertIn("200.h5 takes ", text)
        self.assertIn("400.h5 takes ", text)


class UnlikeRuns(Compare):
    def test_another_number_of_ranks(self):
        four = self.run_one(STEP, "four")
        two = changed(STEP, "workload", "ranks", value=2)
        found = self.first_comparison(four, self.run_one(two, "two"))
        self.assertTrue(any("four.h5 has 4 ranks and two.h5 2" in note for note in found["notes"]), found["notes"])
        self.assertEqual(found["ranks"], [])
        self.assertTrue(found["outcome"])

    def test_other_jobs(self):
        both = SOURCE / "workloads" / "two_jobs_sharing_a_spine.yaml"
        _, together = self.simulate(both, output="together.h5")
        _, alone = self.simulate(both, "--set", "workload.only=a", output="alone.h5")
        found = self.first_comparison(together, alone)
        self.assertEqual(found["headline"]["what"], "step time of job a")
        self.assertIn("Jobs of one run only are not compared: b.", found["notes"])
        self.assertEqual(found["inputs"][0], {"key": "workload.only", "first": "absent", "second": "a"})
        foreign = self.first_comparison(together, self.run_one(STEP, "step"))
        self.assertEqual(foreign["headline"]["what"], "simulated time")
        self.assertEqual(foreign["shares"], [])

    def test_another_machine(self):
        found = self.first_comparison(self.run_one(RING, "graph"),
                                      self.run_one({**RING, "topology": {**STAR, "hosts": 8}}, "star"))
        self.assertTrue(any("are in one of the runs only" in note for note in found["notes"]), found["notes"])

    def test_an_ideal_network(self):
        packet = self.run_one(RING, "packet")
        ideal = self.run_one({**RING, "network": {"fidelity": "ideal"}}, "ideal")
        self.assert_some_sentence(self.first_comparison(packet, ideal), "ideal.h5 takes")

    def test_a_run_that_was_cut_short(self):
        short = self.run_one({**STEP, "simulation": {"until": "120 us"}}, "short")
        found = self.first_comparison(self.run_one(STEP, "whole"), short)
        self.assertIn("short.h5 did not reach its end: its times are those until then.", found["notes"])
        # The time of the steps that it has done is not known.
        self.assertEqual(found["headline"]["what"], "simulated time")
        self.assert_no_verdict(found, ["short.h5"], "short.h5 did not reach its end; its time cannot be compared.")
        self.assert_no_verdict(self.first_comparison(short, self.folder / "whole.h5"), ["short.h5"],
                               "short.h5 did not reach its end; its time cannot be compared.")
        other = self.run_one({**STEP, "simulation": {"until": "100 us"}}, "other")
        self.assert_no_verdict(self.first_comparison(short, other), ["short.h5", "other.h5"],
                               "short.h5 and other.h5 did not reach their ends; their times cannot be compared.")
        steps = [row for row in found["outcome"] if row["what"] == "step time"]
        self.assertEqual([(row["percent"], None in (row["first"], row["second"])) for row in steps], [(None, True)])

    def assert_no_verdict(self, found, incomplete, sentence):
        self.assertEqual((found["incomplete"], found["sentences"][0]), (incomplete, sentence))
        self.assertEqual((found["headline"]["change"], found["headline"]["percent"]), (None, None))
        for word in ("takes", "Of the change"):
            self.assertNotIn(word, " ".join(found["sentences"]))

    def test_a_large_change_is_a_factor(self):
        """A job that computes for 10 ms before an all-reduce of some us, and one that does not."""
        short = self.run_one({"topology": STAR, "workload": {"kind": "program", "ranks": 4, "operations": [
            {"id": "gradients", "collective": "all_reduce", "size": "1 KiB"}]}}, "short")
        long = self.run_one({"topology": STAR, "workload": {"kind": "program", "ranks": 4, "operations": [
            {"rank": "all", "id": "forward", "compute": "10 ms"},
            {"id": "gradients", "collective": "all_reduce", "size": "1 KiB", "after": "forward"}]}}, "long")
        row = self.first_comparison(short, long)["headline"]
        self.assertEqual(row["change"], 10**10)
        factor = row["second"] / row["first"]
        self.assertGreater(factor, 1000)
        done = weft("compare", short, long)
        self.assertIn(f"long.h5 takes {factor:,.0f} times as long as short.h5: ", done.out)
        self.assertNotRegex(done.out, r"\d{4} %")

    def test_texts_of_changes(self):
        for percent, text in ((None, "-"), (-97.5, "-97.5 %"), (999.94, "+999.9 %"), (1000, "11 times"),
                              (100 * (120e-6 / 1e-7 - 1), "1,200 times"), (1e14, "1e+12 times")):
            self.assertEqual(percent_text(percent), text)

    def test_what_is_of_no_influence_is_no_cause(self):
        first = self.run_one(STEP, "first")
        second = self.run_one({**STEP, "output": {"operations": True, "sampling": "10 us"}}, "second")
        found = self.first_comparison(first, second)
        self.assertEqual([row["key"] for row in found["inputs"]], ["output.sampling"])
        self.assert_some_sentence(found, "No input differs that could change a result.")


class Page(html.parser.HTMLParser):
    """Checks that elements end where they should, and keeps texts and addresses."""

    EMPTY = {"meta", "rect", "line"}

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.addresses = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag, f"</{tag}> is at the wrong place"

    def handle_data(self, data):
        self.texts.append(data)


class Pages(Compare):
    def test_one_file_that_says_what_the_text_says(self):
        first = self.run_one(RING, "first")
        second = self.run_one(changed(RING, "workload", "size", value="2 MiB"), "second")
        found = self.first_comparison(first, second)
        self.compare(first, second, "--page", "page.html")
        text = (self.folder / "page.html").read_text(encoding="utf-8")
        page = Page(text)
        self.assertEqual(page.open, [])
        self.assertEqual(page.addresses, [])
        self.assertNotIn("url(", text)
        self.assertNotIn("<script", text)
        self.assertIn("prefers-color-scheme: dark", text)
        for sentence in found["sentences"]:
            self.assertIn(sentence, page.texts)
        for row in found["outcome"][:10]:
            self.assertIn(quantity_text(row["second"], row["unit"]), page.texts)
        self.assertGreater(text.count("<rect "), 10)

    def test_names_are_texts(self):
        """Text from a file is no mark-up."""
        paths = [self.run_one(changed(STEP, "workload", "operations", 2, "id", value=name), f"<b>{number}&")
                 for number, name in enumerate(("<i>one", "two&amp;"))]
        self.compare(*paths, "--page", "page.html")
        page = Page((self.folder / "page.html").read_text(encoding="utf-8"))
        self.assertEqual(page.open, [])
        self.assertIn("<i>one", page.texts)
        self.assertIn("two&amp;", page.texts)


class Refusals(Compare):
    def setUp(self):
        super().setUp()
        self.path = self.run_one(STEP, "good")

    def assert_refused(self, text, *words, code=EXIT_INPUT):
        done = self.compare(*words, code=code)
        self.assertEqual(len(done.err.splitlines()), 1, done)
        self.assertTrue(done.err.startswith("weft: "), done)
        self.assertIn(text, done.err)

    def test_words_and_files(self):
        content = self.path.read_bytes()
        (self.folder / "cut.h5").write_bytes(content[: len(content) // 2])
        (self.folder / "text.h5").write_text("no HDF5")
        with h5py.File(self.folder / "study.h5", "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
            file.create_group("cases").attrs["rows"] = 0
        self.assert_refused("arguments are required", self.path)
        self.assert_refused("not a number of rows", self.path, self.path, "--top", "0")
        self.assert_refused("absent.h5: cannot open this file: No such file", self.path, "absent.h5")
        self.assert_refused("cut.h5: it is cut off", self.path, "cut.h5")
        self.assert_refused("text.h5: it is not an HDF5 file", "text.h5", self.path)
        self.assert_refused("study.h5: it is the table of a study", self.path, "study.h5")
        self.assert_refused("it is a folder", self.path, self.path, "--page", self.folder)

    def test_no_input_and_no_pipe_is_replaced(self):
        self.assert_kept(self.path, "is an input", "compare", self.path, self.path, "--page", self.path)
        self.assert_kept(self.pipe(), "not a regular file", "compare", self.path, self.path, "--page", "pipe")

    def test_full_disk(self):
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        other = self.run_one(changed(STEP, "topology", "link_rate", value="100 Gb/s"), "other")
        done = weft("compare", self.path, other, "--page", "page.html", folder=self.folder, preexec_fn=limit)
        self.assertEqual(done.code, EXIT_ENVIRONMENT, done)
        self.assertIn("cannot write 'page.html'", done.err)
        self.assertEqual([path.name for path in self.folder.iterdir() if "page" in path.name], [])

    def test_full_device(self):
        with open("/dev/full", "wb") as full:
            process = start(["compare", self.path, self.path], folder=self.folder, stdout=full)
            _, err = process.communicate(timeout=100)
            stop(process)
        self.assertEqual(process.returncode, EXIT_ENVIRONMENT)
        self.assertIn("cannot write 'standard output'", err)


class Inputs(unittest.TestCase):
    def test_keys(self):
        experiment = {"a": {"b": 1, "c": [{"name": "x", "d": True}, {"name": "y"}]}, "e": [1, [2]], "f": {}, "g": None}
        self.assertEqual(flattened(experiment), {
            "a.b": "1", "a.c[x].name": "x", "a.c[x].d": "true", "a.c[y].name": "y", "e[0]": "1", "e[1][0]": "2",
            "f": "{}", "g": "none"})  # fmt: skip
        self.assertEqual(list(flattened([{"name": "x"}, {"name": "x"}])), ["[0].name", "[1].name"])

    def test_differences(self):
        first = {"output.sampling": "1 us", "topology.k": "4", "seed": "1"}
        second = {"topology.k": "8", "seed": "1", "window": "64 KiB"}
        self.assertEqual(differing(first, second), [
            {"key": "topology.k", "first": "4", "second": "8"},
            {"key": "window", "first": "absent", "second": "64 KiB"},
            {"key": "output.sampling", "first": "1 us", "second": "absent"},
        ])  # fmt: skip

    def test_a_list_that_is_empty_in_one_run(self):
        """Its entries are what differs; the other run has the list."""
        empty, one = flattened({"network": {"failures": [], "loss": {}}}), flattened(
            {"network": {"failures": [{"at": "1 us"}], "loss": {}}})
        added = {"key": "network.failures[0].at", "first": "absent", "second": "1 us"}
        self.assertEqual(differing(empty, one), [added])
        self.assertEqual(differing(one, empty), [{**added, "first": "1 us", "second": "absent"}])
        self.assertEqual(differing(empty, flattened({"network": {"loss": {}}})),
                         [{"key": "network.failures", "first": "[]", "second": "absent"}])

    def test_quantities(self):
        for value, unit, text in [(0, "ps", "0"), (1, "ps", "1 ps"), (1234567, "ps", "1.235 us"), (-3e12, "ps", "-3 s"),
                                  (14.6e9, "ps", "14.6 ms"), (4096, "B", "4.096 kB"), (123456, "1", "123456"),
                                  (0.5, "1", "0.5"), (None, "ps", "-")]:  # fmt: skip
            self.assertEqual(quantity_text(value, unit), text)


if __name__ == "__main__":
    unittest.main()
