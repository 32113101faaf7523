# SPDX-License-Identifier: GPL-2.0-only
"""A ring of four ranks: each sends 4,096 B to the next after 1 us of its own, and then computes half of it."""

RANKS, SIZE = 4, 4096


def text():
    lines = [f"num_ranks {RANKS}"]
    for rank in range(RANKS):
        lines += [f"rank {rank} {{", "a: calc 1000", f"b: send {SIZE}b to {(rank + 1) % RANKS} tag 3",
                  f"c: recv {SIZE}b from {(rank - 1) % RANKS} tag 3", "d: calc 500", "b requires a", "d requires c",
                  "}"]
    return "\n".join(lines) + "\n"


def sample(folder):
    (folder / "ring.goal").write_text(text())
    return ["ring.goal"]


def counts(folder):
    lines = (folder / "ring.goal").read_text().split("\n")
    kinds = {kind: [line for line in lines if f" {kind} " in line] for kind in ("calc", "send", "recv")}
    return {"ranks": int(lines[0].split()[1]),
            "operations": {"compute": len(kinds["calc"]), "send": len(kinds["send"]), "recv": len(kinds["recv"])},
            "bytes": {kind: sum(int(line.split()[2].rstrip("b")) for line in kinds[kind]) for kind in ("send", "recv")}}


def damaged(folder):
    for what, (old, new) in {"not GOAL": ("num_ranks 4", "ranks 4"), "no such label": ("d requires c", "d requires e"),
                             "sizes differ": ("c: recv 4096b", "c: recv 4095b"), "cut": (text()[60:], "")}.items():
        name = f"{what.replace(' ', '_')}.goal"
        (folder / name).write_text(text().replace(old, new, 1))
        yield what, [name]
