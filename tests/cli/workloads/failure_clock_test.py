#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Failures without step_time: steps, checkpoints and their reading are timed on the ideal network, equally on any number of
processes."""

import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_INPUT, NETWORK, ProgramTest, attributes, table, weft

MODEL = '{"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 64, "vocab_size": 256}'
DETECTION, RESTART = 200_000_000, 100_000_000  # ps


class FailureClock(ProgramTest):
    def job(self, steps, data=1, fidelity="ideal", ranks=None, **keys):
        """A run; gives the end of its last operation in ps, and the results."""
        pathlib.Path(self.folder, "model.json").write_text(MODEL, encoding="utf-8")
        workload = {"kind": "training", "model": "model.json", "device": "h100-sxm", "efficiency": 0.001,
                    "micro_batch": 1, "steps": steps, "parallelism": {"data": data}, **keys}
        experiment = {"topology": {"kind": "star", "hosts": data + 1, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "fidelity": fidelity}, "workload": workload}
        self.experiment = experiment
        _, results = self.simulate(experiment, ranks=ranks)
        return int(table(results, "ranks")["finished"][:data].max()), results

    def test_times_are_those_of_the_run(self):
        saving = {"every": 2, "targets": 1, "size": "64 KiB"}
        never = self.job(2, checkpoint={**saving, "every": 9})[0]
        step = never - self.job(1, checkpoint={**saving, "every": 9})[0]
        write = self.job(2, checkpoint=saving)[0] - never
        plain = self.job(4, checkpoint=saving)[0]
        self.assertEqual(plain, 4 * step + 2 * write)
        # Half a write after the second step: two steps and this are lost, and there is no checkpoint to read.
        when = 2 * step + write // 2
        failures = {"times": [f"{when} ps"], "detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
        broken = self.job(4, checkpoint=saving, failures=failures)[0]
        self.assertEqual(broken, plain + when + DETECTION + RESTART)
        text = self.run_weft("describe", self.write(self.experiment)).out
        clock = re.search(r"on their clock +a step (.*) ms, a checkpoint (.*) ms, reading it .* ms, on the ideal", text)
        self.assertEqual(clock.groups(), (f"{step / 1e9:.3f}", f"{write / 1e9:.3f}"))

    def test_accelerators_are_idle_until_the_restart(self):
        """Lost work counts as compute, detection and restart do not."""
        saving = {"every": 9, "targets": 1, "size": "64 KiB"}

        def computed(**keys):
            return int(table(self.job(2, checkpoint=saving, **keys)[1], "ranks")["compute"][0])

        calm, when = computed(), 50_000_000
        self.assertGreater(calm, when)
        failures = {"times": [f"{when} ps"], "detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
        self.assertEqual(computed(failures=failures), calm + when)

    def test_alike_on_any_number_of_processes(self):
        saving = {"every": 2, "targets": 1, "size": "64 KiB"}
        failures = {"times": ["100 us", "300 us", "640 us"], "detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
        found = {attributes(self.job(8, 4, "packet", ranks, checkpoint=saving, failures=failures)[1])["fingerprint"]
                 for ranks in (1, 2, 3)}
        self.assertEqual(len(found), 1)
        text = self.run_weft("describe", self.write(self.experiment)).out
        self.assertRegex(text, r"failures +3;")

    def test_faults_and_background_transfers_do_not_change_the_clock(self):
        """The ideal network has none of them: the clock is that of the job alone."""
        failures = {"times": ["100 us", "300 us", "640 us"], "detection": f"{DETECTION} ps", "restart": f"{RESTART} ps"}
        self.job(6, 2, "packet", checkpoint={"every": 2, "targets": 1, "size": "64 KiB"}, failures=failures)

        def clock(network, **more):
            experiment = {**self.experiment, "network": {**self.experiment["network"], **network}, **more}
            return re.search(r"on their clock +a step .*", self.run_weft("describe", self.write(experiment)).out)[0]

        alone = clock({})
        for network in ({"loss": [{"link": "all", "probability": 1e-4}]},
                        {"failures": [{"at": "1 ms", "until": "2 ms", "switch": "switch0"}], "reconvergence": "1 us"},
                        {"fidelity": "loggp", "loggp": {"L": "1 us"}},
                        {"ns3_attributes": {"/NodeList/0/DeviceList/0/Mtu": 1500}}):
            with self.subTest(str(network)):
                self.assertEqual(clock(network), alone)
        self.assertEqual(clock({}, background=[{"kind": "tcp", "from": 0, "to": 1, "size": "1 kB"}]), alone)

    def test_restarts_that_do_not_end_are_refused(self):
        self.job(2, checkpoint={"every": 2, "targets": 1, "size": "64 KiB"})
        failures = "workload.failures={mean_time: 100 us, restart: 10 s}"
        done = weft("describe", self.write(self.experiment), "--set", failures, folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertRegex(done.err, r"after 1 executions and \d+ failures 0 of 2 steps are done; .*, a shorter restart or")

    def test_jobs_among_others_have_their_own_clocks(self):
        """Two jobs fail as each does alone, at times from its own start; one of them is in a file."""
        saving = {"every": 2, "targets": 1, "size": "64 KiB"}
        def failing(*times):
            return {"times": [f"{time} us" for time in times], "detection": f"{DETECTION} ps",
                    "restart": f"{RESTART} ps"}
        keys = {"a": {"steps": 6, "data": 2, "checkpoint": saving, "failures": failing(150, 600)},
                "b": {"steps": 8, "data": 1, "checkpoint": {**saving, "every": 3}, "failures": failing(90, 450, 800)}}
        alone = {name: self.job(**of)[0] for name, of in keys.items()}
        undisturbed = {name: self.job(**{**of, "failures": None})[0] for name, of in keys.items()}
        parts = {}
        for name, of in keys.items():
            of = dict(of)
            data = of.pop("data")
            parts[name] = {"kind": "training", "model": "model.json", "device": "h100-sxm", "efficiency": 0.001,
                           "micro_batch": 1, "parallelism": {"data": data}, **of}
        self.write(parts["b"], "b.yaml")
        start = 50_000_000
        jobs = [{"name": "a", "ranks": 3, "workload": parts["a"]},
                {"name": "b", "ranks": 2, "start": f"{start} ps", "workload": "b.yaml", "set": ["micro_batch=1"]}]
        experiment = {"topology": {"kind": "star", "hosts": 5, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
                      "network": {**NETWORK, "fidelity": "ideal"}, "workload": {"kind": "jobs", "jobs": jobs}}
        _, results = self.simulate(experiment)
        finished = table(results, "ranks")["finished"]
        self.assertEqual(finished[:2].max(), alone["a"])
        self.assertEqual(finished[3] - start, alone["b"])
        for name in keys:
            self.assertGreater(alone[name], undisturbed[name] + 2 * (DETECTION + RESTART))
        text = self.run_weft("describe", self.write(experiment)).out
        self.assertRegex(text, r"a: on their clock +a step ")
        self.assertRegex(text, r"a: failures +2;")
        self.assertRegex(text, r"b: failures +3;")
        packets = {**experiment, "network": NETWORK}
        found = {attributes(self.simulate(packets, ranks=ranks)[1])["fingerprint"] for ranks in (None, 2, 3, 4, 8)}
        self.assertEqual(len(found), 1)


if __name__ == "__main__":
    unittest.main()
