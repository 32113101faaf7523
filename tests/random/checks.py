# SPDX-License-Identifier: GPL-2.0-only
"""Laws that hold for every results file of any simulation (docs/reference/hdf5_schema.md). Each yields the faults."""

import pathlib
import re
import sys

import h5py
import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "results"))
import schema_test  # noqa: E402
from weft_testing import SOURCE, parts_that_do_not_add_up  # noqa: E402

PROMISES = schema_test.read_schema(SOURCE / "docs/reference/hdf5_schema.md")
MINUS_ONE = re.compile(r"-1 if|, -1 ")
ROUNDING = 1e-9
MIN_TO_GIVE_UP = 30 * 10**12  # ps, with a least timeout of 1 ms
LAWS = {}
LINK_FRAME = 84  # bytes of a pause frame on the wire (IEEE 802.3 clause 31); credits are smaller


def law(function):
    LAWS[function.__name__] = function
    return function


# Packets of a message then travel beside each other, or on another way than that of its flow's hash.
SEVERAL_WAYS = re.compile(r'load_balancing"?: *"?(?!ecmp)|data"?: *"?split|adaptive|ugal|progressive|valiant|failures')


WITHOUT_ACKS = re.compile(r'\back"?: *"?none')


class Results:
    """A results file in memory: tables of columns, and what about the run decides which laws hold."""

    def __init__(self, path):
        self.path = path
        self.tables, self.descriptions = {}, {}
        with h5py.File(path, "r") as file:
            self.complete = bool(file.attrs["complete"])
            self.end = int(file.attrs["simulated_time"])
            self.fingerprint = file.attrs["fingerprint"]
            self.model = dict(file["manifest/model"].attrs)
            experiment = file["manifest/run/effective_experiment"].asstr()[()]
            self.one_way = not SEVERAL_WAYS.search(experiment)
            self.without_acks = bool(WITHOUT_ACKS.search(experiment))
            self.schema_errors = list(schema_test.errors(file, *PROMISES))
            for name, group in file.items():
                if name == "manifest":
                    continue
                self.tables[name] = {column: (data.asstr()[:] if data.dtype.kind == "S" else data[:])
                                     for column, data in group.items()}
                self.descriptions[name] = {column: data.attrs.get("description", "") for column, data in group.items()}
                self.intervals = getattr(self, "intervals", {})
                if "interval" in group.attrs:
                    self.intervals[name] = int(group.attrs["interval"])
        links = self.tables["links"]
        self.ideal = self.model.get("fidelity") in ("ideal", "loggp")  # without packets
        self.all_messages = "messages" in self.tables and self.reported_all()
        self.background = bool(self["jobs"]["background"].any()) if "jobs" in self.tables else False
        self.transfers = "transfers" in self.tables
        # Nothing was on its way: the run was not cut off, also not in the middle of a background job.
        ranks = self.tables["ranks"]
        endless = self.transfers and (self["transfers"]["size"] < 0).any()
        all_received = ranks["messages_sent"].sum() == ranks["messages_received"].sum()
        # The last ACKs of a background job may still be on their way when all of its messages have been received.
        self.quiet_at_the_end = self.complete and not endless and all_received and (not self.background
                                                                                     or self.without_acks)
        # /queue_pairs shows whether something was sent again, where ports have queues by class.
        repeats = "link_classes" in self.tables and ("queue_pairs" not in self.tables
                                                     or self["queue_pairs"]["repeated"].any())
        trimmed = "link_classes" in self.tables and self["link_classes"]["trimmed"].any()
        self.untouched = not (links["lost"].any() or links["dropped"].any() or repeats or trimmed)

    def __getitem__(self, name):
        return self.tables[name]

    def __contains__(self, name):
        return name in self.tables

    def reported_all(self):
        """Not a sample of messages: as many as the ranks have received."""
        if "ranks" not in self.tables:
            return False
        return len(self["messages"]["id"]) == int(self["ranks"]["messages_received"].sum())


def rows_where(wrong, columns, what):
    """The first row for which `wrong` is true, with some of its columns."""
    rows = numpy.flatnonzero(wrong)
    if len(rows):
        row = rows[0]
        values = ", ".join(f"{name} {values[row]}" for name, values in columns.items())
        yield f"{what} in {len(rows)} of {len(wrong)} rows; row {row}: {values}"


def signed(values):
    """As whole numbers that can be subtracted."""
    return values.astype(numpy.int64)


@law
def schema_is_kept(results):
    for error in results.schema_errors:
        # `output.messages: none` leaves that table out.
        if not (error.startswith("/messages/") and error.endswith("not in the file") and "messages" not in results):
            yield error


@law
def numbers_are_numbers(results):
    """Finite, and not below 0, unless -1 has a meaning in the column."""
    for name, table in results.tables.items():
        for column, values in table.items():
            if values.dtype.kind == "f" and not numpy.isfinite(values).all():
                yield from rows_where(~numpy.isfinite(values), {column: values}, f"{name}/{column} is no number")
            if values.dtype.kind in "fi":
                unknown = (MINUS_ONE.search(results.descriptions[name][column]) or column.startswith("slow_link_")
                           or name == "jobs" and column.startswith("part_"))  # of runs beyond the range of a sum
                least = -1 if unknown else 0
                yield from rows_where(values < least, {column: values}, f"{name}/{column} is below {least}")


@law
def times_are_within_the_run(results):
    late = {"messages": ["issued", "delivered"], "ranks": ["finished"], "jobs": ["end"], "collectives": ["start", "end"],
            "operations": ["start", "end"], "transfers": ["connected", "first", "last"], "links_series": ["time"],
            "rates_series": ["time"]}
    for name, columns in late.items():
        for column in columns if name in results else []:
            values = results[name][column]
            if name == "jobs":  # one that was to start after the end has not run
                values = numpy.where(results[name]["start"] > results.end, 0, values)
            yield from rows_where(values > results.end, {column: values}, f"{name}/{column} after the end {results.end}")


@law
def messages_are_in_order(results):
    if "messages" not in results:
        return
    table = results["messages"]
    yield from rows_where(table["delivered"] < table["issued"], table, "delivered before issued")
    yield from rows_where(table["packets"] < 1, table, "no packet")
    delivered, ids = table["delivered"], table["id"]
    again = (delivered[1:] < delivered[:-1]) | ((delivered[1:] == delivered[:-1]) & (ids[1:] <= ids[:-1]))
    yield from rows_where(again, {"delivered": delivered[1:], "id": ids[1:]}, "messages out of order")
    if len(numpy.unique(ids)) < len(ids):
        yield "a message is there twice"


@law
def slowdown_is_at_least_one(results):
    if "messages" not in results:
        return
    table = results["messages"]
    took = table["delivered"] - table["issued"]
    some = table["ideal"] > 0
    computed = numpy.divide(took, table["ideal"], out=numpy.zeros(len(took)), where=some)
    wrong = some & (abs(table["slowdown"] - computed) > 1e-6 * numpy.maximum(1, computed))
    yield from rows_where(wrong, table, "slowdown is not duration / ideal")
    if results.one_way:
        yield from rows_where(table["slowdown"] < 1 - ROUNDING, table, "slowdown below 1")


@law
def waits_are_within_the_message(results):
    """Its last packet cannot wait longer than the message took, nor longer for single links than in all."""
    if "messages" not in results:
        return
    table = results["messages"]
    took = table["delivered"] - table["issued"]
    for column in ("queueing", "paused", "retransmission"):
        yield from rows_where(table[column] > took, table, f"{column} is longer than the message took")
    waits = [table[f"slow_wait_{i}"] for i in (1, 2, 3)]
    yield from rows_where(sum(waits) > table["queueing"], table, "waits for links are longer than queueing")
    yield from rows_where((waits[0] < waits[1]) | (waits[1] < waits[2]), table, "slow links are out of order")
    for i in (1, 2, 3):
        link = table[f"slow_link_{i}"]
        yield from rows_where(link >= len(results["links"]["id"]), table, f"slow_link_{i} is no link")
        yield from rows_where((link < 0) != (waits[i - 1] == 0), table, f"slow_link_{i} and its wait do not match")


@law
def parts_add_up_to_the_time(results):
    """docs/reference/hdf5_schema.md, what times were spent on."""
    for line in parts_that_do_not_add_up(results.path):
        yield line


@law
def causes_come_before(results):
    """What had to come before a message was delivered when that was sent, to its sender or by it. Without
    acknowledgements what its sender sent before had left."""
    if not (results.all_messages and results.complete and "cause" in results["messages"]):
        return
    table = results["messages"]
    some = table["cause"] >= 0
    order = table["id"].argsort()
    place = numpy.searchsorted(table["id"][order], table["cause"][some].astype(numpy.uint64))
    rows = order[numpy.minimum(place, len(order) - 1)]
    effects = {name: column[some] for name, column in table.items()}
    yield from rows_where(table["id"][rows] != effects["cause"].astype(numpy.uint64), effects, "its cause is no message")
    left = results.without_acks & (table["source"][rows] == effects["source"])
    over = numpy.where(left, table["issued"][rows], table["delivered"][rows])
    yield from rows_where(over > effects["issued"], effects, "its cause came later")
    yield from rows_where((table["destination"][rows] != effects["source"]) & (table["source"][rows] != effects["source"]),
                          effects, "its cause has nothing to do with its sender")


@law
def link_waits_are_those_of_messages(results):
    """Of messages that were not sent again, all of which are there."""
    if not ("link_waits" in results and results.all_messages and results.quiet_at_the_end and results.untouched):
        return
    waits, queueing = int(results["link_waits"]["time"].sum()), int(results["messages"]["queueing"].sum())
    if waits != queueing:
        yield f"messages waited {queueing} ps in queues, and /link_waits has {waits} ps"


@law
def stops_have_causes(results):
    """The stops that a switch counts are in /link_pauses for the other direction, each stop with a link that begins at that
    switch. Links with credits have stops there that no switch counts."""
    if "link_pauses" not in results:
        return
    pauses, classes, links = results["link_pauses"], results["link_classes"], results["links"]
    stopped = {(int(link), int(lane)): int(time) for link, lane, time in
               zip(classes["link"] ^ 1, classes["lane"], classes["stopped"]) if time > 0}
    caused = {}
    for link, lane, time in zip(pauses["link"].tolist(), pauses["lane"].tolist(), pauses["time"].tolist()):
        caused[link, lane] = caused.get((link, lane), 0) + time
    paused = {(int(link), int(lane)) for link, lane, sent in
              zip(classes["link"] ^ 1, classes["lane"], classes["pauses_sent"]) if sent > 0}
    caused = {key: time for key, time in caused.items() if time > 0 and (key in paused or key in stopped)}
    if caused != stopped:
        key = min(set(caused.items()) ^ set(stopped.items()))[0]
        yield f"link {key[0]} lane {key[1]}: stopped for {stopped.get(key, 0)} ps, {caused.get(key, 0)} ps have a cause"
    yield from rows_where(links["to"][pauses["link"]] != links["from"][pauses["cause"]], pauses, "not its next link")
    yield from rows_where(pauses["last"] > results.end, pauses, "stopped after the run")


@law
def ranks_and_messages_agree(results):
    """The bytes that ranks sent and received are those of the messages."""
    if "ranks" not in results:
        return
    ranks = results["ranks"]
    if results.all_messages:
        messages = results["messages"]
        count = len(ranks["rank"])
        own = messages["destination"] < count
        received = numpy.bincount(messages["destination"][own], minlength=count)
        into = numpy.bincount(messages["destination"][own], weights=messages["bytes"][own].astype(float), minlength=count)
        yield from rows_where(received != ranks["messages_received"], {**ranks, "delivered": received}, "messages received")
        yield from rows_where(into != ranks["bytes_received"], {**ranks, "delivered": into},
                              "bytes received")
    sent, got = int(ranks["messages_sent"].sum()), int(ranks["messages_received"].sum())
    if got > sent:
        yield f"{got} messages received, {sent} sent"
    if results.complete and not results.background and got != sent:
        yield f"{sent} messages sent, {got} received at the end of a complete run"
    bytes_sent, bytes_got = int(ranks["bytes_sent"].sum()), int(ranks["bytes_received"].sum())
    if results.complete and not results.background and bytes_sent != bytes_got:
        yield f"{bytes_sent} bytes sent, {bytes_got} received at the end of a complete run"


@law
def times_of_ranks_add_up(results):
    if "ranks" not in results:
        return
    table = results["ranks"]
    yield from rows_where(table["exposed"] > table["communication"], table, "more exposed than communication")
    yield from rows_where(table["waiting"] > table["exposed"], table, "more waiting than exposed")
    yield from rows_where(table["compute"] + table["exposed"] + table["idle"] != results.end, table,
                          f"compute, exposed and idle are not the run's {results.end}")


@law
def times_of_jobs_add_up(results):
    if "jobs" not in results:
        return
    table = results["jobs"]
    yield from rows_where(table["end"] < table["start"], table, "a job ends before its start")
    yield from rows_where(table["time"] != table["end"] - table["start"], table, "time is not end - start")
    parts = table["compute"] + table["exposed"] + table["idle"]
    yield from rows_where(abs(parts - table["time"]) > 1 + 1e-9 * table["time"], table,
                          "compute, exposed and idle are not the job's time")
    for column, total in [("messages", "messages_sent"), ("bytes", "bytes_sent")]:
        if "ranks" in results:
            sums = numpy.bincount(results["ranks"]["job"], weights=results["ranks"][total].astype(float),
                                  minlength=len(table["job"]))
            yield from rows_where(sums != table[column], {**table, "of its ranks": sums},
                                  f"{column} of a job are not those of its ranks")


@law
def collectives_are_whole(results):
    if "collectives" not in results:
        return
    table = results["collectives"]
    whole = table["finished_ranks"] == table["ranks"]
    yield from rows_where(table["finished_ranks"] > table["ranks"], table, "more ranks finished than there are")
    if results.complete and not results.background:
        yield from rows_where(~whole, table, "unfinished at the end of a complete run")
    yield from rows_where(whole & (table["time"] != table["end"] - table["start"]), table, "time is not end - start")
    yield from rows_where(table["end"] < table["start"], table, "ends before its start")
    if results.all_messages and results.complete and not results.background:
        messages = results["messages"]
        own = messages["collective"] >= 0
        number = numpy.bincount(messages["collective"][own], minlength=len(table["id"]))
        volume = numpy.bincount(messages["collective"][own], weights=messages["bytes"][own].astype(float),
                                minlength=len(table["id"]))
        yield from rows_where(number < table["messages"], {**table, "found": number}, "messages are missing")
        yield from rows_where(volume != table["sent_bytes"], {**table, "found": volume},
                              "bytes of messages are not those that were sent")


@law
def links_are_not_overloaded(results):
    table = results["links"]
    if not results.ideal:  # there as many messages as like share a link
        yield from rows_where(table["utilization"] > 1 + ROUNDING, table, "utilization above 1")
        yield from rows_where(table["busy"] > results.end, table, "busy for longer than the run")
    if results.end:
        computed = table["busy"] / results.end
        yield from rows_where(abs(computed - table["utilization"]) > 1e-6, table, "utilization is not busy / time")
    if not results.ideal:
        yield from rows_where(table["mean_queue"] > table["peak_queue"] * (1 + ROUNDING), table, "mean queue above the peak")
    yield from rows_where(table["payload_bytes"] > table["bytes"], table, "more payload than bytes")
    yield from rows_where(table["data_packets"] > table["packets"], table, "more data than packets")
    yield from rows_where(table["lost"] > table["packets"], table, "more lost than sent")


@law
def bytes_take_their_time(results):
    """At the line rate at most, or, where a failure made the link slower, for longer. Of what was on its way at the end,
    bytes count whose time on the link would have come later. `bytes` are of frames of a network, and links of servers
    may have a framing of their own, with less beside the payload."""
    if not results.quiet_at_the_end:
        return
    table = results["links"]
    inside = numpy.isin(table["link_class"], ["nvlink", "pcie"])
    least = numpy.where(inside, table["payload_bytes"], table["bytes"]).astype(float) * 8e12 / table["rate"]
    yield from rows_where(table["busy"] < least - table["packets"] - 1, table, "bytes took less than at the line rate")


def node_sums(links, column, at, nodes):
    return numpy.bincount(links[at], weights=links[column].astype(float), minlength=nodes)


@law
def switches_neither_make_nor_keep(results):
    """Packets with payload that arrived have left, or were dropped; at the end of a complete run without faults all."""
    links = results["links"]
    if results.ideal or results.transfers:  # the ideal network has no switches, and TCP's packets are counted apart
        return
    nodes = int(max(links["from"].max(), links["to"].max())) + 1
    into, out = node_sums(links, "data_packets", "to", nodes), node_sums(links, "data_packets", "from", nodes)
    hosts = int(results.model["hosts"])
    switch = numpy.arange(nodes) >= hosts
    columns = {"node": numpy.arange(nodes), "in": into, "out": out}
    yield from rows_where(switch & (out > into), columns, "a switch sent more data packets than came in")
    if results.complete and not results.background and results.untouched:
        yield from rows_where(switch & (out != into), columns, "a switch kept data packets")
        payload_in, payload_out = (node_sums(links, "payload_bytes", at, nodes) for at in ("to", "from"))
        yield from rows_where(switch & (payload_in != payload_out),
                              {"node": numpy.arange(nodes), "in": payload_in, "out": payload_out}, "payload changed")


@law
def hosts_send_what_messages_hold(results):
    """Without faults a host sends each byte once, and gets each once; with faults at least once."""
    if results.ideal or not results.all_messages or not results.complete or results.background:
        return
    links, messages = results["links"], results["messages"]
    nodes = int(max(links["from"].max(), links["to"].max())) + 1
    hosts = (messages["id"] >> numpy.uint64(32)).astype(numpy.int64)
    held = numpy.bincount(hosts, weights=messages["bytes"].astype(float), minlength=nodes)
    sent = node_sums(links, "payload_bytes", "from", nodes)
    host = numpy.arange(nodes) < int(results.model["hosts"])
    columns = {"node": numpy.arange(nodes), "held": held, "sent": sent}
    yield from rows_where(host & (sent < held), columns, "a host sent less payload than its messages hold")
    if results.untouched:
        yield from rows_where(host & (sent != held), columns, "a host sent other payload than its messages hold")
    into = node_sums(links, "payload_bytes", "to", nodes)
    if results.untouched and into[host].sum() != held.sum():
        yield f"hosts received {into[host].sum():.0f} bytes of payload, messages hold {held.sum():.0f}"


@law
def classes_are_those_of_links(results):
    if "link_classes" not in results:
        return
    classes, links = results["link_classes"], results["links"]
    count = len(links["id"])
    sums = lambda column: numpy.bincount(classes["link"], weights=classes[column].astype(float), minlength=count)  # noqa: E731
    yield from rows_where(sums("packets") > links["packets"], {**links, "of classes": sums("packets")},
                          "classes sent more packets than their link")
    yield from rows_where(sums("dropped") > links["dropped"], {**links, "of classes": sums("dropped")},
                          "classes dropped more packets than their link")
    yield from rows_where(sums("bytes") > links["bytes"], {**links, "of classes": sums("bytes")},
                          "classes sent more bytes than their link")
    for column in ("paused", "stopped"):
        yield from rows_where(classes[column] > results.end, classes, f"{column} for longer than the run")


@law
def queue_pairs_deliver(results):
    if "queue_pairs" not in results or "receivers" not in results or not results.quiet_at_the_end:
        return
    senders, receivers = results["queue_pairs"], results["receivers"]
    acknowledged, received = int(senders["packets"].sum()), int(receivers["packets"].sum())
    if acknowledged != received:
        yield f"{acknowledged} packets acknowledged, {received} received in order"
    if "ranks" in results and results.all_messages:
        held = int(results["messages"]["bytes"].sum())
        if int(senders["bytes"].sum()) != held:
            yield f"queue pairs posted {int(senders['bytes'].sum())} bytes, messages hold {held}"
        packets = int(results["messages"]["packets"].sum())
        if acknowledged != packets:
            yield f"{acknowledged} packets acknowledged, messages have {packets}"
    links = results["links"]
    if not results.transfers:
        hosts = int(results.model["hosts"])
        sent = int(links["data_packets"][links["from"] < hosts].sum())
        if sent != acknowledged + int(senders["repeated"].sum()):
            yield f"hosts sent {sent} data packets, {acknowledged} of them once and {int(senders['repeated'].sum())} again"


@law
def series_sum_up_to_links(results):
    if "links_series" not in results:
        return
    series, links = results["links_series"], results["links"]
    interval = results.intervals["links_series"]
    yield from rows_where(series["utilization"] > 1 + ROUNDING, series, "utilization above 1")
    begin = signed(series["interval"]) * interval
    length = series["time"] - begin
    yield from rows_where((length <= 0) | (length > interval), series, "time is not within its interval")
    key = signed(series["interval"]) * len(links["id"]) + series["link"]
    yield from rows_where(key[1:] <= key[:-1], {"interval": series["interval"][1:], "link": series["link"][1:]},
                          "rows out of order")
    busy = numpy.bincount(series["link"], weights=series["utilization"] * length, minlength=len(links["id"]))
    room = 1 + 1e-6 * links["busy"] + 2 * numpy.bincount(series["link"], minlength=len(links["id"]))
    yield from rows_where(abs(busy - links["busy"]) > room, {**links, "of series": busy}, "series and busy differ")
    # A pause frame or credit that is being sent counts for the series, and for no peak.
    link_frame = LINK_FRAME if "link_classes" in results else 0
    yield from rows_where(series["queue"] > links["peak_queue"][series["link"]] + link_frame, series,
                          "a queue above the link's peak")


@law
def rates_are_possible(results):
    if "rates_series" not in results:
        return
    series, links = results["rates_series"], results["links"]
    interval = results.intervals["rates_series"]
    begin = signed(series["interval"]) * interval
    length = series["time"] - begin
    yield from rows_where((length <= 0) | (length > interval), series, "time is not within its interval")
    fastest = {node: rate for node, rate in zip(links["from"], links["rate"])}
    most = numpy.array([fastest[host] for host in series["host"]], dtype=float) * length / 8e12
    yield from rows_where(series["sent"] > most + 70_000, {**series, "possible": most}, "more sent than the link can")


@law
def depths_are_ordered(results):
    if "queue_depths" not in results:
        return
    table = results["queue_depths"]
    yield from rows_where((table["p50"] > table["p90"]) | (table["p90"] > table["p99"]) | (table["p99"] > table["p999"]),
                          table, "percentiles out of order")
    yield from rows_where(table["p999"] > table["peak"] * 17 / 16 + 63, table, "a percentile above the peak")
    yield from rows_where(table["mean"] > table["peak"] * (1 + ROUNDING), table, "mean above the peak")
    yield from rows_where(table["occupied"] > results.end, table, "occupied for longer than the run")


@law
def transfers_arrive(results):
    if "transfers" not in results:
        return
    table = results["transfers"]
    sized = table["size"] >= 0
    yield from rows_where(sized & (table["bytes"] > table["size"]), table, "more bytes read than there are")
    if results.complete:  # or TCP has given up, after pauses that double 15 times
        silent = results.end - numpy.maximum(table["last"], table["start"])
        lacking = sized & (table["bytes"] != table["size"]) & (silent < MIN_TO_GIVE_UP)
        yield from rows_where(lacking, table, "not all delivered in a complete run")
    some = table["bytes"] > 0
    yield from rows_where(some & (table["first"] < table["start"]), table, "read before the start")
    yield from rows_where(table["last"] < table["first"], table, "the last before the first")
    if "transfers_series" in results:
        series = results["transfers_series"]
        sums = numpy.bincount(series["transfer"], weights=series["bytes"].astype(float), minlength=len(table["transfer"]))
        yield from rows_where(sums != table["bytes"], {**table, "of series": sums}, "series and bytes differ")


@law
def operations_are_in_order(results):
    if "operations" not in results:
        return
    table = results["operations"]
    yield from rows_where(table["end"] < table["start"], table, "an operation ends before its start")
    key = signed(table["rank"]) * (1 << 40) + signed(table["operation"])
    yield from rows_where(key[1:] <= key[:-1], {"rank": table["rank"][1:], "operation": table["operation"][1:]},
                          "operations out of order")


@law
def operations_wait_for_what_is_before(results):
    """An operation starts when the one that it waited for has ended, or, of kind 1, has started. Operations that had not ended
    with the run have no row."""
    if "dependencies" not in results:
        return
    table, waits = results["operations"], results["dependencies"]
    rows = {key: row for row, key in enumerate(zip(table["rank"].tolist(), table["operation"].tolist()))}
    for rank, operation, after, kind in zip(*(waits[name].tolist() for name in ("rank", "operation", "after", "kind"))):
        waiting, before = rows.get((rank, operation)), rows.get((rank, after))
        if waiting is None or (before is None and kind == 1):
            continue
        if before is None or table["start"][waiting] < table["start" if kind == 1 else "end"][before]:
            yield f"operation {operation} of rank {rank} starts before {after}, for which it waits (kind {kind})"


def violations(results):
    """(law, fault) of a file that has been read."""
    with numpy.errstate(all="ignore"):
        return [(name, text) for name, check in LAWS.items() for text in check(results)]


def check_file(path):
    return violations(Results(path))
