#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""MSCCL++'s execution plans as algorithms: proof, bytes, times, and errors of a plan."""

import functools
import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import mscclpp_plans as plans
from weft_testing import (EXIT_INPUT, NETWORK, SOURCE, STAR, ProgramTest, picoseconds_to_send, table, two_at_a_time,
                          weft)

# reduce.json of github.com/microsoft/mscclpp test/execution-files (MIT License, (c) Microsoft Corporation).
PUBLISHED = SOURCE / "tests" / "fuzz" / "corpus" / "mscclpp_json" / "reduce.json"


class MscclppPlan(ProgramTest):
    def plan(self, content, name="plan.json"):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def experiment(self, collective, ranks, size, algorithm="plan.json"):
        return {"topology": STAR, "network": {**NETWORK, "ack": "none"}, "simulation": {"seed": 1},
                "workload": {"kind": "collective", "collective": collective, "ranks": ranks, "size": f"{size} B",
                             "algorithm": algorithm}}

    def test_plans_are_proved(self):
        for name, content in (("all_reduce", plans.all_reduce(4)), ("all_gather", plans.all_gather(4)),
                              ("get", plans.all_gather(3, "get")), ("scratch", plans.through_scratch()),
                              ("packets", plans.packets(4)), ("packets passed on", plans.passed_on()),
                              ("semaphores", plans.two_blocks()), ("thread blocks share", plans.shared(3)), ("switch", plans.all_reduce_through_switch(4)),
                              ("blocks and a switch", plans.all_reduce_through_switch(5, 2)),
                              ("stores through a switch", plans.all_gather_through_switch(3))):
            with self.subTest(name=name):
                out = self.run_weft("collective", self.plan(content), "--size", "1200000B", "--check").out
                self.assertIn("complete: every rank has its result, each contribution exactly once", out)
        self.assertIn("complete: every rank", self.run_weft("collective", PUBLISHED, "--size", "1MiB", "--check").out)

    def test_bytes(self):
        """allreduce: each of the n chunks is read by n - 1 and written to n - 1 others: 2 (n - 1) S. allgather of S:
        (n - 1) S. Through scratch: S / 2 there and back on both sides, 2 S. The published plan, chunks of S / 4: on each
        side one read and written, one got and written: 2 * 4 * S / 4 = 2 S, as 2 (n - 1) S says."""
        size = 1_200_000
        for content, kind, ranks, sent in ((plans.all_reduce(4), "all_reduce", 4, 6 * size),
                                           (plans.all_gather(4), "all_gather", 4, 3 * size),
                                           (plans.all_gather(3, "get"), "all_gather", 3, 2 * size),
                                           (plans.through_scratch(), "all_reduce", 2, 2 * size),
                                           (plans.two_blocks(), "all_gather", 2, size),
                                           (PUBLISHED.read_text(), "all_reduce", 2, 2 * size)):
            with self.subTest(sent=sent, kind=kind):
                self.plan(content)
                summary, _ = self.simulate(self.experiment(kind, ranks, size))
                self.assertEqual(summary["bytes_delivered"], sent)
                self.assertTrue(summary["complete"])

    def test_packets_are_half_flags(self):
        """allreduce of n: every GPU puts n - 1 chunks of S / n twice, and a packet has as much flag as data
        (include/mscclpp/packet_device.hpp): 4 (n - 1) S. Passed on: each of 3 chunks goes to 2 GPUs, 2 * 2 * S."""
        size = 1_200_000
        for content, kind, ranks, sent in ((plans.packets(4), "all_reduce", 4, 4 * 3 * size),
                                           (plans.passed_on(), "all_gather", 3, 4 * size)):
            with self.subTest(kind=kind):
                self.plan(content)
                summary, _ = self.simulate(self.experiment(kind, ranks, size))
                self.assertEqual(summary["bytes_delivered"], sent)
                self.assertTrue(summary["complete"])

    def test_thread_blocks_share_an_operation(self):
        """tbg_info, calcOffset of execution_plan.cc: each of three puts a third of the chunk of S / 2. Together they send as
        much as one, each on a separate connection, side by side: with parts of one packet the first two of a GPU's three
        precede the last one, 3 s / C + s / C + 2 d."""
        size = 24_000
        self.plan(plans.shared(3))
        summary, file = self.simulate(self.experiment("all_gather", 2, size))
        self.assertEqual(summary["bytes_delivered"], size)
        self.assertEqual(sorted(table(file, "messages")["bytes"].tolist()), [size // 6] * 6)
        part = picoseconds_to_send(size // 6 + 82, 400 * 10**9)
        self.assertEqual(summary["simulated_time_ps"], 4 * part + 2 * 500_000)

    def test_a_permit_from_the_beginning_is_no_wait(self):
        """The second block copies data that has not arrived: the replay reports it."""
        done = weft("collective", self.plan(plans.two_blocks([{"init_value": 1}])), "--size", "1000B", "--check",
                    folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("the schedule is wrong", done.err)

    def test_time_of_puts_between_two(self):
        """Both put a chunk of one packet at the same time: 2 (s / C + d)."""
        self.plan(plans.all_gather(2))
        summary, _ = self.simulate(self.experiment("all_gather", 2, 8000))
        self.assertEqual(summary["simulated_time_ps"], 2 * (picoseconds_to_send(4000 + 82, 400 * 10**9) + 500_000))

    def test_switches_that_reduce(self):
        """Of an all-reduce of S over n each GPU gives all of S to the switch and has S / n from it, the sum, which it stores
        there, and has all of S back: 2 (n + 1) S messages' bytes, as `nvls` has. All-gather of S: each GPU stores S / n
        and has S: (n + 1) S. Without such a switch there is no run."""
        size = 1_200_000
        for content, kind, sent in ((plans.all_reduce_through_switch(4, 2), "all_reduce", 10 * size),
                                    (plans.all_gather_through_switch(4), "all_gather", 5 * size)):
            with self.subTest(kind=kind):
                self.plan(content)
                experiment = self.experiment(kind, 4, size)
                done = weft("run", self.write(experiment), "-o", "none.h5", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn("switch", done.err)
                experiment["topology"] = {**STAR, "switch_reduction": {}}
                other = self.experiment(kind, 4, size, "nvls")
                self.assertEqual(self.simulate({**other, "topology": experiment["topology"]}, output="nvls.h5")[0]
                                 ["bytes_delivered"], sent)
                path = self.write(experiment)
                summary, results = self.simulate(path)
                self.assertEqual(summary["bytes_delivered"], sent)
                for ranks in (2, 3):
                    again, same = self.simulate(path, output=f"{ranks}.h5", ranks=ranks)
                    self.assertEqual(again["fingerprint"], summary["fingerprint"])
                    self.assert_same_results(results, same)

    def test_schedules_with_switches_as_text(self):
        text = self.run_weft("collective", self.plan(plans.all_reduce_through_switch(3, 2)), "--text").out
        self.assertIn("switch first 0 count 3 stride 1\n", text)
        (self.folder / "same.schedule").write_text(text)
        self.assertEqual(self.run_weft("collective", "same.schedule", "--text").out, text)

    def test_time_of_eight_h100(self):
        """Behind four NVSwitches, 16 thread blocks each: the bytes of a GPU's links are those of NCCL's NVLS with its 16
        channels. Only the length of chunks differs: the whole of a thread block's instead of 128 KiB."""
        server = {"kind": "server", "design": "hgx_h100", "switch_reduction": {"at": ["nvswitch"]}}
        self.plan(plans.all_reduce_through_switch(8, 16))
        times = {}
        for algorithm in ("plan.json", "nvls"):
            experiment = self.experiment("all_reduce", 8, 32 << 20, algorithm)
            experiment["topology"] = server
            if algorithm == "nvls":
                experiment["workload"]["channels"] = 16
            times[algorithm] = self.simulate(experiment, output=f"{algorithm}.h5")[0]["simulated_time_ps"]
        self.assertLess(abs(times["plan.json"] / times["nvls"] - 1), 0.1, times)

    def test_the_same_on_any_number_of_processes(self):
        self.plan(plans.all_reduce(4))
        path = self.write(self.experiment("all_reduce", 4, 400_000))
        one, *others = two_at_a_time([functools.partial(self.simulate, path, output=f"{n}.h5", ranks=n)
                                      for n in (None, 2, 3, 4, 8)])
        for summary, results in others:
            self.assertEqual(summary["fingerprint"], one[0]["fingerprint"])
            self.assert_same_results(one[1], results)

    def test_complaints(self):
        def changed(change):
            content = plans.all_reduce(3)
            change(content)
            return content

        def switched(change):
            content = plans.all_reduce_through_switch(3)
            change(content)
            return content

        def ranks_of(content):
            return content["gpus"][2]["channels"][1]["rank_groups"][0]["ranks"]

        def operation(content, number):
            return content["gpus"][1]["threadblocks"][0]["ops"][number]

        def twice():
            content = plans.packets(3)
            content["gpus"][1]["threadblocks"][0]["ops"].insert(0, content["gpus"][1]["threadblocks"][0]["ops"][0])
            return content
        cases = (
            ("{", "this is no JSON"),
            ("{}", "this is no execution plan of MSCCL++"),
            (changed(lambda c: c.update(protocol="LL128")), "the protocol is 'LL128'; expected Simple or LL"),
            (changed(lambda c: c.update(protocol="LL")), "the protocol is LL, whose scratch holds packets"),
            ({**plans.packets(2), "protocol": "Simple"}, "an operation on packets; expected the plan's protocol to be LL"),
            (twice(), "is written with packets a second time"),
            (plans.two_blocks([]), "the GPU has 0 semaphores"),
            (changed(lambda c: c.update(collective="sendrecv")), "the collective is 'sendrecv'"),
            (changed(lambda c: operation(c, 3).update(name="glres")),
             "GPU 1, thread block 0, operation 3 (glres): 'src_buff' must be one buffer behind a switch"),
            (switched(lambda c: ranks_of(c).pop()), "GPU 2: a channel of the type 'switch' whose ranks are without the GPU itself"),
            (switched(lambda c: ranks_of(c).extend([3])), "a channel of the type 'switch' to 4 GPUs up to 3"),
            (switched(lambda c: operation(c, 3)["src_buff"][0].update(switch_channel_id=1)),
             "the thread block has no channel 1 of the type 'switch'"),
            (switched(lambda c: operation(c, 3)["src_buff"][0].update(index=3)), "chunks 3 to 4 of the buffer input of GPU 1"),
            (switched(lambda c: operation(c, 3)["src_buff"][0].update(index=0)), "the schedule is wrong"),
            (switched(lambda c: c.update(protocol="LL")), "the protocol is LL"),
            (changed(lambda c: operation(c, 3).update(name="spam")), "operation 3 (spam): this operation is not modelled"),
            (changed(lambda c: operation(c, 3).update(tbg_info={"tb_id": 2, "tbg_size": 2})), "thread block 2 of a group of 2"),
            (changed(lambda c: operation(c, 3).update(tbg_info={"tb_id": 0, "tbg_size": 2})), "the schedule is wrong"),
            (changed(lambda c: operation(c, 3)["src_buff"][0].update(index=7)), "chunks 7 to 8 of the buffer input of GPU 1, which has 3"),
            (changed(lambda c: operation(c, 3)["src_buff"][1].update(buffer_id=77)), "the thread block has no remote buffer 77"),
            (changed(lambda c: operation(c, 5).update(channel_ids=[0])), "it waits for ever: no thread block signals"),
            (changed(lambda c: operation(c, 0).update(channel_ids=[5])), "the thread block has no channel 5 of the type 'memory'"),
            (changed(lambda c: operation(c, 3)["dst_buff"].pop()), "the schedule is wrong"),
            (changed(lambda c: operation(c, 3)["src_buff"].pop()), "the schedule is wrong"),
            (changed(lambda c: c["gpus"].pop()), "a channel to GPU 2"),
            (changed(lambda c: c["gpus"][0].pop("threadblocks")), "a value is missing"))
        for content, part in cases:
            with self.subTest(part=part):
                done = weft("collective", self.plan(content), "--size", "1200000B", "--check", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn(part, done.err)


if __name__ == "__main__":
    unittest.main()
