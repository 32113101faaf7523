#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The laws of results hold for good runs, and each of them fires when a file is changed so that it breaks it."""

import pathlib
import shutil
import sys
import unittest

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import checks  # noqa: E402
from weft_testing import ProgramTest  # noqa: E402

LEAF_SPINE = {"kind": "leaf_spine", "leaves": 3, "hosts_per_leaf": 3, "spines": 2, "link_rate": "100 Gb/s",
              "link_delay": "500 ns"}
TRAFFIC = {"kind": "traffic", "pattern": "all_to_all", "size": "50 kB"}
OUTPUT = {"sampling": "2 us", "rates": {"interval": "2 us"}, "queue_depths": True, "operations": True,
          "attribution": "full"}
EXPERIMENTS = {
    "plain": {"topology": LEAF_SPINE, "workload": TRAFFIC, "output": {"operations": True, "sampling": "2 us"}},
    "queues": {"topology": LEAF_SPINE, "network": {"queues": "output"}, "workload": TRAFFIC, "output": OUTPUT},
    "losses": {"topology": LEAF_SPINE, "network": {"loss": [{"link": "all", "probability": 0.002}]}, "workload": TRAFFIC,
               "output": OUTPUT},
    "pauses": {"topology": LEAF_SPINE, "network": {"flow_control": "pfc", "buffer": {"size": "200 kB"}},
               "workload": {"kind": "traffic", "pattern": "incast", "size": "200 kB"}},
    "collective": {"topology": LEAF_SPINE, "workload": {"kind": "collective", "collective": "all_reduce", "ranks": 9,
                                                        "size": "100 kB", "iterations": 2, "gap": "3 us"},
                   "output": {"operations": True}},
    "transfers": {"topology": LEAF_SPINE, "workload": TRAFFIC, "output": {"sampling": "2 us"},
                  "background": [{"kind": "tcp", "from": 0, "to": 4, "size": "40 kB"}]},
    "endless transfer": {"topology": LEAF_SPINE, "workload": TRAFFIC,
                         "background": [{"kind": "tcp", "from": 0, "to": 4}]},
    "links with a framing": {"topology": {"kind": "server", "design": "hgx_b200"}, "network": {"ack": "none"},
                             "workload": {**TRAFFIC, "size": "30 B"}},
    "ideal": {"topology": LEAF_SPINE, "network": {"fidelity": "ideal"}, "workload": TRAFFIC},
}


def column(path, row, change):
    """Changes one row of a column; `change` gets the old value."""

    def apply(file):
        values = file[path][:]
        values[row] = change(values[row])
        file[path][...] = values

    return apply


def swap(*paths):
    """Exchanges the first two rows of columns."""

    def apply(file):
        for path in paths:
            values = file[path][:]
            values[[0, 1]] = values[[1, 0]]
            file[path][...] = values

    return apply


def one_more(value):
    return value + 1


def late(_):
    return 1 << 60


def further_column(file):
    file.create_dataset("links/no_such_column", data=numpy.zeros(len(file["links/id"])))


# Law: experiment, the change in its file. Each law has one at least.
CORRUPTIONS = [
    ("schema_is_kept", "plain", further_column),
    ("numbers_are_numbers", "plain", column("jobs/idle", 0, lambda _: -1.0)),
    ("numbers_are_numbers", "plain", column("jobs/step_time", 0, lambda _: numpy.nan)),
    ("times_are_within_the_run", "plain", column("messages/delivered", -1, late)),
    ("times_are_within_the_run", "queues", column("links_series/time", -1, late)),
    ("messages_are_in_order", "plain", column("messages/issued", 3, late)),
    ("messages_are_in_order", "plain", swap("messages/delivered", "messages/id")),
    ("messages_are_in_order", "plain", column("messages/packets", 0, lambda _: 0)),
    ("slowdown_is_at_least_one", "plain", column("messages/slowdown", 5, lambda value: value / 2)),
    ("slowdown_is_at_least_one", "plain", column("messages/ideal", 5, lambda value: 1000 * value)),
    ("waits_are_within_the_message", "queues", column("messages/queueing", 0, late)),
    ("waits_are_within_the_message", "queues", column("messages/slow_link_1", 0, late)),
    ("parts_add_up_to_the_time", "queues", column("messages/part_queueing", 0, one_more)),
    ("parts_add_up_to_the_time", "collective", column("collectives/part_transfer", 0, one_more)),
    ("parts_add_up_to_the_time", "collective", column("ranks/part_idle", 0, one_more)),
    ("parts_add_up_to_the_time", "collective", column("jobs/part_peers", 0, one_more)),
    ("causes_come_before", "queues", column("messages/cause", 0, lambda _: 1 << 50)),
    ("link_waits_are_those_of_messages", "plain", column("link_waits/time", 0, one_more)),
    ("stops_have_causes", "pauses", column("link_pauses/time", 0, one_more)),
    ("stops_have_causes", "pauses", column("link_pauses/cause", 0, lambda value: value ^ 1)),
    ("ranks_and_messages_agree", "plain", column("ranks/messages_sent", 0, one_more)),
    ("ranks_and_messages_agree", "plain", column("ranks/bytes_received", 0, one_more)),
    ("ranks_and_messages_agree", "plain", column("messages/destination", 0, lambda value: (value + 1) % 9)),
    ("times_of_ranks_add_up", "collective", column("ranks/idle", 0, one_more)),
    ("times_of_jobs_add_up", "collective", column("jobs/compute", 0, lambda value: value + 100)),
    ("times_of_jobs_add_up", "collective", column("jobs/time", 0, one_more)),
    ("times_of_jobs_add_up", "collective", column("jobs/bytes", 0, one_more)),
    ("collectives_are_whole", "collective", column("collectives/finished_ranks", 0, lambda value: value - 1)),
    ("collectives_are_whole", "collective", column("collectives/sent_bytes", 1, one_more)),
    ("collectives_are_whole", "collective", column("collectives/time", 1, one_more)),
    ("links_are_not_overloaded", "plain", column("links/utilization", 0, lambda _: 1.01)),
    ("links_are_not_overloaded", "plain", column("links/busy", 0, lambda value: 2 * value + 1)),
    ("links_are_not_overloaded", "queues", column("links/mean_queue", 0, lambda _: 1e12)),
    ("links_are_not_overloaded", "losses", column("links/lost", 0, lambda _: 1 << 30)),
    ("bytes_take_their_time", "plain", column("links/bytes", 0, lambda value: 2 * value)),
    ("switches_neither_make_nor_keep", "plain", column("links/data_packets", 0, one_more)),
    ("switches_neither_make_nor_keep", "losses", column("links/data_packets", -1, lambda value: value + 10_000)),
    ("hosts_send_what_messages_hold", "plain", column("links/payload_bytes", 0, one_more)),
    ("hosts_send_what_messages_hold", "losses", column("links/payload_bytes", 0, lambda value: value // 2)),
    ("classes_are_those_of_links", "queues", column("link_classes/packets", 0, lambda _: 1 << 40)),
    ("classes_are_those_of_links", "queues", column("link_classes/paused", 0, late)),
    ("queue_pairs_deliver", "losses", column("queue_pairs/packets", 0, one_more)),
    ("queue_pairs_deliver", "losses", column("receivers/packets", 0, one_more)),
    ("queue_pairs_deliver", "losses", column("queue_pairs/bytes", 0, one_more)),
    ("queue_pairs_deliver", "losses", column("queue_pairs/repeated", 0, one_more)),
    ("series_sum_up_to_links", "queues", column("links_series/utilization", 0, lambda value: value / 2)),
    ("series_sum_up_to_links", "queues", column("links_series/queue", 0, lambda _: 1 << 40)),
    ("series_sum_up_to_links", "queues", swap("links_series/link")),
    ("rates_are_possible", "queues", column("rates_series/sent", 0, lambda _: 1 << 30)),
    ("depths_are_ordered", "queues", column("queue_depths/p50", 0, lambda _: 1 << 40)),
    ("depths_are_ordered", "queues", column("queue_depths/mean", 0, lambda _: 1e12)),
    ("transfers_arrive", "transfers", column("transfers/bytes", 0, lambda value: value - 1)),
    ("transfers_arrive", "transfers", column("transfers_series/bytes", 0, one_more)),
    ("operations_are_in_order", "plain", column("operations/start", 0, late)),
    ("operations_are_in_order", "plain", swap("operations/operation")),
    ("operations_wait_for_what_is_before", "collective", column("dependencies/operation", -1, lambda _: 0)),
]


class Laws(ProgramTest):
    @classmethod
    def setUpClass(cls):
        cls.results = {}

    def of(self, name):
        """A fresh copy of the results of an experiment."""
        if name not in self.results:
            path = self.simulate(self.write(EXPERIMENTS[name], f"{name}.yaml"), output=f"{name}.h5")[1]
            type(self).results[name] = path.read_bytes()
        path = self.folder / f"{name}.copy.h5"
        path.write_bytes(self.results[name])
        return path

    def test_good_results_break_none(self):
        for name in EXPERIMENTS:
            with self.subTest(name):
                self.assertEqual(checks.check_file(self.of(name)), [])

    def test_each_law_fires(self):
        for law, name, change in CORRUPTIONS:
            path = self.of(name)
            with self.subTest(law, experiment=name), h5py.File(path, "r+") as file:
                change(file)
                file.close()
                self.assertIn(law, {found for found, _ in checks.check_file(path)})

    def test_each_law_has_a_corruption(self):
        self.assertEqual(set(checks.LAWS) - {law for law, _, _ in CORRUPTIONS}, set())

    def test_a_file_that_is_cut_off(self):
        path = self.of("plain")
        shutil.copyfile(path, self.folder / "cut.h5")
        with open(self.folder / "cut.h5", "r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with self.assertRaises(OSError):
            checks.check_file(self.folder / "cut.h5")


if __name__ == "__main__":
    unittest.main()
