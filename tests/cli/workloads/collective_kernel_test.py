#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The share of thread blocks in a collective's time, by hand from collectives/kernels/h100.yaml."""

import itertools
import pathlib
import shutil
import sys
import unittest
import unittest.mock

import yaml

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing
from weft_testing import EXIT_INPUT, NETWORK, SOURCE, WEFT, ProgramTest, table, weft

KERNEL = yaml.safe_load((SOURCE / "collectives/kernels/h100.yaml").read_text())
LEVELS = ("low", "mid", "high")


def at_level(value, level="mid"):
    return value[LEVELS.index(level)] if isinstance(value, list) else value


def microseconds(value, level="mid"):
    return round(float(at_level(value, level).removesuffix(" us")) * 1e6)  # ps


def rate(value):
    return float(at_level(value).split()[0]) * 1e9  # B/s


def server(kernel=None, **more):
    return {
        "topology": {"kind": "server", "design": "hgx_h100"},
        "network": NETWORK,
        "workload": {"kind": "collective", "collective": "all_gather", "algorithm": "nccl", "ranks": 2, "size": "16 B",
                     **({"collective_kernel": kernel} if kernel else {}), **more},
        "simulation": {"seed": 1},
    }  # fmt: skip


class CollectiveKernel(ProgramTest):
    def time(self, text):
        summary, results = self.simulate(text, output=f"{len(list(self.folder.iterdir()))}.h5")
        return summary["collectives"][0]["time_ps"], results

    def test_smallest_all_gather(self):
        # One channel, LL: launch; the line is written in a trip, is on its way after the message's latency, and is read
        # in another trip. Copying the own block costs nothing beside sending it.
        alone, _ = self.time(server("none"))
        ll = KERNEL["ll"]
        expected = microseconds(KERNEL["launch"]) + 2 * microseconds(ll["trip"]) + microseconds(ll["message"])
        self.assertEqual(self.time(server("h100"))[0], alone + expected)
        # NCCL's choice on this server has it by itself; a named algorithm needs the key.
        self.assertEqual(self.time(server())[0], alone + expected)
        named = {"algorithm": "ring", "channels": 1, "protocol": "ll"}
        self.assertEqual(self.time(server(**named))[0], alone)
        self.assertEqual(self.time(server("h100", **named))[0], alone + expected)

    def test_large_messages(self):
        # Simple, all channels alike: launch, second channel, large buffers; the first slice goes at a channel's share of the
        # link and arrives later by its latency; the last one is stored at the thread block's own rate.
        _, fast = self.time(server("none", size="64 MiB"))
        _, slow = self.time(server("h100", size="64 MiB"))
        messages = [table(results, "messages") for results in (fast, slow)]
        first = [int(of["issued"].min()) for of in messages]
        slice_bytes = int(messages[1]["bytes"][messages[1]["issued"].argmin()])
        channels = 24  # twelve rings of 30 GB/s that the search finds in the server, each twice
        share = int(rate(KERNEL["link_rate"]) * 8) // channels  # b/s
        handled = -(-slice_bytes * 8 * 10**12 // share)
        expected = sum(microseconds(KERNEL[key]) for key in ("launch", "second_channel", "large_buffers"))
        expected += microseconds(KERNEL["simple"]["step"]) + handled + microseconds(KERNEL["simple"]["message"])
        self.assertAlmostEqual(first[1] - first[0], expected, delta=2)

    def test_all_to_all(self):
        # 8 MiB to the other GPU in 16 parts of one chunk, each on a channel of its own. Of a thread block's 20 warps ten send
        # and nine receive (NCCL src/device/sendrecv.h): a sender's take what they need more than a sixteenth of the link does;
        # then the message is on its way; then the receiver's warps store it.
        exchange = {"collective": "all_to_all", "size": "16 MiB"}
        alone, _ = self.time(server("none", **exchange))
        warp, link = (rate(KERNEL[key]) for key in ("warp_rate", "link_rate"))
        chunk = 512 << 10
        expected = sum(microseconds(KERNEL[key]) for key in ("launch", "second_channel", "pair_buffers"))
        expected += 2 * microseconds(KERNEL["simple"]["step"]) + microseconds(KERNEL["simple"]["message"])
        expected += 1e12 * chunk * (max(0, 1 / (10 * warp) - 16 / link) + 1 / (9 * warp))
        self.assertAlmostEqual(self.time(server("h100", **exchange))[0] - alone, expected, delta=1e6)

    def test_all_to_all_of_64(self):
        # 64 messages of 1 MiB, the own one included, on 32 channels: a block works on two at a time, which share what nine warps
        # receive of one (NCCL src/device/sendrecv.h). They begin when the first chunks are there, over 900 GB/s of which 8 of 10
        # flits are data. Messages one after another would take twice as long.
        kernel = yaml.safe_load((SOURCE / "collectives/kernels/b200.yaml").read_text())
        text = server(collective="all_to_all", ranks=64, size="64 MiB")
        text["topology"]["design"] = "gb200_nvl72"
        text["network"] = NETWORK | {"mtu": "32 KiB", "header": "496 B", "wire_overhead": "160 B"}
        copied = 1e12 * (1 << 20) / (9 / 2 * rate(kernel["warp_rate"]))
        once = sum(microseconds(kernel[key]) for key in ("launch", "second_channel", "pair_buffers"))
        first_chunks = 1e12 * 64 * (512 << 10) / (0.8 * 900e9)
        time, _ = self.time(text)
        self.assertGreater(time, once + copied)
        self.assertLess(time, once + copied + first_chunks + 10e6)

    def test_small_all_to_all(self):
        # Up to NCCL 2.28 512 KiB to each of 2 GPUs use LL, in 16 parts of one chunk of 32 KiB. Each thread of nine warps takes a line of
        # 8 B in a trip while ten warps send the next ones (NCCL src/device/prims_ll.h, sendrecv.h), after the first trip and its message.
        exchange = {"collective": "all_to_all", "size": "1 MiB", "nccl_version": "2.28"}
        alone, _ = self.time(server("none", **exchange))
        ll = KERNEL["ll"]
        expected = sum(microseconds(value) for value in (KERNEL["launch"], KERNEL["second_channel"], ll["trip"], ll["message"]))
        expected += (32 << 10) * microseconds(ll["full_trip"]) / (9 * 32 * 8)
        self.assertAlmostEqual(self.time(server("h100", **exchange))[0] - alone, expected, delta=1e4)
        # One byte more to each, and they use Simple.
        more = exchange | {"size": f"{(1 << 20) + 2} B"}
        once = microseconds(KERNEL["pair_buffers"])
        self.assertGreater(self.time(server("h100", **more))[0], alone + once)

    def test_ranges(self):
        # Each level takes its own values: of the smallest all-gather launch, two trips and the latency of a message.
        alone, _ = self.time(server("none"))
        ll = KERNEL["ll"]
        for level in LEVELS:
            constants = (KERNEL["launch"], ll["trip"], ll["trip"], ll["message"])
            expected = sum(microseconds(value, level) for value in constants)
            self.assertEqual(self.time(server(kernel_constants=level))[0], alone + expected, level)
        # In each size and kind that uses other constants low is not above mid, and that not above high.
        for more in ({"size": "64 MiB"}, {"size": "16 MiB", "collective": "all_to_all"}):
            times = [self.time(server(kernel_constants=level, **more))[0] for level in LEVELS]
            self.assertLess(times[0], times[1], more)
            self.assertLess(times[1], times[2], more)

    def test_large_trees(self):
        # Over two servers of eight a tree's channels have what NCCL counts for each of the eight of its search, on the bus: what a
        # call of 1 GiB has more than one of 512 MiB. Without kernels NVLink is the limit, which carries each byte up and down.
        text = server("h100", algorithm="nccl_tree", collective="all_reduce", ranks=16, protocol="simple")
        text["topology"] = {"kind": "leaf_spine", "leaves": 8, "hosts_per_leaf": 2, "spines": 4, "link_rate": "400 Gb/s", "link_delay": "100 ns",
                            "server": {"design": "hgx_h100", "wiring": "rail", "pxn": True}}  # fmt: skip
        text["network"] = {**NETWORK, "mtu": "32 KiB", "header": "496 B", "wire_overhead": "160 B"}

        def bus_rate(**more):
            times = [self.time({**text, "workload": {**text["workload"], "size": size, **more}})[0] for size in ("512 MiB", "1 GiB")]
            return 2 * 15 / 16 * (512 << 20) / (times[1] - times[0]) * 1e12

        counted = 8 * rate(KERNEL["simple"]["trees"]["two_servers"]) * 15 / 16
        self.assertAlmostEqual(bus_rate() / counted, 1, delta=0.01)
        self.assertGreater(bus_rate(collective_kernel="none"), 1.2 * counted)

    def test_every_constant_has_a_range(self):
        for file in sorted((SOURCE / "collectives").glob("*s/*.yaml")):
            if file.parent.name in ("selections", "tuners"):  # rules and a library's own numbers, not measured ones
                continue
            values = yaml.safe_load(file.read_text())
            flat = [one for at in values.values() for one in (at.values() if isinstance(at, dict) else [at])]
            # Limits of trees are NCCL's own numbers.
            constants = [one for one in flat if not isinstance(one, (bool, dict)) and not str(one).endswith(" B")]
            self.assertGreater(len(constants), 6, file)
            for one in constants:
                self.assertEqual(len(one) if isinstance(one, list) else one, 3, file)

    def test_wrong_ranges(self):
        """In a copy of the program with changed data: the file, its line, and the errors of its values."""
        data = self.folder / "share/weft"
        (self.folder / "bin").mkdir()
        data.mkdir(parents=True)
        program = shutil.copy2(WEFT, self.folder / "bin/weft")
        for room in ("topologies", "workloads"):
            (data / room).symlink_to(SOURCE / room)
        shutil.copytree(SOURCE / "collectives", data / "collectives")
        file = data / "collectives/kernels/h100.yaml"
        lines = file.read_text().splitlines()
        path = self.write(server())
        for key, value, pattern in [
            ("launch", "[4 us, 5 us]", "found 2 values; expected one, or .low, mid, high."),
            ("launch", "[4 us, 6 us, 5 us]", "found 5 us after 6 us; expected .low, mid, high.*, where low.* times rise, rates fall"),
            ("link_rate", "[370 GB/s, 380 GB/s, 360 GB/s]", "found 380 GB/s after 370 GB/s; expected .low, mid, high."),
        ]:  # fmt: skip
            with self.subTest(value):
                at = next(i for i, line in enumerate(lines) if line.startswith(f"{key}:"))
                file.write_text("\n".join(itertools.chain(lines[:at], [f"{key}: {value}"], lines[at + 1:])) + "\n")
                with unittest.mock.patch.object(weft_testing, "WEFT", program):
                    done = weft("run", path, folder=self.folder)
                self.assertEqual(done.code, EXIT_INPUT, done)
                self.assertRegex(done.err, rf"h100\.yaml:{at + 1}: `{key}[^`]*`: {pattern}")

    def test_unknown(self):
        wrong = weft("run", self.write(server("h10")), folder=self.folder)
        self.assertEqual(wrong.code, EXIT_INPUT, wrong)
        self.assertIn("unknown collective_kernel 'h10'", wrong.err)
        self.assertIn("h100", wrong.err)


if __name__ == "__main__":
    unittest.main()
