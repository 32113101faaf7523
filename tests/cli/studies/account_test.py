#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
# Time limit: 900 s
"""`weft account` and `accounting:`: bills of materials against machines counted by hand and a published price list,
emissions against LLMCarbon's published cases, energy against the integral of power over time."""

import csv
import json
import pathlib
import sys
import unittest

import h5py

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from weft_testing import EXIT_ENVIRONMENT, EXIT_INPUT, SOURCE, STAR, ProgramTest, start, stop, weft

sys.path.insert(0, str(SOURCE / "scripts"))
from accounting.account import KWH, Account  # noqa: E402
from accounting.bill import Bill, bill_of_topology  # noqa: E402
from accounting.settings import defaults, mean_of_hours, settings_of  # noqa: E402
from accounting.usage import usage_of  # noqa: E402

SECONDS = 120
DAY, YEAR = 86400.0, 365 * 86400.0
TRAINING = {
    "topology": {"kind": "fat_tree", "k": 4, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
    "workload": {"kind": "training", "model": "gpt2", "device": "h100-sxm", "parallelism": {"data": 16},
                 "micro_batch": 1, "sequence_length": 256},
    "output": {"messages": "none", "operations": True, "sampling": "50 us"},
}
COLLECTIVE = {"kind": "collective", "collective": "broadcast", "size": "4 KiB", "ranks": 2}
# Servers of 8 on two levels of 32 leaves and 16 spines of 64 ports each.
TWO_LEVELS = {"kind": "leaf_spine", "leaves": 32, "hosts_per_leaf": 32, "spines": 16, "parallel": 2,
              "link_rate": "400 Gb/s", "link_delay": "500 ns", "server": {"design": "hgx_h100"}}
ONE_LEVEL = {"kind": "rails", "rails": 8, "rail": {**STAR, "hosts": 64},
             "server": {"design": "hgx_h100", "wiring": "rail"}}
# docs.google.com/spreadsheets/d/1Ft3RbeZ-w43kYSiLfYc1vxO41mK5lmJpcPC9GOYHAWc, August 2024: 310,000 $ for a server of 8,
# 50,000 $ for its place, 36,000 $ for a switch of 64 ports. {GPUs: (machine, price of a cable, servers, switches,
# cables, all)}
PRICE_LIST = {
    1024: (TWO_LEVELS, 1280, 39_680_000, 1_728_000, 2_621_440, 50_429_440),
    512: (ONE_LEVEL, 1320, 19_840_000, 288_000, 675_840, 24_003_840),
}


def usage(bill, span, **values):
    """The account of a run that is not simulated, with all accelerators computing."""
    return {"bill": bill.as_data(), "device": None, "span": span, "steps": 1, "job_time": span, "tokens_per_step": None,
            "flop_per_step": None, "compute": bill.accelerators * span, "communication": 0.0, "switch_busy": 0.0,
            **values}


def nothing_but(**figures):
    """Settings with these figures, and all prices, powers and emissions of parts that are not named at 0."""
    zero = {name: "0" for name in defaults().figures if name.endswith(("_price", "_power", "_embodied"))}
    return settings_of({**zero, "availability": "1", **{name: str(value) for name, value in figures.items()}}, "here")


class Bills(ProgramTest):
    def topology(self, topology):
        path = self.write(json.dumps(topology), "machine.yaml")
        return bill_of_topology(json.loads(self.run_weft("topology", path, "--json", "--processes", "1").out))

    def of_run(self, topology):
        _, results = self.simulate({"topology": topology, "workload": COLLECTIVE, "output": {"messages": "none"}})
        used = usage_of(results)
        return used, Bill(**{**used["bill"], "cables": [tuple(cable) for cable in used["bill"]["cables"]]})

    def test_a_two_tier_fat_tree_counted_by_hand(self):
        """32 leaves with 32 NICs each below and 32 links above, two to each of 16 spines: 48 switches of 64 ports,
        1,024 cables to leaves with one end at a switch, and 1,024 to spines with two."""
        used, bill = self.of_run(TWO_LEVELS)
        self.assertEqual(bill, Bill(1024, 0, 128, 1024, {64: 48}, [
            ("leaf-spine", 400 * 10**9, 500_000, 1024, 2048), ("nic", 400 * 10**9, 500_000, 1024, 1024)]))
        self.assertEqual(bill, self.topology(TWO_LEVELS))
        self.assertEqual(bill.cables_by_kind({})["optical"], (2048, 2048 * 4))

    def test_a_published_price_list(self):
        for gpus, (topology, cable, servers, switches, cables, whole) in PRICE_LIST.items():
            with self.subTest(gpus):
                bill = self.topology(topology)
                self.assertEqual(bill.accelerators, gpus)
                settings = settings_of({"switch_port_price": str(36_000 / 64 / 4), "facility_price": "50000",
                                        "optical_cable_price": str(cable / 4)}, "here")
                parts = Account(usage(bill, 1.0), settings).capital_parts
                self.assertEqual(parts["accelerators"] + parts["servers"] + parts["nics"], servers)
                self.assertEqual((parts["switches"], parts["cables"]), (switches, cables))
                self.assertEqual(sum(parts.values()), whole)

    def test_runs_and_machines_have_the_same_bill(self):
        machines = {
            "dragonfly": {"kind": "dragonfly", "p": 2, "a": 4, "h": 2, "g": 9, "link_rate": "100 Gb/s",
                          "link_delay": "10 ns"},
            "torus": {"kind": "torus", "dims": [4, 4], "link_rate": "100 Gb/s", "link_delay": "100 ns"},
            "servers": {"kind": "star", "hosts": 16, "link_rate": "400 Gb/s", "link_delay": "15 ns",
                        "server": {"design": "dgx_a100"}},
            "one server": {"kind": "server", "design": "hgx_h100"},
            "storage": {**STAR, "hosts": 6, "storage_hosts": [1, 4]},
        }
        for name, topology in machines.items():
            with self.subTest(name):
                bill = self.of_run(topology)[1]
                self.assertEqual(bill, self.topology(topology))
        self.assertEqual((bill.accelerators, bill.storage, bill.nics, bill.switches), (4, 2, 6, {6: 1}))

    def test_lengths(self):
        """5 ns for a metre; a value of cable_lengths replaces it; without length there is no cable."""
        delays = (0, 15_000, 15_001, 150_000, 500_000, 500_001)
        bill = Bill(4, 0, 0, 4, {4: 1}, [("host", 10**11, delay, 1, 1) for delay in delays])
        self.assertEqual({kind: count for kind, (count, _) in bill.cables_by_kind({}).items()},
                         {"copper": 1, "active": 2, "optical": 1, "long": 1})
        self.assertEqual(bill.cables_by_kind({"host": 2.0})["copper"], (6, 6.0))


class Emissions(unittest.TestCase):
    # LLMCarbon (Faiz et al., ICLR 2024, arXiv:2309.14393), table 4 as in data/database.csv of
    # github.com/SotaroKaneda/MLCarbon, commit b54d8fe: {model: parameters that a token uses, tokens (both 10^9),
    # kg/kWh, PUE, W of a device with its share of the system, peak TFLOP/s, efficiency, devices, t of CO2 as told}
    OPERATIONAL = {
        "T5": (11, 600, 0.545, 1.12, 310, 123, 0.37, 512, 46.7),
        "GPT3": (175, 300, 0.429, 1.1, 330, 125, 0.197, 10000, 552.1),
        "GShard": (2.3, 1000, 0.177, 1.09, 288, 123, 0.39, 1000, 4.3),
        "Switch": (7.41, 2000, 0.33, 1.1, 245, 123, 0.28, 1000, 59.1),
        "XLM": (0.55, 7000, 0.413, 1.1, 342, 125, 0.212, 512, 39),
    }
    # Its largest error, as the paper says (section 5), and that of XLM in table 4.
    LARGEST_ERROR, ERROR_OF_XLM = 0.082, -0.0354
    # Table 5 as in data/table5.csv, commit 5883ea6: kg of a part, parts, t of CO2 for the 20.4 days of XLM in 5 years.
    EMBODIED = {"V100": (9.78, 512, "0.056"), "CPU": (1.47, 64, "0.0011"), "SSD": (768, 64, "0.55"),
                "DRAM": (102.4, 64, "0.073")}

    def test_operational_emissions_of_llmcarbon(self):
        for name, row in self.OPERATIONAL.items():
            parameters, tokens, intensity, pue, watts, peak, efficiency, devices, told = row
            with self.subTest(name):
                # model.py, training_co2eq(): 6 P D FLOP at the peak times efficiency; MWh times PUE times intensity.
                flop = 6 * parameters * 1e9 * tokens * 1e9
                days = flop / devices / (peak * efficiency) / 1e12 / 3600 / 24
                expected = watts * devices * days / 1e6 * 24 * pue * intensity
                settings = nothing_but(accelerator_power=watts, compute_share=1, pue=pue,
                                       grid_intensity=1000 * intensity)
                used = usage(Bill(devices, 0, 0, 0), days * DAY, flop_per_step=flop)
                figures = Account(used, settings).figures
                self.assertAlmostEqual(figures["run_operational_carbon"] / 1e6 / expected, 1, 12)
                self.assertEqual(figures["run_embodied_carbon"], 0)
                self.assertLessEqual(abs(expected / told - 1), self.LARGEST_ERROR)
                self.assertAlmostEqual(figures["cci"] * flop / 1e24 / expected, 1, 12)
                if name == "XLM":
                    self.assertAlmostEqual(figures["run_carbon"] / 1e6 / told - 1, self.ERROR_OF_XLM, 4)

    def test_embodied_emissions_of_llmcarbon(self):
        for name, (each, count, printed) in self.EMBODIED.items():
            with self.subTest(name):
                settings = nothing_but(accelerator_embodied=each, lifetime=5)
                figures = Account(usage(Bill(count, 0, 0, 0), 20.4 * DAY), settings).figures
                self.assertEqual(f"{figures['run_embodied_carbon'] / 1e6:.{len(printed) - 2}f}", printed)

    def test_interest_and_hours(self):
        # 100 $ over 2 years at 10 %: 57.619 $ a year (capital recovery factor, 0.1 / (1 - 1.1^-2)).
        settings = nothing_but(accelerator_price=100, lifetime=2, interest=0.1, maintenance=0, pue=1)
        figures = Account(usage(Bill(1, 0, 0, 0), YEAR), settings).figures
        self.assertAlmostEqual(figures["run_capital_cost"], 100 * 0.1 / (1 - 1.1**-2), 9)
        hourly = [100.0] * 12 + [300.0] * 12
        self.assertAlmostEqual(mean_of_hours(hourly, 11.0, 2.0), 200)
        self.assertAlmostEqual(mean_of_hours(hourly, 23.5, 1.0), 200)
        self.assertAlmostEqual(mean_of_hours(hourly, 6.0, 48 + 6), (48 * 200 + 6 * 100) / 54)
        self.assertEqual(mean_of_hours(hourly, 12.0, 0), 300)
        self.assertEqual(mean_of_hours(hourly, 11.5, 1e-12), 100)  # a run of some nanoseconds
        self.assertEqual(mean_of_hours(hourly, 24.0, 0.5), 100)

    def test_defaults_are_in_order_and_have_sources(self):
        """Each has three values, in which the result grows or falls, and names their source."""
        known = defaults()
        for name, row in known.figures.items():
            with self.subTest(name):
                falls = name in ("lifetime", "availability")
                self.assertEqual([row["low"], row["mid"], row["high"]], sorted(row.values(), reverse=falls))
                self.assertTrue(known.units[name] and known.descriptions[name] and known.sources[name])
        estimates = [Account(usage(Bill(8, 0, 1, 8, {8: 1}, [("nic", 4 * 10**11, 500_000, 8, 8)]), 10.0),
                             settings_of(None, ""), estimate).figures for estimate in ("low", "mid", "high")]
        for name in ("run_cost", "run_energy", "run_carbon"):
            self.assertEqual([one[name] for one in estimates], sorted(one[name] for one in estimates))


class Runs(ProgramTest):
    def account(self, results, *words):
        return json.loads(self.run_weft("account", results, "--json", *words).out)

    def test_a_run_that_was_cut_short_has_no_figures_of_a_step(self):
        _, results = self.simulate({**TRAINING, "simulation": {"until": "1 us"}})
        found = self.account(results, "--set", "training_tokens=1e9")
        self.assertIsNone(found["steps"])
        figures = found["mid"]["figures"]
        self.assertGreater(figures["run_energy"], 0)
        for name in ("energy_per_step", "energy_per_token", "tcdp", "cci", "training_time", "training_energy"):
            self.assertIsNone(figures[name], name)
        self.assertIs(found["complete"], False)
        self.assertIn("INCOMPLETE: the run was interrupted or cut short", self.run_weft("account", results).out)

    def test_energy_is_the_integral_of_power(self):
        _, results = self.simulate(TRAINING)
        self.run_weft("account", results, "--series", "power.csv")
        with open(self.folder / "power.csv", newline="") as file:
            rows = list(csv.reader(file))
        heads, rows = rows[0], rows[1:]
        edges = [int(row[0]) for row in rows]
        self.assertGreater(len(rows), 20)
        with h5py.File(results) as file:
            self.assertEqual((edges[0], edges[-1]), (0, file.attrs["simulated_time"]))
        found = self.account(results)["mid"]
        for part, joules in found["energy"].items():
            with self.subTest(part):
                column = heads.index(f"{part}_W")
                integral = sum(float(row[column]) * (after - before) * 1e-12
                               for row, before, after in zip(rows, edges, edges[1:]))
                self.assertAlmostEqual(integral, joules, delta=1e-7 * sum(found["energy"].values()))
        total = sum(float(row[1]) * (after - before) * 1e-12 for row, before, after in zip(rows, edges, edges[1:]))
        self.assertAlmostEqual(total / found["figures"]["run_energy_of_machine"], 1, 7)
        self.assertAlmostEqual(total * 1.2 / found["figures"]["energy_per_step"], 1, 7)  # PUE of the middle estimate

    def test_power_of_a_run_that_was_cut_short(self):
        """Operations that had not ended have no rows; the ranks' times count them, and so does the power: a computation
        of 1 ms, and a message that takes longer, until 300 us and 3 ms."""
        operations = [{"rank": "all", "compute": "1 ms"}, {"rank": 0, "send": "500 MB", "to": 1},
                      {"rank": 1, "recv": "500 MB", "from": 0}]
        text = {"topology": {**STAR, "hosts": 2}, "workload": {"kind": "program", "ranks": 2, "operations": operations},
                "output": {"operations": True}}
        for until, states in (("300 us", [[300, 1400, 0]]), ("3 ms", [[1000, 1400, 0], [2000, 0, 700]])):
            _, results = self.simulate({**text, "simulation": {"until": until}})
            energy = self.account(results, "--series", "power.csv")["mid"]["energy"]
            with open(self.folder / "power.csv", newline="") as file:
                heads, *rows = csv.reader(file)
            columns = [heads.index("compute_W"), heads.index("communication_W")]
            found = [[(int(after[0]) - int(before[0])) // 10**6, *(float(before[at]) for at in columns)]
                     for before, after in zip(rows, rows[1:])]
            self.assertEqual(found, states)
            for state, column in (("compute", 1), ("communication", 2)):
                self.assertAlmostEqual(sum(row[0] * 1e-6 * row[column] for row in states), energy[state], 9)

    def test_the_accelerator_of_several_jobs(self):
        """Jobs name the device, one in the experiment and one in a file: 400 W while an A100 computes, as in a job that
        runs alone. Jobs with different devices do not say what the machine has."""
        job = {"kind": "program", "ranks": 2, "operations": [{"rank": "all", "compute": "1 ms"}]}
        self.write(json.dumps({"workload": {**job, "device": "a100-sxm"}}), "job.yaml")
        for device, watts in (("a100-sxm", 400), ("b200-sxm", 700)):
            workload = {"kind": "jobs", "jobs": [{"workload": {**job, "device": device}}, {"workload": "job.yaml"},
                                                 {"workload": COLLECTIVE}]}
            _, results = self.simulate({"topology": {**STAR, "hosts": 6}, "workload": workload})
            found = self.account(results)
            self.assertEqual(found["accelerator"], device if watts == 400 else "h100-sxm")
            self.assertAlmostEqual(found["mid"]["energy"]["compute"], 4 * 1e-3 * watts, 12)
            self.assertEqual(self.account(results, "--set", "accelerator=v100-sxm")["accelerator"], "v100-sxm")

    def test_states_times_powers(self):
        """The energy of a step, from /ranks, /links and the figures: 16 GPUs on 20 switches of 4 ports, in two servers."""
        summary, results = self.simulate(TRAINING)
        figures = {name: row["mid"] for name, row in defaults().figures.items()}
        with h5py.File(results) as file:
            span = file.attrs["simulated_time"] * 1e-12
            compute, exposed = (file[f"ranks/{name}"][:].sum() * 1e-12 for name in ("compute", "exposed"))
            busy = sum(time for time, name in zip(file["links/busy"][:], file["links/from_name"].asstr()[:])
                       if not name.startswith("host")) * 1e-12
        idle = 16 * span - compute - exposed
        gpus = 700 * (compute + 0.5 * exposed + 0.15 * idle)
        ports, port = 80, 4 * figures["switch_port_power"]
        switches = port * (ports * span * figures["switch_idle_share"] + busy * (1 - figures["switch_idle_share"]))
        optics = 48 * 2 * 4 * figures["optical_end_power"] * span
        expected = gpus + switches + optics + (2 * figures["server_power"] + 16 * figures["nic_power"]) * span
        found = self.account(results, "--set", "training_tokens=1e9", "--set", "grid_intensity=FR")
        # The machine does not say how many servers it has: the same number counts in prices and is told.
        self.assertEqual((found["bill_of_materials"]["servers"], found["complete"]), (2, True))
        self.assertEqual(self.account(results, "--set", "accelerators_per_server=4")["bill_of_materials"]["servers"], 4)
        self.assertEqual((found["tokens_per_step"], found["steps"]), (16 * 256, 1))
        mid = found["mid"]["figures"]
        self.assertAlmostEqual(mid["run_energy_of_machine"] / expected, 1, 9)
        self.assertAlmostEqual(mid["energy_per_token"] / (1.2 * expected / 4096), 1, 9)
        self.assertAlmostEqual(mid["training_energy"] / (1.2 * expected / 4096 * 1e9), 1, 9)
        self.assertAlmostEqual(mid["run_operational_carbon"] / (1.2 * expected / KWH * 56), 1, 9)
        self.assertAlmostEqual(mid["tcdp"] / (mid["carbon_per_step"] * span), 1, 9)
        text = self.run_weft("account", results, "--set", "grid_intensity=FR").out
        self.assertRegex(text, r"\n +tcdp +[0-9.e+-]+ g s ")
        self.assertRegex(text, r"\n +cci +[0-9.e+-]+ g/EFLOP ")
        self.assertAlmostEqual(mid["cci"] / (mid["carbon_per_step"] / found["flop_per_step"] * 1e18), 1, 9)
        price = (16 * 27500 + 2 * (90000 + 25000) + 320 * figures["switch_port_price"] +
                 192 * figures["optical_cable_price"])
        self.assertAlmostEqual(mid["machine_cost"], price)
        self.assertAlmostEqual(mid["run_capital_cost"] / (price * span / (5 * YEAR * 0.9)), 1, 9)

    def test_the_training_of_a_job_of_which_some_copies_are_simulated(self):
        """2 of 8 data-parallel copies: a step has 8 sequences of 256 tokens, and the training costs 4 times as much as
        that of the simulated copies."""
        workload = {**TRAINING["workload"], "parallelism": {"data": 8}, "symmetry": {"data": 2}, "global_batch": 8}
        _, results = self.simulate({"topology": {**STAR, "hosts": 2}, "network": {"fidelity": "ideal"},
                                    "workload": workload})
        by_tokens = self.account(results, "--set", f"training_tokens={1000 * 8 * 256}")
        figures = by_tokens["mid"]["figures"]
        self.assertEqual((by_tokens["training_steps"], by_tokens["tokens_per_step"]), (1000, 2 * 256))
        with h5py.File(results) as file:
            span = file.attrs["simulated_time"] * 1e-12
        self.assertAlmostEqual(figures["training_time"] / (1000 * span), 1, 12)
        self.assertAlmostEqual(figures["training_cost"] / (4 * 1000 * figures["run_cost"]), 1, 12)
        self.assertAlmostEqual(figures["cost_per_token"] / (figures["run_cost"] / 512), 1, 12)
        self.assertEqual(self.account(results, "--set", "training_steps=1000")["mid"]["figures"], figures)

    def test_jobs_that_share_hosts(self):
        """A host is one accelerator, also with ranks of several jobs: it computes or communicates for at most the run,
        and its idle time is never below 0. Two hosts of three jobs compute for 1 ms."""
        job = {"kind": "program", "ranks": 2, "operations": [{"rank": "all", "compute": "1 ms"}]}
        jobs = [{"name": name, "share": True, "placement": {"first": 0}, "workload": job} for name in "abc"]
        text = {"topology": {**STAR, "hosts": 2}, "workload": {"kind": "jobs", "jobs": jobs}, "output": {"operations": True}}
        _, results = self.simulate(text)
        energy = self.account(results, "--series", "power.csv")["mid"]["energy"]
        self.assertEqual([round(energy[state], 9) for state in ("compute", "communication", "idle")],
                         [round(2 * 700 * 1e-3, 9), 0, 0])
        with open(self.folder / "power.csv", newline="") as file:
            heads, first, _ = csv.reader(file)
        self.assertEqual([float(first[heads.index(f"{state}_W")]) for state in ("compute", "communication", "idle")],
                         [1400, 0, 0])
        # Ranks that write a checkpoint meanwhile: their hosts compute all the time.
        jobs[1]["workload"] = {"kind": "checkpoint", "ranks": 2, "size": "8 MB"}
        _, results = self.simulate({**text, "topology": {**STAR, "hosts": 4, "storage_hosts": 2}})
        energy = self.account(results)["mid"]["energy"]
        self.assertEqual([round(energy[state], 9) for state in ("compute", "communication", "idle")],
                         [round(2 * 700 * 1e-3, 9), 0, 0])

    def test_the_section_of_an_experiment(self):
        hours = [100] * 24
        text = {**TRAINING, "accounting": {"pue": 1, "grid_intensity": hours, "accelerator": "a100-sxm",
                                           "electricity_price": {"low": 0, "mid": 1, "high": 2}}}
        _, results = self.simulate(text)
        found = self.account(results)
        self.assertEqual(found["mid"]["figures"]["run_energy"], found["mid"]["figures"]["run_energy_of_machine"])
        kwh = found["mid"]["figures"]["run_energy"] / KWH
        self.assertAlmostEqual(found["mid"]["figures"]["run_operational_carbon"] / (100 * kwh), 1, 12)
        with h5py.File(results) as file:
            compute = file["ranks/compute"][:].sum() * 1e-12
        self.assertAlmostEqual(found["high"]["energy"]["compute"], 400 * compute)
        # A file of figures instead of the run's.
        self.write("accounting: {pue: 2}\n", "other.yaml")
        self.assertAlmostEqual(self.account(results, "--accounting", "other.yaml")["low"]["figures"]["run_energy"] /
                               self.account(results, "--accounting", "other.yaml")["low"]["figures"]
                               ["run_energy_of_machine"], 2, 12)
        # The run is the same without it, and costs the same on any number of processes.
        summary, results = self.simulate(text, output="two.h5", ranks=2)
        self.assertEqual(self.account(results), found)
        self.assertEqual(self.simulate(TRAINING)[0]["fingerprint"], summary["fingerprint"])

    def test_text(self):
        _, results = self.simulate(TRAINING)
        text = self.run_weft("account", results, "--set", "training_steps=1000").out
        self.assertNotIn("INCOMPLETE", text)
        for part in ("accelerators", "switches of 4 ports", "cables up to 100 m", "low", "energy_per_token",
                     "training_cost", "kW"):
            self.assertIn(part, text)

    def test_full_device(self):
        _, path = self.simulate(TRAINING)
        with open("/dev/full", "wb") as full:
            process = start(["account", path], folder=self.folder, stdout=full)
            _, err = process.communicate(timeout=100)
            stop(process)
        self.assertEqual((process.returncode, err),
                         (EXIT_ENVIRONMENT, "weft: cannot write 'standard output': No space left on device\n"))

    def test_no_input_is_replaced(self):
        _, path = self.simulate(TRAINING)
        self.assert_kept(path, "is an input", "account", path, "--series", path)

    def test_what_is_wrong_is_told_with_its_line(self):
        wrong = {
            "pui: 1": ["'pui'", "did you mean 'pue'?"],
            "pue: -1": ["'-1'"],
            "pue: {low: 1, mid: 2}": ["'high'"],
            "estimate: most": ["'most'", "low, mid, high"],
            "grid_intensity: FI_": ["'FI_'"],
            "grid_intensity: [1, 2]": ["24"],
            "accelerator: h100": ["did you mean 'h100-sxm'?"],
            "start_hour: 25": ["25"],
            "lifetime: 0": ["lifetime", "expected a number above 0"],
            "availability: {low: 1, mid: 0, high: 1}": ["availability", "expected a number above 0"],
            "cable_lengths: {host: far}": ["'far'"],
        }
        refused = ("lifetime=0", "availability=0", "lifetime={low: 1, mid: 0, high: 2}", "accelerators_per_server=0",
                      "accelerators_per_server=1.5", "pue=0.5", "pue={low: 1, mid: 0.9, high: 2}")
        _, results = self.simulate({**TRAINING, "output": {"messages": "none"}})
        for line, parts in wrong.items():
            with self.subTest(line):
                text = f"topology: {json.dumps(STAR)}\nworkload: {json.dumps(COLLECTIVE)}\naccounting:\n  {line}\n"
                path = self.write(text, "wrong.yaml")
                done = weft("run", path, folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                for part in ("wrong.yaml:4: ", *parts):
                    self.assertIn(part, done.err)
                self.write(f"experiment: wrong.yaml\naccounting:\n  {line}\n", "study.yaml")
                done = weft("sweep", "study.yaml", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertIn("wrong.yaml:4: ", done.err)
                for text in (f"# figures\n{line}\n", f"topology: 1\naccounting: {{{line}}}\n"):
                    done = weft("account", results, "--accounting", self.write(text, "figures.yaml"), folder=self.folder)
                    self.assertEqual(done.code, EXIT_INPUT, done)
                    for part in ("figures.yaml:2: ", *parts):
                        self.assertIn(part, done.err)
                key, _, value = line.partition(": ")
                done = weft("account", results, "--set", f"{key}={value}", folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
        # Only a machine tells which classes of links there are.
        text = f"topology: {json.dumps(STAR)}\nworkload: {json.dumps(COLLECTIVE)}\naccounting:\n  cable_lengths: {{hosts: 3}}\n"
        done = weft("run", self.write(text, "wrong.yaml"), folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("wrong.yaml:4: ", done.err)
        self.assertIn("'hosts'; expected one of host", done.err)
        done = weft("account", results, "--set", "cable_lengths={hosts: 3}", folder=self.folder)
        self.assertEqual(done.code, EXIT_INPUT, done)
        self.assertIn("no link of the machine is of class 'hosts'", done.err)
        for setting in refused:
            done = weft("account", results, "--set", setting, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(f"--set {setting}: ", done.err)
        _, endless = self.simulate({**TRAINING, "accounting": {"lifetime": 7}}, output="endless.h5")
        with h5py.File(endless, "r+") as file:  # as earlier versions accepted it
            text = file["manifest/run/effective_experiment"][()].decode()
            self.assertIn("lifetime: 7", text)
            del file["manifest/run/effective_experiment"]
            file["manifest/run/effective_experiment"] = text.replace("lifetime: 7", "lifetime: 0")
        for command in ("account", "report"):
            done = weft(command, endless, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("lifetime: found '0'; expected a number above 0", done.err)
        _, other = self.simulate({"topology": STAR, "workload": COLLECTIVE}, output="no_training.h5")
        for words in (["training_tokens=1e9"], ["training_tokens=1e9", "tokens_per_step=0"]):
            done = weft("account", other, *(word for setting in words for word in ("--set", setting)), folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn("`accounting.training_tokens`: found without the tokens of a step", done.err)
        for more in ("training_steps=5", "tokens_per_step=2e8"):
            found = self.account(other, "--set", "training_tokens=1e9", "--set", more)
            self.assertEqual(found["training_steps"], 5)
        (self.folder / "cut.h5").write_bytes(results.read_bytes()[:5000])
        for name, word in (("wrong.yaml", "not an HDF5 file"), ("cut.h5", "cut off"), ("none.h5", "No such file")):
            done = weft("account", name, folder=self.folder)
            self.assertEqual(done.code, EXIT_INPUT, done)
            self.assertIn(word, done.err)
            self.assertEqual(len(done.err.splitlines()), 1, done)
        done = weft("account", results, "--series", "x.csv", folder=self.folder)
        self.assertEqual((done.code, "output.operations" in done.err), (EXIT_INPUT, True), done)
        with h5py.File(self.folder / "other.h5", "w") as file:
            file.attrs.update({"format": "weft-study", "format_version": 1})
        done = weft("account", "other.h5", folder=self.folder)
        self.assertEqual((done.code, "it is the table of a study" in done.err), (EXIT_INPUT, True), done)

    def test_ready_made_figures_are_in_the_documentation(self):
        """docs/reference/accounting.md has each figure with its values."""
        page = (SOURCE / "docs/reference/accounting.md").read_text()
        for name, row in defaults().figures.items():
            values = " / ".join(f"{row[estimate]:g}" for estimate in ("low", "mid", "high"))
            self.assertIn(f"| `{name}` | {values} |", page)


if __name__ == "__main__":
    unittest.main()
