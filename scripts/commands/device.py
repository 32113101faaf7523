# SPDX-License-Identifier: GPL-2.0-only
# weft device NAME | fit TABLE.csv..   a device's rates, or constants as measured (docs/reference/compute_times.md)
"""Shows the rates that kernels reach on a device inside a long step, by size, as a table and as a drawing, and where
they hold. `weft device fit` makes the constants from measured kernels."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from support.console import Parser, guarded  # noqa: E402
from support.errors import EnvironmentFailure, StudyError, did_you_mean  # noqa: E402
from support.input_files import cannot_open, read_text  # noqa: E402
from support.output_files import refuse_input  # noqa: E402

DEVICES = pathlib.Path(__file__).resolve().parents[2] / "workloads" / "devices"


def read_device(name):
    """A ready-made device by its name, or a file."""
    import yaml

    from devices.rates import Device

    path = pathlib.Path(name)
    if path.suffix != ".yaml":
        path = DEVICES / f"{name}.yaml"
        if not path.exists():
            known = sorted(file.stem for file in DEVICES.glob("*.yaml"))
            raise StudyError(f"{name}: no such device{did_you_mean(name, known)}; known here: {', '.join(known)}; use one of "
                             "them, or the path of a file.yaml")
    text = read_text(path)
    try:
        data = yaml.safe_load(text)
        return Device(data), data
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"missing key {error}" if isinstance(error, KeyError) else error
        raise StudyError(f"{path}: no device file: {what}") from error


def show_command():
    parser = Parser(prog="weft device", description=__doc__)
    parser.add_argument("device", metavar="NAME", help="a ready-made device, or a file.yaml")
    parser.add_argument("--draw", metavar="FILE", help="curves as .svg, .png or .pdf")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    if options.draw:
        refuse_input(options.draw, [options.device])
    from devices.showing import as_json, as_text, draw

    device, _ = read_device(options.device)
    if device.sustained is None and (options.json or options.draw):
        raise StudyError(f"{options.device}: it has no 'sustained': one efficiency for all kernels, and no curve; "
                         "'weft device fit' makes it from measurements")
    print(as_json(device) if options.json else as_text(device))
    if options.draw:
        try:
            draw(device, options.draw)
        except (OSError, ValueError) as error:
            raise EnvironmentFailure(f"cannot write {options.draw}: {error}") from error
    return 0


def fit_command():
    parser = Parser(prog="weft device fit", description="""Constants of a device file from tables of measured kernels.
        Shapes whose hash is divisible by three are held out: the printed errors are those of these shapes.""")
    parser.add_argument("tables", metavar="TABLE.csv", nargs="+",
                        help="GEMMs, attention, memory kernels and layers of experts, told apart by their columns")
    parser.add_argument("-o", "--output", metavar="FILE.yaml", required=True, help="the device file")
    parser.add_argument("--device", metavar="NAME", required=True,
                        help="peaks, bandwidth and memory come from this ready-made device or file.yaml, and what the "
                             "tables do not have")
    parser.add_argument("--gpu", help="of a table of several, only the rows of this one")
    parser.add_argument("--units", type=int, help="multiprocessors (those of the device's 'sustained')")
    parser.add_argument("--measured-bandwidth", metavar="RATE",
                        help="of the device whose memory kernels were measured, if it is another one: '1935 GB/s'")
    options = parser.parse_args(sys.argv[2:])
    refuse_input(options.output, [*options.tables, options.device])
    from devices.fitted import fitted
    from devices.tables import TableError, read

    device, data = read_device(options.device)
    try:
        tables = [read(path, options.gpu) for path in options.tables]
        units = options.units or (device.sustained or {}).get("gemms", {}).get("units")
        if not units:
            raise StudyError("expected --units: how many multiprocessors the device has")
        text = fitted(device, data, tables, units, options.tables, options.measured_bandwidth)
    except (TableError, UnicodeDecodeError) as error:
        raise StudyError(str(error)) from error
    except ValueError as error:
        raise StudyError(str(error)) from error
    except OSError as error:
        raise StudyError(f"{error.filename}: {cannot_open(error.filename) or error.strerror}") from error
    try:
        pathlib.Path(options.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise EnvironmentFailure(f"cannot write {options.output}: {error.strerror}") from error
    return 0


if __name__ == "__main__":
    sys.exit(guarded(fit_command if sys.argv[1:2] == ["fit"] else show_command))
