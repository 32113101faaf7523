# SPDX-License-Identifier: GPL-2.0-only
"""A chain of flows round a ring of four nodes, as gen_allreduce.py makes them, and one that waits for two."""

MATRIX = """Nodes 4
Connections 5
Triggers 3
0->1 id 1 start 0 size 20000 send_done_trigger 1
1->2 id 2 trigger 1 size 20000 recv_done_trigger 2
2->3 id 3 trigger 2 size 20000 recv_done_trigger 3
0->3 id 4 start 1000000 size 5 recv_done_trigger 3
3->0 id 5 trigger 3 size 7
trigger id 1 oneshot
trigger id 2 oneshot
trigger id 3 barrier count 2
"""


def sample(folder):
    (folder / "ring.cm").write_text(MATRIX)
    return ["ring.cm"]


def counts(folder):
    flows = [line.split() for line in (folder / "ring.cm").read_text().split("\n") if "->" in line]
    total = sum(int(words[words.index("size") + 1]) for words in flows)
    return {"ranks": 4, "operations": {"send": len(flows), "recv": len(flows)}, "bytes": {"send": total, "recv": total}}


def further(folder):
    """Without triggers: ids of any order, and a link that fails, of which the machine is not known."""
    (folder / "plain.cm").write_text("Nodes 4\nConnections 3\nFailures 1\n0->1 id 1 start 0 size 20000\n"
                                     "1->2 id 7 start 5000 size 1\n3->1 id 3 size 0\n"
                                     "failure switch_type AGG switch_id 0 link_id 1\n")
    return ["plain.cm"]


def damaged(folder):
    for what, (old, new) in {"connections": ("Connections 5", "Connections 4"), "no trigger": ("trigger id 2 "
                                                                                               "oneshot\n", ""),
                             "cycle": ("start 0 size 20000", "trigger 3 size 20000"), "count": ("count 2", "count 3"),
                             "node": ("3->0", "3->4"), "itself": ("3->0", "3->3"), "id": ("id 2", "id 1"),
                             "size": (" size 5", "")}.items():
        name = f"{what.replace(' ', '_')}.cm"
        (folder / name).write_text(MATRIX.replace(old, new, 1))
        yield what, [name]
