# SPDX-License-Identifier: GPL-2.0-only
"""Profiles of JAX and XLA (jax.profiler): a file for each process, with all its GPUs or TPUs, and the compiled modules."""

import pathlib
import re

from frameworks.gpu_import import add_gpu_arguments, imported_job
from frameworks.timeline import Notes
from importing.errors import InputError, StudyError
from support.console import whole
from support.progress import Progress

from . import programs as modules
from .space import Space
from .steps import Steps
from .timelines import OPS, STREAM, Gpu, Tpu, read_launches

SUMMARY = "profiles of JAX and XLA (*.xplane.pb), a file for each process"
NAMES = ("*.xplane.pb", "*.xplane.pb.gz")
DEVICE = re.compile(r"/device:(GPU|TPU):(\d{1,6})")
HOSTS = ("/host:CPU", "/host:CUPTI", "/host:ROCTRACER")


def add_arguments(parser):
    parser.add_argument("input", metavar="DIR|FILE.xplane.pb", nargs="+", help="a folder of one profile (the log of "
                        "jax.profiler, or plugins/profile/DATE in it), or the files of all processes, in their order")
    add_gpu_arguments(parser)
    parser.add_argument("--hlo", metavar="FILE", action="append", default=[], help="text of a compiled module (--xla_dump_to), "
                        "for profiles without HLO protos; may be repeated")
    parser.add_argument("--device-ids", metavar="N,N,...", type=numbers, help="XLA's numbers of the devices (jax.devices()), in "
                        "the order of files and planes; default: 0, 1, 2, ...")
    parser.add_argument("--step", metavar="N", type=whole, help="of profiles with several steps: on GPUs what the host launched from "
                        "the beginning of step N (jax.profiler.StepTraceAnnotation) to that of the next one, on TPUs what ran then")
    parser.add_argument("--ragged", choices=["even"], help="rows that ragged-all-to-alls send, which are known when the module "
                        "runs: an equal share of the operand to each device")


def numbers(text):
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", text):
        raise ValueError
    return [int(one) for one in text.split(",")]


def in_order(path):
    """host2 before host10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d{1,18})", str(path))]


def files_of(inputs):
    found = []
    for one in map(pathlib.Path, inputs):
        if not one.is_dir():
            found.append(one)
            continue
        folders = {}
        for name in NAMES:
            for path in one.rglob(name):
                folders.setdefault(path.parent, []).append(path)
        if not folders:
            raise InputError(one, None, "there is no profile of XLA (*.xplane.pb) in this folder")
        if len(folders) > 1:
            listed = ", ".join(str(folder.relative_to(one)) for folder in sorted(folders, key=in_order)[:8])
            raise InputError(one, None, f"there are {len(folders)} profiles in this folder ({listed}); give the folder of one, or "
                                        "the files of one")
        found += sorted(next(iter(folders.values())), key=in_order)
    return found


def matches(path):
    try:
        path = files_of([path])[0]
        with Space(path) as space:
            return space.looks_like_one()
    except (InputError, StudyError, OSError):
        return False


class File:
    """A file in its order: its devices, and the modules that it has."""

    def __init__(self, path):
        self.path, self.planes, self.numbers, self.remarks = str(path), [], set(), []
        with Space(path) as space, space.guarded():
            for plane in space.read().planes:
                found = DEVICE.fullmatch(plane.name)
                if found and has_events(plane.read(), found[1]):
                    self.planes.append((found[1], int(found[2]), plane.name))
            self.numbers = modules.Programs(space, {}, None).devices()
            self.remarks = space.remarks
        self.planes.sort()


def has_events(plane, kind):
    """Of a GPU that another process uses there is an empty plane."""
    for line in plane.all_lines():
        if line.name.startswith(STREAM) if kind == "GPU" else line.name == OPS:
            return True
    return False


def read(options):
    paths, progress = files_of(options.input), Progress("weft import", not options.quiet)
    progress.begin(f"reading {len(paths)} profiles", 2 * len(paths))
    files = []
    for path in paths:
        files.append(File(path))
        progress.advance(1)
    count = sum(len(one.planes) for one in files)
    if not count:
        raise InputError(files[0].path, None, "there is no plane of a GPU or TPU with operations (/device:GPU:0, /device:TPU:0); "
                                              "expected a profile of a job on accelerators")
    given = options.device_ids or list(range(count))
    if len(given) != count or len(set(given)) != count:
        raise StudyError(f"--device-ids has {len(set(given))} different numbers of devices, and the profiles have {count} devices")
    devices = modules.Devices()
    for one in files:
        devices.add(one.numbers)
    if devices.numbers and not options.device_ids and not set(given) <= devices.numbers:
        raise InputError(files[0].path, None, f"its modules are of devices {brief(devices.numbers)}, and the profiles have "
                                              f"{count} devices; --device-ids says which they are")
    devices.add(given)
    devices.finish(options.ranks or count, files[0].path)
    texts = modules.texts_of(options.hlo, options.ragged)
    timelines, ignored, assumed, at = [], Notes(), Notes(), 0
    for one in files:
        timelines += read_file(one, given[at:at + len(one.planes)], devices, texts, options, ignored, assumed)
        at += len(one.planes)
        progress.advance(1)
    progress.end()
    imported = imported_job(options, timelines, ignored, "profiles of XLA")
    for one in files:
        for text in one.remarks:
            imported.refuse(one.path, f"the profiler says: {text}")
    for place, text in assumed.lines():
        imported.refuse(place, text)
    return imported


def brief(values):
    listed = sorted(values)
    return f"{', '.join(map(str, listed[:8]))}{', ...' if len(listed) > 8 else ''}"


def read_file(file, given, devices, texts, options, ignored, assumed):
    ragged, unknown_calls = options.ragged, options.unknown_calls
    with Space(file.path) as space, space.guarded():
        planes = {plane.name: plane.read() for plane in space.read().planes if DEVICE.fullmatch(plane.name)
                  or plane.name in HOSTS}
        programs = modules.Programs(space, texts, ragged)
        origin, found = first_time(planes, file), []
        steps = None if options.step is None else Steps(file.path, planes, HOSTS)
        for (kind, ordinal, name), number in zip(file.planes, given):
            device = (Gpu if kind == "GPU" else Tpu)(space, name, number, devices, origin)
            found.append(device)
            device.count_unknown = unknown_calls is not None
            if steps:
                device.select(*steps.window(name if kind == "TPU" else None, options.step))
            device.read(planes[name], programs, assumed)
        gpus = {ordinal: device for (kind, ordinal, _), device in zip(file.planes, found) if kind == "GPU"}
        for name in HOSTS if gpus else ():
            if name in planes:
                read_launches(planes[name], list(gpus.values()), gpus)
        for device in found:
            device.write(assumed)
        for plane in space.planes:
            if "SparseCore" in plane.name:
                ignored.add("planes of SparseCores are left out", file.path)
    return [device.timeline for device in found]


def first_time(planes, file):
    """Of the first event of the first device, in picoseconds."""
    for _, _, name in file.planes:
        for line in planes[name].all_lines():
            for _, _, start, _, _ in line.events():
                if start is not None:
                    return start
    return 0
