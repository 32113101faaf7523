# SPDX-License-Identifier: GPL-2.0-only
from oracles.wire import Network, quantity

SOURCE = "Dally, Towles 2004, section 3.3.2"


def distances(k):
    """Sum of the distances from one node of a ring to all."""
    return k * k // 4


def check(case):
    bounds, hops = [], []
    for dims in ([4, 4, 4], [8, 8], [5, 5]):
        n = 1
        for k in dims:
            n *= k
        run, experiment = case.run({"topology.dims": dims})
        rate = quantity(experiment["topology"]["link_rate"])
        wire = Network.of(experiment).wire(quantity(experiment["workload"]["size"]))
        # The traffic of each node has n/k distances(k) hops in a dimension; n nodes use the 2 n links of this
        # dimension.
        busiest = max(n // k * distances(k) * wire / 2 for k in dims)
        bounds.append((round(busiest * 8 * 10**12 / rate), run.time))
        for d, k in enumerate(dims):
            inside = run.links["link_class"] == f"dimension {d}"
            hops.append((n * (n // k) * distances(k) * wire, run.links["bytes"][inside].sum()))
    case.at_least("last byte, 4 x 4 x 4, 8 x 8, 5 x 5: n k m / 8 B, n (k^2-1) m / (8 k B)", bounds)
    case.exact_all("bytes on all links of a dimension: every way is as short as it can be", hops, "B")
