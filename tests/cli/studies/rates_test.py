#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Series of queue pairs: DCQCN's convergence read from them, their sums, and their rows."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import NETWORK, ProgramTest, table, weft

from weft_results.fairness import jain, jain_over_time

RATE = 100e9
US = 10**6
# Four senders share a link. DCQCN with the paper's parameters, but ten times its additive increase, so that a run is
# short.
DCQCN = {
    "topology": {"kind": "star", "hosts": 5, "link_rate": "100 Gb/s", "link_delay": "1 us"},
    "network": {**NETWORK, "congestion_control": "dcqcn",
                "dcqcn": {"additive_increase": "400 Mb/s"}, "flow_control": "pfc", "buffer": {"size": "16 MB"},
                "ecn": {"kmin": "40 kB", "kmax": "400 kB", "pmax": 0.2}},
    "workload": {"kind": "traffic", "pattern": "pairs", "size": "12 MB", "pairs": [[1, 0], [2, 0], [3, 0], [4, 0]]},
    "output": {"rates": {"interval": "10 us"}},
}


class Rates(ProgramTest):
    def test_dcqcn_converges_to_fair_shares(self):
        _, results = self.simulate(DCQCN)
        rows = table(results, "rates_series")
        first = rows["interval"] == 0
        # All begin at line rate and come down together (Zhu et al. 2015, section 3.3: no slow start).
        self.assertGreater(rows["sent"][first].max() * 8 / 10e-6, 0.25 * RATE)
        # Until the first of them has nothing more to send.
        last = min(rows["time"][rows["host"] == host].max() for host in (1, 2, 3, 4))
        late = (rows["time"] > 0.4 * last) & (rows["time"] <= 0.95 * last)
        shares = {host: rows["sent"][late & (rows["host"] == host)].sum() for host in (1, 2, 3, 4)}
        fair = sum(shares.values()) / 4
        for host, share in shares.items():
            self.assertAlmostEqual(share / fair, 1, delta=0.15, msg=f"host {host}: {shares}")
            # On average the sent rate is the allowed rate.
            allowed = rows["rate"][late & (rows["host"] == host)].mean()
            intervals = (late & (rows["host"] == host)).sum()
            self.assertAlmostEqual(share * 8 / (intervals * 10e-6) / allowed, 1, delta=0.15)
        # Together they fill the link, but for what ECN keeps off the queue.
        self.assertGreater(sum(shares.values()) * 8 / (len(set(rows["interval"][late])) * 10e-6), 0.8 * RATE)
        self.assertEqual(set(rows["window"]), {256 * 1024})  # the window of the network is the only one

    def test_jains_index(self):
        """Of n values of which k are the same and the others are 0: k/n. Of (1, ..., n): (n(n+1)/2)^2 / (n n(n+1)(2n+1)/6), which
        is 3 (n+1) / (2 (2n+1)) (Jain, Chiu, Hawe 1984)."""
        for n in range(1, 9):
            for k in range(1, n + 1):
                self.assertAlmostEqual(jain([7] * k + [0] * (n - k)), k / n)
            self.assertAlmostEqual(jain(range(1, n + 1)), 3 * (n + 1) / (2 * (2 * n + 1)))
        self.assertNotEqual(jain([0, 0]), jain([0, 0]))
        # Two pairs by turns send as much in two intervals, in one of which the index is 1/2. A pair that may send and does not
        # counts.
        pair, interval, sent = [0, 1, 2] * 4, [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3, [5, 0, 0, 0, 5, 0] * 2
        ends, index = jain_over_time(pair, interval, sent, points=2)
        self.assertEqual((ends.tolist(), [round(one, 6) for one in index]), ([1, 3], [0.666667] * 2))
        ends, index = jain_over_time(pair, interval, sent)
        self.assertEqual((ends.tolist(), [round(one, 6) for one in index]), ([0, 1, 2, 3], [0.333333] * 4))
        # A pair that is alone has no index.
        self.assertEqual(jain_over_time([4, 4], [0, 1], [1, 1])[0].tolist(), [])

    def test_four_senders_become_equal(self):
        """Shares within 15 % of their mean, as above, have an index of at least 1 / (1 + 0.15^2) = 0.978: it is 1 / (1 + c^2) with
        the coefficient of variation c."""
        _, results = self.simulate(DCQCN)
        rows = table(results, "rates_series")
        _, index = jain_over_time(rows["host"], rows["interval"], rows["sent"], points=10)
        self.assertGreater(min(index[4:9]), 0.978)

    def test_samples_add_up_to_what_was_sent(self):
        summary, results = self.simulate(DCQCN)
        rows, links = table(results, "rates_series"), table(results, "links")
        for host in (1, 2, 3, 4):
            # A host sends data only; other hosts send ACKs and pauses.
            sent = links["bytes"][(links["from"] == host)].sum()
            self.assertEqual(rows["sent"][rows["host"] == host].sum(), sent)
        self.assertTrue((rows["in_flight"] <= 12e6).all())
        self.assertEqual(rows["time"].max(), min(summary["simulated_time_ps"], (rows["interval"].max() + 1) * 10 * US))
        order = list(zip(rows["interval"].tolist(), rows["host"].tolist(), rows["number"].tolist()))
        self.assertEqual(order, sorted(order))
        self.assertEqual(len(order), len(set(order)))

    def test_portions_and_choice(self):
        whole, results = self.simulate(DCQCN, output="whole.h5")
        portions, other = self.simulate(DCQCN, "--set", "output.rows_in_memory=50", output="portions.h5", ranks=2)
        self.assertEqual(whole["fingerprint"], portions["fingerprint"])
        self.assert_same_results(results, other, ["/manifest/effective_experiment"])
        some, chosen = self.simulate({**DCQCN, "output": {"rates": {"interval": "10 us", "ranks": [3, 2], "to": [0]}}},
                                     output="some.h5")
        self.assertEqual(whole["fingerprint"], some["fingerprint"])
        rows, all_rows = table(chosen, "rates_series"), table(results, "rates_series")
        wanted = (all_rows["host"] == 2) | (all_rows["host"] == 3)
        for column, values in rows.items():
            self.assertEqual(list(values), list(all_rows[column][wanted]), column)
        _, nothing = self.simulate({**DCQCN, "output": {"rates": {"interval": "10 us", "to": [4]}}}, output="none.h5")
        self.assertEqual(len(table(nothing, "rates_series")["host"]), 0)

    def test_refusals(self):
        for rates, network, text in [
                ({"interval": "0 us"}, {}, "above 0"), ({}, {}, "interval"), ({"interval": "1 us", "ranks": [5]}, {}, "'5'"),
                ({"interval": "1 us"}, {"network": NETWORK}, "network.queues: output")]:
            path = self.write({**DCQCN, **network, "output": {"rates": rates}}, "wrong.yaml")
            done = weft("run", path, folder=self.folder)
            self.assertEqual(done.code, 2, done)
            self.assertIn("wrong.yaml:", done.err)
            self.assertIn(text, done.err)


if __name__ == "__main__":
    unittest.main()
