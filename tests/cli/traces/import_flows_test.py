# SPDX-License-Identifier: GPL-2.0-only
"""Flows of other programs: when each of them starts and ends, by hand."""

import gzip
import json
import pathlib
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import weft_testing  # noqa: E402
from weft_testing import table  # noqa: E402

# A star of 400 Gb/s and 500 ns without switch latency: two links, each of which takes a whole packet.
HEADERS, DELAY, RATE = 82, 500_000, 400


def one_way(size):
    """Picoseconds from the start of a flow until its last packet has arrived on an idle star."""
    packets = [min(4096, size - at) for at in range(0, max(size, 1), 4096)]
    wires = [(one + HEADERS) * 8000 // RATE for one in packets]
    return sum(wires) + wires[-1] + 2 * DELAY


class Flows(weft_testing.ProgramTest):
    def imported(self, name, text, ending, *more, ack="none"):
        path = self.write(text, f"in.{ending}")
        done = self.run_weft("import", name, path.name, "-o", "out.yaml", "--json", *more)
        # ACKs would precede the packets that a node forwards.
        _, results = self.simulate(self.folder / "out.yaml", "--set", f"network.ack={ack}")
        return json.loads(done.out), table(results, "messages")

    def test_starts_are_kept(self):
        _, messages = self.imported("flows", "start,src,dst,size\n2 us,0,1,4096\n500,2,3,100\n", "csv")
        rows = dict(zip(messages["source"].tolist(), zip(messages["issued"].tolist(), messages["delivered"].tolist())))
        self.assertEqual(rows[0], (2_000_000, 2_000_000 + one_way(4096)))
        self.assertEqual(rows[2], (500_000, 500_000 + one_way(100)))

    def refused(self, name, text, ending, says):
        path = self.write(text, f"in.{ending}")
        done = weft_testing.weft("import", name, path.name, "-o", "out.yaml", folder=self.folder)
        self.assertEqual(done.code, weft_testing.EXIT_INPUT, done)
        self.assertIn(f"weft: {path.name}:{says}", done.err)

    def test_starts_at_the_end_of_time(self):
        """It is 106 days from the beginning, for the reader of the flows and that of their traces."""
        end = 106 * 24 * 3600
        self.refused("flows", f"start,src,dst,size\n0,0,1,1\n{end} s,0,1,1\n", "csv",
                     f"3: start: found '{end} s'; expected less than 106 days")
        self.refused("htsim", f"Nodes 2\nConnections 1\n0->1 id 1 start {end * 10**12} size 1\n", "cm",
                     f"3: start {end * 10**12}: expected less than 106 days")
        self.write(f"start,src,dst,size\n{end * 10**12 - 1} ps,0,1,1\n", "in.csv")
        self.run_weft("import", "flows", "in.csv", "-o", "out.yaml")

    def test_a_byte_order_mark_is_no_part_of_a_table(self):
        """Excel's CSV in UTF-8 begins with one."""
        text = "start,source,destination,bytes\n500,2,3,100\n"
        for command in ("flows", "auto"):
            _, messages = self.imported(command, f"\ufeff{text}", "csv")
            self.assertEqual(messages["issued"].tolist(), [500_000])

    def test_files_in_gzip_are_read(self):
        """Their first bytes tell, whatever their name."""
        flows, matrix = "start,source,destination,bytes\n500,2,3,100\n", "0,1,2\n3,0,4\n5,6,0\n"
        connections = "Nodes 4\nConnections 1\n2->3 id 1 start 500000 size 100\n"
        for name, text, sent in (("flows", flows, [100]), ("htsim", connections, [100]), ("flows", matrix, [1, 2, 3, 4, 5, 6])):
            (self.folder / "in.gz").write_bytes(gzip.compress(text.encode()))
            self.run_weft("import", "auto", "in.gz", "-o", "out.yaml")
            _, results = self.simulate(self.folder / "out.yaml")
            self.assertEqual(sorted(table(results, "messages")["bytes"].tolist()), sent)
            (self.folder / "in.gz").write_bytes(gzip.compress(text.encode())[:-12])
            for words in (["import", name, "in.gz", "-o", "out.yaml"], ["run", "in.gz"]):
                done = weft_testing.weft(*words, folder=self.folder)
                self.assertEqual(done.code, weft_testing.EXIT_INPUT, done)
                self.assertIn("weft: in.gz: it is damaged gzip: ", done.err)

    def test_a_matrix_of_excel(self):
        (self.folder / "in.csv").write_text("\ufeff0;1;2\n3;0;4\n5;6;0\n", encoding="utf-8")
        read = json.loads(self.run_weft("import", "flows", "in.csv", "-o", "out.yaml", "--json").out)
        self.assertEqual((read["files"], read["bytes"]), (["out.matrix.csv"], {"all_to_all": 21}))

    def test_an_id_of_two_flows(self):
        """In whatever order ids are, also of those that are as many as the lines before."""
        def matrix(*ids):
            return f"Nodes 2\nConnections {len(ids)}\n" + "".join(f"0->1 {one}start 0 size 1\n" for one in ids)

        for ids, line in (((1, 1), 4), ((0, 1, 2, 1), 6), ((2, 1, 1), 5), ((3, 1, 2, 3), 6), ((1, 2, 7, 3, 7), 7)):
            with self.subTest(ids=ids):
                self.refused("htsim", matrix(*(f"id {one} " for one in ids)), "cm",
                             f"{line}: id {ids[-1]}: a line above has it, too\n")
        self.write(matrix("id 1 ", "", "id 3 ", "id 2 ", "id 0 "), "in.cm")
        self.run_weft("import", "htsim", "in.cm", "-o", "out.yaml")

    def test_unknown_columns(self):
        self.refused("flows", "strat,source,destination,bytes\n500,2,3,100\n", "csv",
                     "1: unknown column 'strat' (did you mean 'start'?); expected start, source, destination and "
                     "bytes\n")

    def test_hpcc_s_flow_file(self):
        read, messages = self.imported("flows", "2\n0 1 3 100 1000 2.000001\n1 0 3 100 3000 2.0\n", "txt")
        self.assertEqual(read["bytes"], {"send": 4000, "recv": 4000})
        self.assertEqual(sorted(messages["issued"].tolist()), [2 * 10**12, 2_000_001 * 10**6])

    def test_a_matrix_is_one_all_to_all_whose_rows_send(self):
        rows = [[0, 1000, 2000], [500, 0, 500], [0, 0, 7]]
        read, messages = self.imported("flows", "\n".join(",".join(map(str, row)) for row in rows) + "\n", "csv",
                                       "--matrix")
        self.assertEqual((read["operations"], read["bytes"]), ({"all_to_all": 3}, {"all_to_all": 4007}))
        sent = {}
        for source, destination, size in zip(messages["source"].tolist(), messages["destination"].tolist(),
                                             messages["bytes"].tolist()):
            sent[source, destination] = sent.get((source, destination), 0) + size
        self.assertEqual(sent, {(i, j): size for i, row in enumerate(rows) for j, size in enumerate(row)
                                if i != j and size})

    def test_a_matrix_is_read_from_its_file(self):
        """Whatever stands between the numbers; what is wrong has its line, also behind the import."""
        prints = set()
        for text in ("0,10,20\n30,0,40\n50,60,0\n", "# bytes\n0; 10;20\n\n30;0;40 # sent by 1\n50;60;0",
                     "0 10  20\r\n30\t0 40\r\n 50 60 0\r\n"):
            self.imported("flows", text, "csv", "--matrix")
            prints.add(self.run_weft("run", "out.yaml", "--quiet", "--summary", "json").summary()["fingerprint"])
        self.assertEqual(len(prints), 1)
        for text, part in (("0 10 20\n30 0\n50 60 0\n", "in.csv:2: found 2 entries; expected one for each of 3 ranks"),
                           ("0 10 20\n30 0 40\n", "in.csv:2: the file ends after 2 rows; expected 3"),
                           ("0 10 20\n30 0 40\n50 60 0\n\n1 2 3\n", "in.csv:5: a row more than 3"),
                           ("0,10,20\n30,,40\n50,60,0\n", "in.csv:2: found ''; expected bytes as a whole number"),
                           ("0 10 20\n30 0 40\n50 60 1\n", "the blocks have 211 bytes, but size says 210"),
                           ("0 10 20\n30 0 9223372036854775808\n50 60 0\n", "in.csv:2: found '9223372036854775808'")):
            with self.subTest(part=part):
                self.write(text, "in.csv")
                done = weft_testing.weft("run", "out.yaml", "-o", "x.h5", folder=self.folder)
                self.assertEqual(done.code, weft_testing.EXIT_INPUT, done)
                self.assertIn(part, done.err)

    def test_memory_does_not_follow_a_matrix(self):
        """A hundred times the numbers. As texts or numbers of Python, 640,000 would be 20 MB or more."""
        between = "import resource, subprocess, sys\nsubprocess.run(sys.argv[1:], check=True)\n" \
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        peaks = []
        for ranks in (80, 800):
            self.write((",".join(["1"] * ranks) + "\n") * ranks, "large.csv")
            done = subprocess.run(["/usr/bin/python3", "-c", between, "/usr/bin/python3", "-B",
                                   str(weft_testing.SOURCE / "scripts" / "commands" / "import.py"), "flows", "--matrix",
                                   "large.csv", "-o", "large.yaml", "--for-run"], cwd=self.folder, check=True,
                                  capture_output=True, text=True)
            peaks.append(int(done.stdout))
        self.assertLess(peaks[1], peaks[0] + 4 * 1024, peaks)

    def test_a_chain_of_triggers(self):
        """Each flow starts when its node has received the one before it."""
        text = "Nodes 4\nConnections 3\nTriggers 2\n0->1 id 5 start 1000000 size 4096 send_done_trigger 1\n" \
               "1->2 id 6 trigger 1 size 100 recv_done_trigger 2\n2->3 id 7 trigger 2 size 4096\n" \
               "trigger id 1 oneshot\ntrigger id 2 oneshot\n"
        read, messages = self.imported("htsim", text, "cm")
        first = 1_000_000 + one_way(4096)
        second = first + one_way(100)
        self.assertEqual(sorted(messages["delivered"].tolist()), [first, second, second + one_way(4096)])
        self.assertEqual([one["what"].split(":")[0] for one in read["refused"]], ["send_done_trigger"])

    def test_a_barrier_waits_for_all_and_a_far_trigger_is_a_message(self):
        text = "Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 4096 recv_done_trigger 9\n" \
               "2->1 id 2 start 5000000 size 10 recv_done_trigger 9\n3->0 id 3 trigger 9 size 10\n" \
               "trigger id 9 barrier count 2\n"
        read, messages = self.imported("htsim", text, "cm")
        self.assertEqual(read["operations"], {"send": 5, "recv": 5})
        far = 5_000_000 + one_way(10) + one_way(0)
        last = max(zip(messages["issued"].tolist(), messages["source"].tolist()))
        self.assertEqual(last, (far, 3))

    def test_flows_of_two_nodes_overtake_each_other(self):
        """0->1 of 7 B stands first in the file, and waits for 100,000 B from 2; that of 5,000 B waits for 100 B, which come
        earlier, and sets off 1->2 when it has come, not when the other one has."""
        text = "Nodes 4\nConnections 5\nTriggers 3\n2->0 id 1 start 0 size 100000 recv_done_trigger 1\n" \
               "3->0 id 2 start 0 size 100 recv_done_trigger 2\n0->1 id 3 trigger 1 size 7\n" \
               "0->1 id 4 trigger 2 size 5000 recv_done_trigger 3\n1->2 id 5 trigger 3 size 9\n" \
               "trigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 oneshot\n"
        _, messages = self.imported("htsim", text, "cm")
        at = {size: (issued, delivered) for size, issued, delivered in
              zip(*(messages[key].tolist() for key in ("bytes", "issued", "delivered")))}
        self.assertEqual(at[5000][0], at[100][1])
        self.assertEqual(at[7][0], at[100000][1])
        self.assertLess(at[5000][1], at[7][0])
        self.assertEqual(at[9][0], at[5000][1])

    def test_a_multishot_trigger_sets_off_one_flow_after_another(self):
        text = "Nodes 4\nConnections 4\nTriggers 1\n0->1 id 1 start 0 size 4096 recv_done_trigger 1\n" \
               "2->1 id 2 start 9000000 size 10 recv_done_trigger 1\n1->3 id 3 trigger 1 size 20\n" \
               "1->3 id 4 trigger 1 size 30\ntrigger id 1 multishot\n"
        read, messages = self.imported("htsim", text, "cm")
        issued = dict(zip(messages["bytes"].tolist(), messages["issued"].tolist()))
        self.assertEqual((issued[20], issued[30]), (one_way(4096), 9_000_000 + one_way(10)))
        self.assertEqual([one["what"].split(":")[0] for one in read["refused"]], ["multishot"])

    def test_a_failed_link_is_taken_away(self):
        """Two flows from a pod of two aggregation switches to another one, each over one of them and one of its two cores.
        Without a core link of both all goes over the others, from the beginning: what htsim's NULL in queues_nup_nc means."""
        (self.folder / "tree.topo").write_text("Nodes 16\nTiers 3\nPodsize 4\n" + "".join(
            f"Tier {tier}\nDownlink_speed_Gbps 100\nRadix_Down {4 if tier == 2 else 2}\n"
            f"{'Radix_Up 2' if tier < 2 else ''}\nDownlink_Latency_ns 1000\n" for tier in range(3)))
        text = "Nodes 16\nConnections 2\nFailures 2\n0->12 id 1 start 0 size 400000\n1->13 id 2 start 0 size 400000\n" \
               "failure switch_type AGG switch_id 0 link_id 1\nfailure switch_type AGG switch_id 1 link_id 0\n"
        read, _ = self.imported("htsim", text, "cm", "--topology", "tree.topo", ack="66 B")
        self.assertEqual(read["refused"], [])
        links = table(self.folder / "out.h5", "links")
        # Nodes are 16 hosts and then the switches, 8 of tier 0 and 8 of tier 1; switch 8 has the cores 16 and 18, switch 9
        # the cores 17 and 19.
        sent = {(int(one) - 16, int(other) - 16): int(size) for one, other, size in
                zip(links["from"], links["to"], links["payload_bytes"])}
        down = [(8, 18), (9, 17)]
        for one, other in down:
            self.assertEqual((sent[one, other], sent[other, one]), (0, 0))
        self.assertEqual(sum(sent[link] for link in ((8, 16), (9, 19))), 800_000)
        done = weft_testing.weft("import", "htsim", "in.cm", "--topology", "tree.topo", "-o", "x.yaml", folder=self.folder)
        self.assertEqual(done.code, 0, done)
        self.write(text.replace("switch_id 1 link_id 0", "switch_id 8 link_id 0"), "in.cm")
        done = weft_testing.weft("import", "htsim", "in.cm", "--topology", "tree.topo", "-o", "x.yaml", folder=self.folder)
        self.assertEqual(done.code, weft_testing.EXIT_INPUT, done)
        self.assertIn("has 8 aggregation switches with 2 links each", done.err)

    def test_failures_and_priorities_are_listed(self):
        text = "Nodes 2\nConnections 1\nFailures 1\n0->1 id 1 start 0 size 10 prio 2\n" \
               "failure switch_type AGG switch_id 0 link_id 1\n"
        read, _ = self.imported("htsim", text, "cm")
        self.assertEqual(sorted(one["what"].split(" ")[0] for one in read["refused"]), ["failure", "prio:"])


if __name__ == "__main__":
    unittest.main()
