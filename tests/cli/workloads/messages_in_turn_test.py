#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Messages between stages as DeepSpeed's pipeline sends them, and hosts that wait for each launch."""

import pathlib
import sys
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, SOURCE, STAR, ProgramTest, table, weft  # noqa: E402

STAGES, MICRO_BATCHES = 3, 5
COMPUTE, SEND, RECV = 0, 2, 3  # kinds of operations


def train_schedule(stage):
    """Instructions of deepspeedai/DeepSpeed, commit 077e6740, runtime/pipe/schedule.py, TrainSchedule: (what, peer, micro-batch)."""
    before = -1
    for step in range(2 * (MICRO_BATCHES + STAGES - 1)):
        forward = step % 2 == stage % 2
        if forward:
            now = step // 2 - stage // 2
        elif step % 2 == 0:
            now = step // 2 - STAGES + (stage + 1) // 2
        else:
            now = (step - 1) // 2 - STAGES + 1 + stage // 2
        here, last = 0 <= now < MICRO_BATCHES, 0 <= before < MICRO_BATCHES
        if forward and stage > 0:
            yield from [("recv", stage - 1, ("activations", now))] * here
            yield from [("send", stage - 1, ("gradients", before))] * last
        if not forward and stage + 1 < STAGES:
            yield from [("send", stage + 1, ("activations", before))] * last
            yield from [("recv", stage + 1, ("gradients", now))] * here
        yield from [("forward" if forward else "backward", stage, now)] * here
        before = now


def timeline(times, asking, sending):
    """End of all passes of each stage, if a message begins when the sender is there and the receiver's question has come."""
    plans = [list(train_schedule(stage)) for stage in range(STAGES)]
    at, clock, asked, sent = [0] * STAGES, [0] * STAGES, {}, {}
    while any(place < len(plan) for place, plan in zip(at, plans)):
        for stage, plan in enumerate(plans):
            while at[stage] < len(plan):
                what, peer, which = plan[at[stage]]
                key = (min(stage, peer), which)
                if what == "recv":
                    asked.setdefault(key, clock[stage] + asking)
                    if key not in sent:
                        break
                    clock[stage] = sent[key]
                elif what == "send":
                    if key not in asked:
                        break
                    clock[stage] = sent[key] = max(clock[stage], asked[key]) + sending
                else:
                    clock[stage] += times[stage, what]
                at[stage] += 1
    return clock


class MessagesInTurn(ProgramTest):
    def job(self, **workload):
        return self.write({"topology": {**STAR, "hosts": STAGES}, "network": {**NETWORK, "fidelity": "ideal"}, "workload": {
            "kind": "training", "model": "gpt2", "device": "a100-sxm", "framework": "megatron_deepspeed", "micro_batch": 1,
            "micro_batches": MICRO_BATCHES, "sequence_length": 512, "cuda_graphs": True,
            "gradient_precision": "fp32", "parallelism": {"pipeline": STAGES}, **workload}})  # fmt: skip

    def test_order_and_times(self):
        """A simulated step is that of the schedule by hand, with passes and messages as long as they are here."""
        _, results = self.simulate(self.job(), "--set", "output.operations=true")
        operations = table(results, "operations")
        lasts = operations["end"] - operations["start"]
        passes = (operations["kind"] == COMPUTE) & np.isin(operations["phase"], ["forward", "backward"])
        times, ends = {}, []
        for stage in range(STAGES):
            here = operations["rank"] == stage
            for phase in ("forward", "backward"):
                total = lasts[here & passes & (operations["phase"] == phase)].sum()
                self.assertEqual(total % MICRO_BATCHES, 0)
                times[stage, phase] = total // MICRO_BATCHES
            ends.append(operations["end"][here & passes].max())
        messages = (operations["kind"] == SEND) | (operations["kind"] == RECV)
        asks = np.char.find(operations["label"].astype(str), "ready") >= 0
        asking, sending = (lasts[(operations["kind"] == SEND) & which].min() for which in (asks, ~asks))
        # A stage's passes and messages, without questions, never overlap.
        for stage in range(STAGES):
            here = np.flatnonzero((operations["rank"] == stage) & (passes | (messages & ~asks)))
            here = here[np.lexsort((operations["end"][here], operations["start"][here]))]
            waits = operations["kind"][here][1:] == RECV  # a recv may start when it is posted
            self.assertTrue(np.all(operations["start"][here][1:] >= operations["end"][here][:-1]) or np.any(waits))
        expected = timeline(times, asking, sending)
        for ours, by_hand in zip(ends, expected, strict=True):
            self.assertAlmostEqual(ours / by_hand, 1, delta=1e-3)
        # With Megatron-LM's messages, both ways at once, a step is shorter.
        framework = (SOURCE / "workloads/frameworks/megatron_deepspeed.yaml").read_text()
        both = framework.replace("messages_in_turn: true", "blocking_messages: true")
        self.assertNotEqual(both, framework)
        (self.folder / "both.yaml").write_text(both)
        self.assertGreater(self.time(), self.time(framework="both.yaml"))

    def time(self, **workload):
        return self.simulate(self.job(**workload))[0]["simulated_time_ps"]

    def test_host_that_waits_for_each_launch(self):
        """On one rank a step then takes the launches and the device's time, one after the other."""
        one = {"micro_batches": 2, "parallelism": {"data": 1}, "recompute": "full"}
        device = self.time(**one, cuda_graphs=True)
        summary, results = self.simulate(self.job(**one, cuda_graphs=False, blocking_launches=True))
        launches = table(results, "ranks")["host"][0]
        self.assertGreater(launches, 0)
        self.assertEqual(summary["simulated_time_ps"], device + launches)
        refused = weft("run", self.job(**one, blocking_launches=True), folder=self.folder)
        self.assertEqual(refused.code, 2)
        self.assertIn("found with `cuda_graphs`", refused.err)

    def test_note_about_gemms_off_16_bytes(self):
        """GPT-2's vocabulary of 50,257 is odd. The A100 has rates of such sides, the H100 has none."""
        lines = self.run_weft("describe", self.job()).out.splitlines()
        slow = [line for line in lines if line.strip().startswith("slow GEMMs")]
        self.assertTrue(slow)
        self.assertTrue(all("multiples of 2 B, not of 16 B: 0.291 of the rate" in line for line in slow), slow)
        slow = [line for line in self.run_weft("describe", self.job(device="h100-sxm")).out.splitlines() if line.strip().startswith("slow GEMMs")]
        self.assertTrue(all("has no rates of such kernels, so the time is too short" in line for line in slow), slow)
        self.assertTrue(slow)

    def test_same_results_on_any_number_of_processes(self):
        path = self.job(parallelism={"pipeline": STAGES, "tensor": 2, "scatter_gather": True}, cuda_graphs=False, blocking_launches=True)
        self.simulate(path, "--set", "output.operations=true", "--set", f"topology.hosts={2 * STAGES}", output="1.h5")
        for ranks in (2, 3, 4, 8):
            self.simulate(path, "--set", "output.operations=true", "--set", f"topology.hosts={2 * STAGES}", output=f"{ranks}.h5", ranks=ranks)
            self.assert_same_results(self.folder / "1.h5", self.folder / f"{ranks}.h5")


if __name__ == "__main__":
    unittest.main()
