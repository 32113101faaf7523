# SPDX-License-Identifier: GPL-2.0-only
"""`weft import nccl-log`: logs by NCCL's formats (tests/nccl_log_files.py) and lines of real ones."""

# Time limit: 300 s

import gzip
import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing
from import_testing import ImportTest
from nccl_log_files import Job, hash_of, two_servers
from weft_testing import picoseconds_to_send

US = 10**6
RATE, DELAY = 400 * 10**9, 500_000  # of the machine of an import without --topology
# github.com/pytorch/torchtitan, issue 1369: tensor parallelism of two GPUs, without the lines about communicators. The
# process of rank 1 is not shown any further.
TORCHTITAN = """\
hopper01:191369:191420 [0] NCCL INFO ReduceScatter: opCount e sendbuff 0x7fdf57c00000 recvbuff 0x7fdf61a00000 count 2097152 \
datatype 7 op 0 root 0 comm 0x55e290bd32d0 [nranks=2] stream 0x55e29067e430
hopper01:191369:191420 [0] NCCL INFO AllGather: opCount f sendbuff 0x7fdf61200000 recvbuff 0x7fdf55800000 count 2097152 \
datatype 7 op 0 root 0 comm 0x55e290bd32d0 [nranks=2] stream 0x55e29067e430
hopper01:191370:191425 [1] NCCL INFO ReduceScatter: opCount e sendbuff 0x7fa917c00000 recvbuff 0x7fa921a00000 count 2097152 \
datatype 7 op 0 root 0 comm 0x55fca23fc0f0 [nranks=2] stream 0x55fca193e8e0
hopper01:191370:191425 [1] NCCL INFO AllGather: opCount f sendbuff 0x7fa921200000 recvbuff 0x7fa915800000 count 2097152 \
datatype 7 op 0 root 0 comm 0x55fca23fc0f0 [nranks=2] stream 0x55fca193e8e0
hopper01:191369:191369 [0] NCCL INFO AllReduce: opCount 10 sendbuff 0x7fdf541ff800 recvbuff 0x7fdf541ff800 count 1 \
datatype 7 op 0 root 0 comm 0x55e290bd32d0 [nranks=2] stream 0x55e29067e430
"""
FIRST_OF_RANK_1 = """\
hopper01:191370:191425 [1] NCCL INFO AllGather: opCount d sendbuff 0x7fa921200000 recvbuff 0x7fa915800000 count 2097152 \
datatype 7 op 0 root 0 comm 0x55fca23fc0f0 [nranks=2] stream 0x55fca193e8e0
"""
# github.com/NVIDIA/nccl, issue 1193 (Ray) and issue 1352 (a build that writes the rank in front of the message).
RAY = """\
(RayTrainWorker pid=615, ip=10.72.7.6) r24-02-22-23-29-0066-raycluster-lv52c-worker-l4-8-fqztx:615:18953 [2] NCCL INFO \
AllReduce: opCount 139d sendbuff 0x78d056200000 recvbuff 0x78d056200000 count 7382228 datatype 7 op 0 root 0 comm \
0x78cfda045840 [nranks=128] stream 0x78d07125e5e0
"""
WITH_RANK = """\
srv01:2016601:2016601 [0] NCCL INFO [2] AllReduce: opCount e sendbuff 0x7fc0626a1c00 recvbuff 0x7fc0626a1c00 count 1 \
datatype 1 op 0 root 0 comm 0x5558715599c0 [nranks=4] stream 0x555870f12040
"""
EXCHANGE = ("ubuntu:199574:201142 [{rank}] NCCL INFO {what}: opCount 12 sendbuff 0x7f505e93c000 recvbuff (nil) count 2420736 datatype 7 "
            "op 0 root {root} comm 0x7f512800{rank}e10 [nranks=2] stream 0x55f1de727ae0\n")
# Issue 147: one process has written into the line of another one.
TORN = """\
learnfair062:32619:32711 [2] NCCL INFO learnfair062:32629:32629 [7] NCCL INFO Broadcast: opCount 0 sendbuff 0x7f372c7f5400 \
recvbuff 0x7f372c7f5400 count 53 datatype 4 op 0 root 0 comm 0x7f372005a260 [nranks=8] stream 0x5599dafdc1f0
Broadcast: opCount 1 sendbuff 0x7f5836000000 recvbuff 0x7f5836000000 count 25503912 datatype 6 op 0 root 0 comm \
0x7f584405a260 [nranks=8] stream 0x563448681ac0
"""


class NcclLog(ImportTest):
    FORMAT = "nccl-log"

    def read(self, job, *words):
        job.write(self.folder / "job.log")
        return self.imported("job.log", *words)

    def read_text(self, text, *words):
        (self.folder / "job.log").write_text(text)
        return self.imported("job.log", *words)

    def refused_text(self, text, *says):
        (self.folder / "job.log").write_text(text)
        self.refused("job.log", says=says)

    def collectives(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return sorted((start / US, end / US, int(size)) for start, end, size in zip(rows["start"], rows["end"], rows["bytes"]))

    def fingerprint(self):
        self.run_imported()
        return self.summary["fingerprint"]

    def test_a_ring_of_messages_takes_what_it_must(self):
        """Two servers of two GPUs; each sends 4 KiB to the next one and receives as much from the one before, three times.
        One packet of s = 4,096 + 82 B passes two links, s / C + d each, and its ACK of 86 B two links back; only then the send
        has ended, and the stream goes on with the next group."""
        job = Job(4, timed=False)
        job.create("world")
        for _ in range(3):
            for rank in range(4):
                job.exchange(rank, "world", 1024, (rank + 1) % 4, (rank - 1) % 4)
        read = self.read(job)
        self.assertEqual((read["ranks"], read["operations"]["send"], read["bytes"]["send"]), (4, 12, 12 * 4096))
        self.run_imported()
        packet, ack = (picoseconds_to_send(size, RATE) for size in (4096 + 82, 86))
        self.assertEqual(self.summary["simulated_time_ps"], 3 * (2 * (packet + DELAY) + 2 * (ack + DELAY)))

    def test_a_collective_takes_what_it_takes_alone(self):
        """`count` is that of the input for all-reduces and all-gathers, and of the output for reduce-scatters."""
        for what, kind, size in (("AllReduce", "all_reduce", 4 * 65536), ("AllGather", "all_gather", 4 * 4 * 65536),
                                 ("ReduceScatter", "reduce_scatter", 4 * 4 * 65536), ("AlltoAll", "all_to_all", 4 * 4 * 65536)):
            with self.subTest(kind):
                job = Job(4)
                job.create("world")
                job.all_call(what, "world", 65536)
                self.assertEqual(self.read(job)["bytes"], {kind: 4 * size})
                self.run_imported()
                alone = self.run_weft("run", "out.yaml", "--summary", "json", "--quiet", "--set", "workload={kind: collective, "
                                      f"collective: {kind}, ranks: 4, size: {size} B}}").summary()
                self.assertEqual(self.summary["simulated_time_ps"], alone["simulated_time_ps"])

    def test_times_between_calls(self):
        """1,000 us after the first call the host makes the second one; nothing waits for the network, unless with --overlap
        traced, where the time between the calls comes after the first one's end."""
        job = Job(2)
        job.create("world")
        job.all_call("AllReduce", "world", 1 << 20, at=59_999_000)
        job.all_call("AllReduce", "world", 1, at=60_000_000)
        read = self.read(job)
        self.assertEqual((read["operations"], read["compute_seconds"]), ({"all_reduce": 4, "compute": 2}, 2e-3))
        self.run_imported()
        first, second = self.collectives()
        self.assertEqual((first[0], first[2], second[0], second[2]), (0, 4 << 20, 1000, 4))
        self.imported("job.log", "--overlap", "traced")
        self.run_imported()
        first, second = self.collectives()
        self.assertAlmostEqual(second[0], first[1] + 1000, 5)

    def test_times_of_a_second(self):
        """The default of NCCL_DEBUG_TIMESTAMP_FORMAT: calls of one second follow each other, and are no group."""
        job = Job(2)
        job.create("world")
        for at in (10, 20, 1_000_030):
            job.all_call("AllReduce", "world", 1 << 18, at=at)
        self.read_text(re.sub(r"(12:\d\d:\d\d)\.\d{6}", r"\1", job.text()))
        self.run_imported()
        first, second, third = self.collectives()
        self.assertEqual((first[0], second[0], third[0]), (0, first[1], 10**6))

    def test_streams(self):
        """Calls of one stream run one after another, also of different communicators; those of different streams do not wait
        for each other."""
        for stream, apart in (("0x55d0", True), ("0x55d8", False)):
            job = Job(2, timed=False)
            job.create("world")
            job.create("other")
            job.all_call("AllReduce", "world", 1 << 20)
            job.all_call("AllReduce", "other", 1 << 18, stream=stream)
            self.read(job)
            self.run_imported()
            (long_start, long_end, _), (start, _, _) = sorted(self.collectives(), key=lambda one: -one[2])
            self.assertEqual((long_start, start), (0, long_end if apart else 0))

    def test_forms_of_a_log(self):
        """One file or one for each process, in gzip, with what programs that start jobs write in front of a line."""
        self.read(two_servers())
        due = self.fingerprint()
        two_servers().write_each(self.folder / "logs")
        (self.folder / "logs" / "notes").write_text("no log\n")
        (self.folder / "job.log.gz").write_bytes(gzip.compress(two_servers().text().encode()))
        files = sorted(str(path.relative_to(self.folder)) for path in (self.folder / "logs").glob("nccl*"))
        for words in (["logs"], files, ["job.log.gz"]):
            self.imported(*words)
            self.assertEqual(self.fingerprint(), due)
        for prefix in ("[1,{rank}]<stdout>:", "{rank}: ", "[rank{rank}]:", "(Worker pid=1, ip=10.72.7.6) ", "|  50%\r", "caf\u00e9 "):
            self.read(two_servers(prefix=prefix))
            self.assertEqual(self.fingerprint(), due, prefix)
        # Messages of other programs between the lines.
        self.read_text("step 1: loss 3.2\n" + two_servers().text().replace("NCCL INFO AllReduce", "NCCL INFO Using network IB\n0: sendbuff\n"
                                                                           "[2026-03-01 12:00:00.001150] node0:1000:1050 [0] NCCL INFO "
                                                                           "AllReduce", 1))
        self.assertEqual(self.fingerprint(), due)

    def test_lines_of_versions(self):
        """About communicators: of 2.29, of three older forms, and of 2.8, which does not say which communicators these are."""
        text = two_servers().text()
        self.read_text(text)
        due = self.fingerprint()
        other = re.sub(r"splitCount (\d) color (\d) key (\d) ?", lambda found: f"color {found[2]} key {found[3]} commId "
                       f"0x{hash_of('pair' + found[2]):x} ", text)
        for changed in (re.sub(r"INFO (ncclCommInitRankConfig comm \S+ rank (\d).*START)", r"INFO [Rank \2] \1",
                               text.replace("splitCount", "childCount")),
                        other, re.sub(r"nccl(CommInitRankConfig|CommSplit) comm", "comm", other),
                        re.sub(r".*Init START\n", "", text)):
            self.assertNotEqual(changed, text)
            self.read_text(changed)
            self.assertEqual(self.fingerprint(), due)
        job = Job(4, old=True)
        job.create("world")
        job.all_call("AllReduce", "world", 10)
        self.assertEqual(self.read(job)["refused"], [])
        job.create("left", [0, 1])
        job.create("right", [2, 3])
        job.all_call("AllReduce", "left", 10)
        job.all_call("AllReduce", "right", 10)
        self.refused_text(job.text(), "4 GPUs call communicators of 2 ranks, and nothing tells these apart", "commId")

    def test_a_pointer_that_is_used_again(self):
        """After ncclCommDestroy."""
        job = Job(2)
        job.create("world")
        job.all_call("AllReduce", "world", 100)
        job.create("next", [1, 0])
        job.all_call("Broadcast", "next", 200, at=50)
        self.read(job)
        due, text = self.fingerprint(), job.text()
        for rank in range(2):
            text = text.replace(job.pointer(rank, "next"), job.pointer(rank, "world"))
        self.assertEqual(self.read_text(text)["calls"], {"all_reduce": 2, "broadcast": 2})
        self.assertEqual(self.fingerprint(), due)

    def test_ranks_of_the_job(self):
        """They are those in the communicator of all, whatever the processes' order; other communicators may have another."""
        job = Job(4)
        job.create("world", [3, 2, 1, 0])
        job.create("turned", [0, 1, 2, 3])
        job.create("pair", [1, 2], parent="world", color=7)
        job.all_call("Broadcast", "turned", 100, root=0)
        job.call(1, "Send", "pair", 50, root=1)
        job.call(2, "Recv", "pair", 50, root=0)
        self.read(job)
        groups = json.loads((self.folder / "out.groups.json").read_text())
        self.assertEqual(sorted(groups.values()), [[3, 2, 1, 0]])
        self.run_imported()
        rows = weft_testing.table(self.folder / "out.h5", "messages")
        self.assertIn((2, 1), set(zip(rows["source"].tolist(), rows["destination"].tolist())))

    def test_no_communicator_of_all(self):
        """Ranks are in the order of servers, where node10 is behind node2, and of devices."""
        job = Job(24)
        for server in reversed(range(12)):
            job.create(f"server{server}", [2 * server + 1, 2 * server])
            job.all_call("Broadcast", f"server{server}", 100 + server)
        read = self.read(job)
        self.assertIn("no communicator has all ranks: these are taken to be in the order of servers and devices (1 times)",
                      [one["what"] for one in read["refused"]])
        groups = json.loads((self.folder / "out.groups.json").read_text())
        self.assertEqual(sorted(groups.values()), [[2 * server + 1, 2 * server] for server in range(12)])
        self.run_imported()

    def test_one_of_two_servers(self):
        job = Job(4)
        job.create("world")
        for pair in range(2):
            job.create(f"pair{pair}", [pair, 2 + pair], parent="world", color=pair)
        for rank in range(4):
            job.call(rank, "AllReduce", f"pair{rank % 2}", 1000)
            job.call(rank, "AllGather", "world", 100, at=50)
        self.read(job)
        due = self.fingerprint()
        text = re.sub(r".*node1.*\n", "", job.text())
        self.refused_text(text, r"the job has 4 ranks, and of ranks \[2, 3\] there is no trace", "--fill symmetric")
        read = self.imported("job.log", "--fill", "symmetric")
        self.assertEqual((read["ranks"], read["operations"]["all_reduce"]), (4, 4))
        self.assertEqual(self.fingerprint(), due)
        self.refused("job.log", "--ranks", "2", says=["the job has 4 ranks or more"])

    def test_a_job_that_was_stopped(self):
        """Calls that all members have are kept; a file that ends in the middle of a line is read up to there."""
        job = Job(2)
        job.create("world")
        for at in range(5):
            job.all_call("AllReduce", "world", 10 + at, at=100 * at)
            job.exchange(0, "world", 100 + at, 1, 1, at=100 * at + 50)
            job.exchange(1, "world", 100 + at, 0, 0, at=100 * at + 50)
        job.write_each(self.folder / "logs")
        path = self.folder / "logs" / "nccl.node0.1001"
        lines = path.read_text().split("\n")
        # The beginning; rank 1's calls 0 to 2, then an all-reduce and a send, and the receive beside it in part.
        path.write_text("\n".join(lines[:2 + 3 * 3 + 2]) + "\n" + lines[2 + 3 * 3 + 2][:150])
        read = self.imported("logs")
        self.assertEqual(read["calls"], {"all_reduce": 2 * 4, "send": 3 + 4, "recv": 4 + 3})
        said = {one["what"]: one["place"] for one in read["refused"]}
        self.assertEqual(said["a call at the end of a file, in the middle of which it ends, is left out (1 times)"],
                         f"logs/nccl.node0.1001:{2 + 3 * 3 + 3}")
        self.assertIn("calls at the end that other ranks of the communicator do not have are left out", str(said))
        self.run_imported()

    def test_groups_inside_a_server(self):
        """NCCL 2.27 does not advance opCount there: messages that follow each other are one group until one is there twice.
        All ranks receive first, which would not end if each call waited for the one before."""
        for standing in (False, True):
            job = Job(2, timed=False)
            job.standing = standing
            job.create("world")
            for _ in range(2):
                for rank in range(2):
                    job.call(rank, "Recv", "world", 1024, root=1 - rank, launched=False)
                    job.call(rank, "Send", "world", 1024, root=1 - rank)
            read = self.read(job)
            self.assertEqual(any("opCount stands still" in one["what"] for one in read["refused"]), standing)
            self.run_imported()
            packet, ack = (picoseconds_to_send(size, RATE) for size in (4096 + 82, 86))
            self.assertEqual(self.summary["simulated_time_ps"], 2 * (2 * (packet + DELAY) + 2 * (ack + DELAY)))

    def test_messages_that_are_apart_in_time(self):
        """Calls of a group are made at once: those that are 10 ms apart are none, also where opCount stands still."""
        for apart in (2, 10_000):
            job = Job(2)
            job.standing = True
            job.create("world")
            for rank in range(2):
                job.call(rank, "Send" if rank == 0 else "Recv", "world", 1024, root=1 - rank)
                job.call(rank, "Recv" if rank == 0 else "Send", "world", 1024, root=1 - rank, at=apart)
            self.read(job)
            self.run_imported()
            packet, ack = (picoseconds_to_send(size, RATE) for size in (4096 + 82, 86))
            self.assertEqual(self.summary["simulated_time_ps"], (apart > 2) * apart * US + 2 * (packet + DELAY) + 2 * (ack + DELAY))

    def test_calls_without_a_network(self):
        job = Job(2)
        job.create("world")
        job.create("alone", [0])
        job.call(0, "AllReduce", "alone", 100)
        job.all_call("AllReduce", "world", 0)
        job.call(0, "Send", "world", 10, root=0, launched=False)
        job.call(0, "Recv", "world", 10, root=0)
        self.refused_text(job.text(), "no line is a call between GPUs")
        job.all_call("AllGather", "world", 4)
        job.all_call("AlltoAllv", "world", 4)
        read = self.read(job)
        self.assertEqual(read["calls"], {"all_gather": 2})
        self.assertEqual([one["what"] for one in read["ignored"]],
                         ["calls of one rank alone, and messages of a rank to itself, which need no network (3 times)",
                          "collectives of no bytes, which NCCL does not execute (2 times)"])
        self.assertIn("calls of 'AlltoAllv', which is no communication that is known, are left out (2 times)",
                      [one["what"] for one in read["refused"]])

    def test_real_lines(self):
        """Both ranks have a reduce-scatter of 2 x 8 MiB and an all-gather of 8 MiB each; rank 1's all-reduce is not shown."""
        read = self.read_text(TORCHTITAN)
        self.assertEqual((read["calls"], read["call_bytes"]), ({"reduce_scatter": 2, "all_gather": 2},
                                                               {"reduce_scatter": 2 * (16 << 20), "all_gather": 2 * (8 << 20)}))
        said = [one["what"] for one in read["refused"]]
        self.assertEqual(len(said), 2)
        self.assertIn("whose creation is not in the log", said[0])
        self.run_imported()
        (_, end, _), (start, _, _) = self.collectives()
        self.assertEqual(start, end)
        self.refused_text(FIRST_OF_RANK_1 + TORCHTITAN, r"begins with different calls on its ranks \(opCount d and e\)", "beginning")
        self.refused_text(RAY, r"job.log: the job has 128 ranks, and of ranks \[1, 2")
        self.refused_text(WITH_RANK, r"job.log: the job has 4 ranks, and of ranks \[1, 2, 3\]")
        # In the form of issue 584, of NCCL 2.8: an all-to-all of both ranks, in which each also sends to itself.
        lines = "".join(EXCHANGE.format(rank=rank, what=what, root=root) for rank in range(2) for what, root in
                        (("Send", 0), ("Send", 1), ("Recv", 0), ("Recv", 1)))
        read = self.read_text(lines)
        self.assertEqual((read["calls"], read["call_bytes"]["send"]), ({"send": 2, "recv": 2}, 2 * 4 * 2420736))
        self.assertEqual([one["what"][:21] for one in read["ignored"]], ["calls of one rank alo"])
        self.run_imported()
        self.refused_text(TORN, r"^weft: job.log:2: found 'Broadcast: opCount 1", "NCCL_DEBUG_FILE")

    def test_logs_that_are_wrong(self):
        good = two_servers().text()
        self.refused_text(re.sub(r".*opCount.*\n", "", good), r"job.log: no line is a call.*NCCL_DEBUG_SUBSYS=INIT,COLL")
        self.refused_text(good + good.replace(":100", ":200"), "processes 1000 and 2000 both use the device of node0 on bus 1a000",
                          "one run")
        self.refused_text(re.sub(r".*node1:1003.*Init.*\n", "", good), r"a communicator has 4 ranks|nothing tells these apart")
        two_servers().write_each(self.folder / "logs")
        self.refused("logs", "logs/nccl.node0.1000", "job.log", says=["is also in"])
        self.refused("missing", says=["there is no such file"])
        (self.folder / "notes.txt").write_text("NCCL INFO is not here\n")
        done = weft_testing.weft("import", "auto", "notes.txt", folder=self.folder)
        self.assertIn("no format takes it", done.err)


if __name__ == "__main__":
    unittest.main()
