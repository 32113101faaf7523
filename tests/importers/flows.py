# SPDX-License-Identifier: GPL-2.0-only
"""Three flows between five ranks."""

TABLE = "# three flows\nstart,source,destination,bytes\n0,0,4,4096\n2.5 us,1,4,10000\n100,3,2,1\n"


def sample(folder):
    (folder / "flows.csv").write_text(TABLE)
    return ["flows.csv"]


def counts(folder):
    rows = [line.split(",") for line in (folder / "flows.csv").read_text().strip().split("\n")[2:]]
    total = sum(int(row[3]) for row in rows)
    return {"ranks": 1 + max(int(row[2]) for row in rows), "operations": {"send": len(rows), "recv": len(rows)},
            "bytes": {"send": total, "recv": total}}


def further(folder):
    """HPCC's flow file."""
    (folder / "flow.txt").write_text("2\n0 1 3 100 1000 2.000001\n1 0 3 100 3000 2.0\n")
    return ["flow.txt"]


def damaged(folder):
    for what, (old, new) in {"itself": ("0,0,4", "0,4,4"), "bytes": ("4096", "4096.5"), "time": ("2.5 us", "2.5 h"),
                             "columns": ("bytes", "octets"), "missing": (",10000", ""), "empty": (TABLE, ""),
                             "negative": ("0,0,4", "0,-1,4")}.items():
        (folder / f"{what}.csv").write_text(TABLE.replace(old, new, 1))
        yield what, [f"{what}.csv"]
    (folder / "ragged.csv").write_text("0,1,2\n3,0\n4,5,0\n")
    yield "ragged matrix", ["--matrix", "ragged.csv"]
