# SPDX-License-Identifier: GPL-2.0-only
"""Differences between the inputs of two runs."""

from weft_results import ResultsError

ABSENT = "absent"
# They do not change results, or are shown elsewhere.
LEFT_OUT = {"output.file"}
LAST = ("output", "simulation.partition")


def flattened(value, prefix=""):
    """{key: text}, such as {"topology.link_rate": "400 Gb/s", "workload.jobs[a].start": "100 us"}."""
    if isinstance(value, dict) and value:
        parts = [(f"{prefix}.{name}" if prefix else str(name), inner) for name, inner in value.items()]
    elif isinstance(value, list) and value:
        parts = [(f"{prefix}[{place}]", inner) for place, inner in zip(places(value), value)]
    else:
        return {prefix: text_of(value)}
    found = {}
    for name, inner in parts:
        found |= flattened(inner, name)
    return found


def places(items):
    """Entries of a list are identified by their names if all are different, otherwise by their numbers."""
    names = [str(item["name"]) if isinstance(item, dict) and "name" in item else None for item in items]
    return names if None not in names and len(set(names)) == len(names) else range(len(items))


def text_of(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    return {None: "none"}.get(value, str(value)) if not isinstance(value, (dict, list)) else str(value)


def experiment_keys(run):
    experiment = run.experiment
    return flattened(experiment) if isinstance(experiment, dict) else {}


def model_keys(run):
    """Facts of the model, including those from files that the experiment names."""
    model = {f"model: {name}": str(value) for name, value in run.attributes_of("manifest/model").items()}
    version = run.attributes_of("manifest").get("version")
    return model | ({"version of weft": str(version)} if version else {})


def has_entries(keys, key):
    """True if a list or map that is empty in one run has entries among the keys of the other."""
    return any(other.startswith((f"{key}[", f"{key}.")) for other in keys)


def differing(first, second):
    """[{key, first, second}] in the order of the first run, followed by the other keys of the second."""
    keys = [key for key in dict.fromkeys([*first, *second]) if key not in LEFT_OUT
            and not has_entries(second if key in first else first, key)]
    keys.sort(key=lambda key: key.startswith(LAST))
    return [{"key": key, "first": first.get(key, ABSENT), "second": second.get(key, ABSENT)}
            for key in keys if first.get(key) != second.get(key)]


def input_differences(first, second):
    """(differences, notes). Facts of the model are shown only if no key of the experiment shows the same."""
    notes = []
    try:
        found = differing(experiment_keys(first), experiment_keys(second))
    except ResultsError as error:
        found, notes = [], [f"The experiments were not compared: {error}."]
    told = {(one["first"], one["second"]) for one in found}
    models = differing(model_keys(first), model_keys(second))
    return found + [one for one in models if (one["first"], one["second"]) not in told], notes
