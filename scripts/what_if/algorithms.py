# SPDX-License-Identifier: GPL-2.0-only
"""Other algorithms of collectives, as settings of an experiment."""

# The algorithms of each kind that MPI libraries and NCCL choose among (docs/reference/collectives.md).
REDUCING = ["ring", "double_binary_tree", "halving_doubling", "recursive_doubling"]
OF_KIND = {
    "all_reduce": REDUCING,
    "all_gather": ["ring", "pat", "recursive_doubling"],
    "reduce_scatter": ["ring", "pat", "halving_doubling"],
    "broadcast": ["ring", "binomial", "scatter_allgather"],
    "reduce": ["ring", "binomial"],
    "all_to_all": ["nccl_p2p", "pairwise", "linear", "bruck"],
}
IN_SERVERS = {"all_reduce": ["hierarchical", "nvls"], "all_gather": ["hierarchical", "nvls"],
              "reduce_scatter": ["hierarchical", "nvls"], "all_to_all": ["hierarchical"]}
OF_NCCL = ["nccl", "nccl_ring", "nccl_tree"]  # choices of NCCL's tuner, with the times of its kernels
PROTOCOLS = ["simple", "ll", "ll128"]
# Kinds of workloads with an algorithm for all their collectives, and the key of that of all-to-alls where it is another.
WORKLOADS = {"collective": "algorithm", "training": "algorithm", "chakra": "algorithm",
             "recommendation": "exchange_algorithm", "astra_sim_text": "all_to_all_algorithm", "program": "algorithm"}
NCCL_STEPS = 8  # of a connection's buffer (NCCL's src/include/device.h)
# With these, a protocol has latencies of its own; without them it only has more bytes.
LATENCIES = ("latencies", "collective_kernel")


class Algorithms:
    """{name: {key of a workload: value}}: other algorithms of the kind of collective on which the job spends most time, more
    channels, and another protocol. `workload` is the job's map, `results` its Results."""

    def __init__(self, workload, results, factor):
        self.workload, self.found = workload, {}
        if self.workload.get("kind") not in WORKLOADS or not results.collectives:
            return
        self.kind = max(results.collectives, key=lambda kind: (results.collectives[kind][0], kind))
        self.used = results.collectives[self.kind][1]
        self.in_servers = "nvlink" in results.links
        self.known = str(self.workload.get("algorithm") or ("nccl" if self.in_servers else "ring"))
        # A tuner chooses channels and protocols for each call.
        if self.known in OF_NCCL:
            self.tuners()
            return
        self.others()
        if self.known not in ("best", "mpich", "open_mpi"):
            self.channels(factor)
            self.slots(results, factor)
            self.protocols()

    def tuners(self):
        """What NCCL_ALGO sets. It has one algorithm for an all-to-all. Other algorithms would lose the times of NCCL's kernels."""
        for name in OF_NCCL if self.kind != "all_to_all" else []:
            if name != self.known:
                self.found[f"collectives by {name}"] = {"algorithm": name}

    def key(self):
        return WORKLOADS[self.workload["kind"]] if self.kind == "all_to_all" else "algorithm"

    def others(self):
        names = OF_KIND.get(self.kind, []) + (IN_SERVERS.get(self.kind, []) if self.in_servers else [])
        for name in names:
            if self.used != {name}:
                self.found[f"{self.kind} by {name}"] = {self.key(): name}

    def channels(self, factor):
        known = str(self.workload.get("channels") or 1)
        if known.isdecimal():
            more = max(round(int(known) * factor), int(known) + 1)
            self.found[f"{more} channels of collectives instead of {known}"] = {"channels": str(more)}

    def slots(self, results, factor):
        """More messages in flight per connection, where ranks wait for free slots at their receivers. NCCL has eight steps in
        flight, so that twice as many are more for each of its algorithms."""
        known = str(self.workload.get("credits") or NCCL_STEPS)
        if results.waits_for_slots and known.isdecimal():
            more = max(round(int(known) * factor), int(known) + 1)
            self.found[f"{more} messages in flight per connection"] = {"credits": str(more)}

    def protocols(self):
        known = self.workload.get("protocol") or "simple"
        if any(self.workload.get(key) not in (None, "none") for key in LATENCIES):
            for name in PROTOCOLS:
                if name != known:
                    self.found[f"protocol {name}"] = {"protocol": name}
