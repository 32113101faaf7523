# SPDX-License-Identifier: GPL-2.0-only
"""`weft import flight-recorder`: dumps by the recorder's keys (tests/flight_files.py), with times set by hand."""

# Time limit: 300 s

import pathlib
import pickle
import pickletools
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing
from flight_files import Dump
from import_testing import ImportTest

MIB = 1 << 20


class FlightRecorder(ImportTest):
    FORMAT = "flight-recorder"

    def dumps(self, *dumps, **options):
        for path in (self.folder / "dumps").glob("*"):
            path.unlink()
        for dump in dumps:
            dump.write(self.folder / "dumps", **options)

    def collectives(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return sorted((start / 10**6, end / 10**6, int(size)) for start, end, size in zip(rows["start"], rows["end"],
                                                                                           rows["bytes"]))

    def step(self, rank, took=None):
        """Calls 0, 100 and 1,100 us after the first one, of 4 MiB, 4 B and 4 B."""
        dump = Dump(rank, 2)
        for at, elements in ((50, MIB), (150, 1), (1150, 1)):
            dump.call("all_reduce", at, [[elements]], took=took)
        return dump

    def test_calls_of_a_kind_that_is_not_known(self):
        """They are listed; those of other backends have their name before the colon."""
        dumps = [self.step(rank) for rank in range(2)]
        for dump in dumps:
            for entry in dump.entries:
                entry["profiling_name"] = entry["profiling_name"].replace("nccl:", "xccl:")
            dump.call("window_put", 1200, [[4]])
        self.dumps(*dumps)
        read = self.imported("dumps")
        self.assertEqual(read["operations"]["all_reduce"], 6)
        self.assertIn("calls of 'window_put', which is no communication that is known, are left out (2 times)",
                      [one["what"] for one in read["refused"]])

    def test_calls_at_their_times(self):
        """400 Gb/s take more than 83 us for 4 MiB, and less than 1 ms: the second all-reduce is enqueued after 100 us and
        comes after the first one, the third one at its time."""
        for as_json in (False, True):
            self.dumps(*map(self.step, range(2)), as_json=as_json)
            read = self.imported("dumps")
            self.assertEqual(read["operations"], {"all_reduce": 6, "compute": 4})
            self.assertEqual((read["call_bytes"], read["overlap"]), ({"all_reduce": 2 * 4 * (MIB + 2)}, "network"))
            self.run_imported()
            first, second, third = self.collectives()
            self.assertEqual((first[0], second[0], third[0]), (0, max(100, first[1]), 1100))

    def test_the_time_between_calls(self):
        """--overlap traced: each call waits for the one before, and what it took in the trace is no computation: 30 of 100
        us and 30 of 1,000 us."""
        self.dumps(*map(self.step, range(2)))
        self.refused("dumps", "--overlap", "traced", says=["no entry has a 'duration_ms'", "TORCH_NCCL_ENABLE_TIMING"])
        self.dumps(*(self.step(rank, took=30) for rank in range(2)))
        self.imported("dumps", "--overlap", "traced")
        found = self.run_imported()
        for rank in range(2):
            first, second, third = (found[rank, f"all_reduce (record {record})"] for record in range(3))
            self.assertAlmostEqual(second[0], first[1] + 70, 5)
            self.assertAlmostEqual(third[0], second[1] + 970, 5)

    def test_buffers_begin_and_end_with_different_calls(self):
        """A ring buffer has the last calls: those that all members have are kept, by their numbers in the group."""
        dumps = [Dump(rank, 4, {"a": [0, 1], "b": [2, 3]}) for rank in range(4)]
        for dump in dumps:
            for at in range(6):
                dump.call("all_reduce", 100 * at, [[10 + at]], group="ab"[dump.rank // 2])
                dump.call("broadcast", 100 * at + 50, [[20 + at]])
        dumps[1].entries, dumps[3].entries = dumps[1].entries[5:], dumps[3].entries[:-3]
        self.dumps(*dumps)
        read = self.imported("dumps")
        # Of group a calls 3 to 5 (entry 5 is a broadcast), of b 0 to 4, of all 2 to 3 (12 - 3 entries end with call 4's
        # all-reduce).
        self.assertEqual(read["calls"], {"all_reduce": 2 * 3 + 2 * 5, "broadcast": 4 * 2})
        self.assertEqual(read["call_bytes"], {"all_reduce": 2 * 4 * (13 + 14 + 15) + 2 * 4 * (10 + 11 + 12 + 13 + 14),
                                              "broadcast": 4 * 4 * (22 + 23)})
        said = " ".join(one["what"] for one in read["refused"])
        self.assertIn("calls at the beginning or the end of a buffer", said)
        self.assertIn("the root of a broadcast is not recorded", said)
        self.run_imported()

    def test_messages(self):
        """Both messages of a rank are in one kernel, so that neither waits for the other; their ends are positions in the
        group. The last send has no receive in the buffers, which have all calls from the beginning."""
        def ranks():
            for rank in (2, 5):
                dump = Dump(rank, 6, {"pp": [2, 5]})
                own, other = (0, 1) if rank == 2 else (1, 0)
                dump.call(f"recv {own}<-{other}", 100, [[500]], group="pp", messages=True)
                dump.call(f"send {own}->{other}", 103, [[500]], group="pp", messages=True, same_kernel=True)
                dump.call("coalesced", 104, [], group="pp", messages=True, same_kernel=True, took=20)
                if rank == 2:
                    dump.call(f"send {own}->{other}", 200, [[70]], group="pp", messages=True)
                yield dump
            for rank in (0, 1, 3, 4):
                yield Dump(rank, 6)
        for words in ([], ["--overlap", "traced"]):
            self.dumps(*ranks())
            read = self.imported("dumps", *words)
            self.assertEqual((read["operations"]["send"], read["operations"]["recv"], read["sent_bytes"]["send"]),
                             (2, 2, 2 * 2000))
            self.run_imported()
        dumps = list(ranks())
        for dump in dumps:
            for entry in dump.entries:
                entry["record_id"] += 1000
        self.dumps(*dumps)
        self.refused("dumps", says=[r"rank_2: it has 2 sends to rank 5 in process group 'pp', and \S*rank_5 1 receives",
                                    "TORCH_FR_BUFFER_SIZE"])

    def test_messages_of_buffers_that_have_wrapped(self):
        """Rank 0 sends 10 to 15 numbers to rank 1, whose buffer has overwritten its first two receives: the four last ones
        have both ends. One that the accelerator had not executed, or of another size, does not say so."""
        def ranks():
            sender, receiver = Dump(0, 2, first=40), Dump(1, 2, first=90)
            for at in range(6):
                sender.call("send 0->1", 100 * at, [[10 + at]], messages=True)
                receiver.call("recv 1<-0", 100 * at, [[10 + at]], messages=True)
            receiver.entries = receiver.entries[2:]
            return sender, receiver
        self.dumps(*ranks())
        read = self.imported("dumps")
        self.assertEqual((read["operations"]["send"], read["operations"]["recv"], read["sent_bytes"]["send"]),
                         (4, 4, 4 * (12 + 13 + 14 + 15)))
        self.assertIn("messages at the beginning of a buffer", " ".join(one["what"] for one in read["refused"]))
        self.run_imported()
        for key, value in (("state", "started"), ("output_sizes", [[9]]), ("input_sizes", [[9]])):
            dumps = ranks()
            dumps[0].entries[3][key] = value
            if key == "output_sizes":
                dumps[0].entries[3]["input_sizes"] = value
            self.dumps(*dumps)
            self.refused("dumps", says=["it has 6 sends to rank 1", "not all completed or differ in size"])

    def test_exchanges_of_different_sizes(self):
        """A list of tensors has the bytes to each member. Of one tensor the split sizes are not recorded: each rank sends
        half of its own to the other one."""
        dumps = [Dump(rank, 2) for rank in range(2)]
        rows = [[1, 3], [2, 2]]
        for dump in dumps:
            dump.call("all_to_all", 100, [[rows[dump.rank][to], 8] for to in range(2)], [[row[dump.rank], 8] for row in rows],
                      dtype="BFloat16")
            dump.call("all_to_all", 200, [[[600], [1000]][dump.rank]], [[800]])
        self.dumps(*dumps)
        read = self.imported("dumps")
        self.assertEqual(read["sent_bytes"]["send"], 2 * 8 * (3 + 2) + 4 * (300 + 500))
        self.assertIn("send equal parts to all members", str(read["refused"]))
        self.run_imported()

    def test_one_of_two_servers(self):
        """--fill symmetric, as with traces of torch.profiler."""
        for traced in (range(8), range(4)):
            self.dumps(*(self.mesh(rank) for rank in traced))
            read = self.imported("dumps", "--fill", "symmetric")
            self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (8, 16))
            self.run_imported()
            if len(traced) == 8:
                due = self.summary["fingerprint"]
        self.assertEqual(self.summary["fingerprint"], due)

    def mesh(self, rank):
        dump = Dump(rank, 8, {str(1 + rank // 4): [rank // 4 * 4 + i for i in range(4)], str(3 + rank % 4): [rank % 4,
                                                                                                          rank % 4 + 4]})
        dump.call("all_reduce", 0, [[1000]], group=str(1 + rank // 4))
        dump.call("all_reduce", 100, [[5000]], group=str(3 + rank % 4))
        return dump

    def test_a_pickle_that_names_a_program(self):
        """It is not run."""
        whole = self.step(0).whole()
        (self.folder / "dumps").mkdir()
        mark = self.folder / "mark"

        class Runs:
            def __reduce__(self):
                return pathlib.Path.touch, (mark,)

        whole["entries"].append(Runs())
        (self.folder / "dumps" / "rank_0").write_bytes(pickle.dumps(whole, protocol=2))
        self.refused("dumps", says=[r"rank_0: it is a damaged pickle: it names \w+"])
        self.assertFalse(mark.exists())

    def test_lists_as_torch_writes_them(self):
        """torch::jit's pickler writes a list of whole numbers as a call of torch.jit._pickle.build_intlist; Python's own
        pickles have other protocols."""
        for protocol, shape in ((2, b"ctorch.jit._pickle\nbuild_intlist\n(](K\x07K\x0betR"), (2, None), (4, None)):
            (self.folder / "dumps").mkdir(exist_ok=True)
            for rank in range(2):
                dump = Dump(rank, 2)
                dump.call("all_reduce", 100, [[7, 11]])
                content = pickle.dumps(dump.whole(), protocol=protocol)
                if shape:
                    plain = pickle.dumps([7, 11], protocol=2)[2:-1].replace(b"q\x00", b"")
                    content = pickletools.optimize(content)
                    self.assertIn(plain, content)
                    content = content.replace(plain, shape, 1)
                (self.folder / "dumps" / f"rank_{rank}").write_bytes(content)
            self.assertEqual(self.imported("dumps")["call_bytes"], {"all_reduce": 2 * 4 * 77})

    def test_names_of_files(self):
        for name in ("nccl_trace_rank_1", "comm_lib_trace_rank_1", "rank1.json", "1.pkl"):
            self.dumps(self.step(0))
            self.step(1).write(self.folder / "dumps", name=name, as_json=name.endswith("json"))
            self.assertEqual(self.imported("dumps")["traced_ranks"], [0, 1])
        self.dumps(self.step(0), name="dump")
        self.refused("dumps", says=["dump: its name does not end in the number of its rank"])

    def test_calls_whose_tensors_are_not_recorded(self):
        """A coalescing manager has one entry without tensors."""
        dumps = [self.step(rank) for rank in range(2)]
        for dump in dumps:
            dump.call("coalesced", 2000, [])
            dump.call("barrier", 2100, [[1]])
        self.dumps(*dumps)
        read = self.imported("dumps")
        self.assertEqual(read["operations"], {"all_reduce": 6, "barrier": 2, "compute": 6})
        self.assertIn("coalescing manager, whose tensors the recorder does not have, are left out", str(read["refused"]))


if __name__ == "__main__":
    unittest.main()
