# SPDX-License-Identifier: GPL-2.0-only
SOURCE = "Patarasuk, Yuan 2009"


def check(case):
    files = case.root / "workloads"
    paths = {"workload.model": str(files / "models" / "gpt2.json"), "workload.device": str(files / "devices" / "h100-sxm.yaml")}
    whole, _ = case.run(paths)
    # A rank sends as much as among all copies: with n of D copies every buffer is (D-1)/D / ((n-1)/n) as large, rounded
    # up, so that each call sends at most a few bytes more.
    calls = len(whole.collectives["id"])
    for copies in (2, 4):
        some, _ = case.run({**paths, "workload.symmetry": {"data": copies}})
        ranks = 2 * copies
        sent = zip(whole.ranks["bytes_sent"][:ranks], some.ranks["bytes_sent"], strict=True)
        triples = [(of_all, calls, of_some) for of_all, of_some in sent]
        worst = max(triples, key=lambda triple: abs(triple[2] - triple[0]))
        case.within(f"bytes of each rank, {copies} of 8 copies", [worst], "B", 0)
        error = 100 * (some.time / whole.time - 1)
        case.compare(f"step time with {copies} of 8 copies", f"{whole.time:,} ps", f"{some.time:,} ps", f"{error:+.2f} %")
