# SPDX-License-Identifier: GPL-2.0-only
"""ASTRA-sim's system layer as options of weft's collectives. Keys are those that Sys::initialize_sys reads
(github.com/astra-sim/astra-sim, astra-sim/system/Sys.cc)."""

import json

from importing.errors import InputError, did_you_mean, read_text, real_number, whole_number
from importing.imported import Map

KINDS = {"all-reduce": "all_reduce", "all-gather": "all_gather", "reduce-scatter": "reduce_scatter",
         "all-to-all": "all_to_all"}
ALGORITHMS = {"ring": "ring", "direct": "direct", "halvingDoubling": "halving_doubling",
              "doubleBinaryTree": "double_binary_tree", "oneRing": "one_ring", "oneDirect": "one_direct",
              "oneHalvingDoubling": "one_halving_doubling"}
DEAD = {"intra-dimension-scheduling", "inter-dimension-scheduling", "boost-mode"}  # documented, but not read by ASTRA-sim
REPORTS = {"track-local-mem", "local-mem-trace-filename", "trace-enabled"}
BUS = ("L", "o", "g", "G", "local-reduction-delay")
KNOWN = {f"{name}-implementation" for name in KINDS} | {f"{name}-implementation-custom" for name in KINDS} | DEAD | \
    REPORTS | set(BUS) | {"scheduling-policy", "collective-optimization", "active-chunks-per-dimension",
                          "preferred-dataset-splits", "endpoint-delay", "model-shared-bus", "peak-perf", "local-mem-bw",
                          "roofline-enabled", "replay-only", "per-node-custom-implementation"}


def load_json(path):
    """A JSON object of a file; errors have their line."""
    text = read_text(path)
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(path, error.lineno, f"it is not JSON: {error.msg}") from None
    if not isinstance(value, dict):
        raise InputError(path, 1, "expected a JSON object")
    return value, text


class System:
    """A system file; `dimensions` are those of the logical topology."""

    def __init__(self, path, dimensions, imported):
        self.path, self.dimensions, self.imported = path, dimensions, imported
        self.keys, self.text = load_json(path)

    def line(self, key):
        at = self.text.find(f'"{key}"')
        return self.text.count("\n", 0, at) + 1 if at >= 0 else None

    def place(self, key):
        return f"{self.path}:{self.line(key) or 1}"

    def error(self, key, text):
        return InputError(self.path, self.line(key), text)

    def whole(self, key, usual, least=0):
        return whole_number(self.keys.get(key, usual), self.path, self.line(key), key, least, 2**31 - 1)

    def number(self, key, usual=0.0):
        return real_number(self.keys.get(key, usual), self.path, self.line(key), key)

    def one_of(self, key, allowed, usual):
        value = self.keys.get(key, usual)
        if value not in allowed:
            raise self.error(key, f"{key}: found '{value}'{did_you_mean(value, allowed)}; expected "
                                  f"one of {', '.join(allowed)}")
        return value

    def algorithms(self, kind):
        """Algorithms of each dimension, in weft's names. None if the file does not name them."""
        key = f"{kind}-implementation"
        if key not in self.keys:
            return None
        found = self.keys[key]
        if not isinstance(found, list) or not found or not all(isinstance(one, str) for one in found):
            raise self.error(key, f"{key}: expected a list of names, one for each dimension")
        names = [self.algorithm(key, one) for one in found]
        if not names[0].startswith("one_") and len(names) != len(self.dimensions):
            raise self.error(key, f"{key}: found {len(names)} algorithms, but there are {len(self.dimensions)} logical "
                                  "dimensions")
        return names[:1] if names[0].startswith("one_") else names

    def algorithm(self, key, name):
        plain = name.rstrip("0123456789")
        if plain not in ALGORITHMS or (plain != name and plain not in ("direct", "oneDirect")):
            raise self.error(key, f"{key}: unknown algorithm '{name}'{did_you_mean(name, ALGORITHMS)}; expected "
                                  f"one of {', '.join(ALGORITHMS)}")
        window = name[len(plain):]
        if window and (window[0] == "0" or len(window) > 9):
            raise self.error(key, f"{key}: found '{name}'; expected a window of 1 or more")
        return ALGORITHMS[plain] + window

    def collectives(self):
        """Options of weft's collectives, as keys of a workload."""
        options = Map()
        options.put("algorithm", "by_dimension", "ASTRA-sim's collectives (docs/reference/collectives.md), from "
                                                 f"{self.path}.")
        options.put("dimensions", self.dimensions, "The logical topology, the first dimension fastest.")
        found = {name: names for kind, name in KINDS.items() if (names := self.algorithms(kind))}
        self.refuse_impossible(found)
        lists = list(found.values())
        if found:
            same = all(one == lists[0] for one in lists) and len(found) == len(KINDS)
            options.put("dimension_algorithms", lists[0] if same else found, "*-implementation")
        self.add_chunks(options)
        self.add_times(options)
        return options

    def refuse_impossible(self, found):
        for name, names in found.items():
            key = f"{name.replace('_', '-')}-implementation"
            for size, one in zip(self.dimensions, names):
                plain = one.removeprefix("one_").rstrip("0123456789")
                if plain == "double_binary_tree" and name != "all_reduce":
                    raise self.error(key, f"{key}: doubleBinaryTree is for all-reduce alone")
                if plain == "halving_doubling" and name == "all_to_all":
                    raise self.error(key, f"{key}: halvingDoubling has no all-to-all, there as here")
                total = self.ranks() if one.startswith("one_") else size
                if plain in ("double_binary_tree", "halving_doubling") and total & (total - 1):
                    raise self.error(key, f"{key}: {one} on {total} NPUs; expected a power of two")

    def ranks(self):
        product = 1
        for size in self.dimensions:
            product *= size
        return product

    def add_chunks(self, options):
        splits = self.whole("preferred-dataset-splits", 1, 1)
        active = self.whole("active-chunks-per-dimension", 1, 1)
        options.put("splits", splits, "preferred-dataset-splits: chunks of a collective, each of which goes through "
                                      "the dimensions by itself")
        options.put("channels", max(1, min(active, splits)),
                    "active-chunks-per-dimension: so many are under way in each dimension")
        if self.one_of("collective-optimization", ["baseline", "localBWAware"], "baseline") == "baseline":
            options.put("each_dimension_whole", True, "collective-optimization: baseline")
        self.one_of("scheduling-policy", ["LIFO", "FIFO", "EXPLICIT"], "FIFO")
        if "scheduling-policy" in self.keys:
            self.imported.ignore(self.place("scheduling-policy"),
                                 "scheduling-policy: it has no effect, because a rank has one collective at a time "
                                 "(Workload::issue_dep_free_nodes), whose chunks are equal")

    def add_times(self, options):
        delay = self.whole("endpoint-delay", 10)
        if delay:
            options.put("step_latency", f"{delay / 2:g} ns",
                        f"endpoint-delay: {delay} ns for each message, half where it is sent, half where it comes in")
        rate = self.number("local-mem-bw")
        if rate > 0:
            options.put("reduce_rate", f"{rate / 3:.6g} GB/s",
                        f"local-mem-bw: {rate:g} GB/s; what comes in to be reduced is read twice and written once")

    def list_others(self):
        """Keys of the file without effect, or without a counterpart in weft."""
        for key in sorted(self.keys.keys() & DEAD):
            self.imported.ignore(self.place(key), f"{key}: ASTRA-sim does not read it")
        for key in sorted(self.keys.keys() & REPORTS):
            self.imported.ignore(self.place(key), f"{key}: it concerns reports of ASTRA-sim")
        for key in sorted(self.keys.keys() - KNOWN):
            self.imported.ignore(self.place(key), f"{key}: ASTRA-sim has no such key")
        shared = str(self.keys.get("model-shared-bus", 0)) == "1"
        for key in (*BUS, "model-shared-bus"):
            if key not in self.keys:
                continue
            if shared:
                self.imported.refuse(self.place(key), f"{key}: weft has no memory bus in LogGP")
            else:
                self.imported.ignore(self.place(key), f"{key}: ASTRA-sim uses it only with model-shared-bus")
        if self.keys.get("replay-only"):
            self.imported.refuse(self.place("replay-only"), "replay-only: weft simulates collectives; they take the "
                                                            "time of the network")
        if not self.keys.get("roofline-enabled"):
            for key in ("peak-perf",):
                if key in self.keys:
                    self.imported.ignore(self.place(key), f"{key}: ASTRA-sim uses it only with roofline-enabled")

    def device(self):
        """A device file for the roofline, or None: text."""
        if not self.keys.get("roofline-enabled"):
            return None
        peak, rate = self.number("peak-perf"), self.number("local-mem-bw")
        if peak <= 0 or rate <= 0:
            raise self.error("roofline-enabled", "roofline-enabled needs peak-perf and local-mem-bw above 0")
        self.imported.refuse(self.place("roofline-enabled"), "roofline-enabled: weft computes the time of compute "
                                                             "nodes without a duration; the others keep theirs")
        return (f"# {self.path}: peak-perf and local-mem-bw (astra-sim/system/Roofline.cc).\n"
                f"name: NPU of {self.path}\npeak: {{bf16: {peak:g} TFLOP/s}}\nefficiency: 1\n"
                f"memory_bandwidth: {rate:g} GB/s\nmemory: 1 TB\n")
