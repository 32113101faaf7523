# SPDX-License-Identifier: GPL-2.0-only
"""The bound of the run, its place, faults of links, and possible improvements: at most four sentences, each
from numbers of the file."""

from functools import cached_property

import numpy as np

import weft_results
from report_page.attribution import CONGESTION, TITLES, JobParts, category
from report_page.demands import BUSY, LONG_WAITS, OF_SERVERS, Demands, bytes_of_jobs, queued
from support.grids import choices, same_way
from support.routings import BETWEEN_DIMENSIONS, BY_HASH, BY_THEMSELVES, alternatives

from report_page.values import bytes_text, percent, rate_text, ratio, time_text

# Below this share of the time of messages, or of a job, queues and pauses are no congestion: ACKs and the packets of
# the message itself also cause short waits on an idle network.
NOTEWORTHY = 0.02
STRAGGLER = 0.05
# Smaller shares are not mentioned.
SHOWN = 0.005
# Waits at the sender that congestion makes longer: acknowledgements and slots arrive late, and messages wait behind
# others.
FOLLOWS = ("window", "own", "credits", "sending")

ADVICE = {
    "queueing": "more or faster links there, another placement of ranks, {paths}or fewer senders at a time may help",
    "pause": "larger buffers (`{buffer}`), or marking by ECN that slows senders before they are paused, may help",
    "retransmission": "larger buffers, lossless classes (`network.flow_control`), or quicker recovery may help",
    "reordering": "paths of more equal length and load, by another load balancing (`network.load_balancing`) or more links, may "
                  "help",
    "slowed": "until then another placement of ranks, or paths around it, may help",
    "pacing": "other thresholds or increases of congestion control (`network.congestion_control`) may help",
}

# Beside the advice on pacing and pauses, where the link is not that of a destination: flows share it by their placement and paths.
OTHER_PATHS = "another placement of ranks, {paths}"
# Where the link is that of a destination, all paths end there.
SENDERS = "fewer senders at a time, less data to it, or a faster link may help; other paths would not"
# Packets that were sent and did not arrive.
ON_WIRES = "a link without errors and failures, {timer}or quicker recovery (`network.recovery`) may help"
# Failures that a sentence lists.
MOST_FAULTS = 3
# Below this utilization of all links their rates hardly matter.
IDLE_LINKS = 0.1
# From this share on latencies are most of what messages take.
MOST_LATENCY = 0.5


class Verdict:
    """`kind` is the bound of the run in one word, `sentences` describe it. `path` is what critical_path() gives."""

    def __init__(self, facts, path=None):
        self.facts = facts
        # Of several jobs it may be the path of another one.
        self.path = self.path_of(path["sums"]) if path and len(facts.jobs.names) == 1 else {}
        self.job = self.longest_job()
        self.parts = JobParts(facts.run, facts.jobs, self.job)
        self.demands = Demands(facts, self.job, self.job_time(), self.parts)
        self.shares = self.congestion_by_kind()
        self.congested = self.is_congested()
        largest = self.what_is_largest()
        self.kind = self.what_bounds(largest)
        self.at_edge = self.kind in CONGESTION and self.kind != "slowed" and self.parts.exact and self.demands.edge_bounds()
        # It follows from one link or rank, not from means.
        self.by_demand = self.at_edge or self.kind != largest
        self.sentences = [text for text in (self.bound(), self.place(), self.faults(), self.advice()) if text]

    @staticmethod
    def path_of(sums):
        """{category: share} of the critical path."""
        whole, found = sum(time for _, time in sums), {}
        for name, time in sums:
            found[category(name)] = found.get(category(name), 0.0) + ratio(time, whole)
        return found

    def longest_job(self):
        run = self.facts.run
        if not run.has("jobs", "time"):
            return 0
        time = run.column("jobs", "time").astype(np.float64)
        if run.has("jobs", "background"):
            time = np.where(run.column("jobs", "background") != 0, -1, time)
        return int(time.argmax()) if len(time) else 0

    def congestion_by_kind(self):
        """{kind: share}: of the job's time if the file has its parts, otherwise of the time of messages."""
        if self.parts.exact and self.parts.total:
            return {name: self.parts.share(name) for name in CONGESTION}
        return self.of_messages()

    def of_messages(self):
        sums = self.facts.messages.sums
        return {name: ratio(sums[column], sums["duration"]) for name, column in
                (("queueing", "queueing"), ("pause", "paused"), ("retransmission", "retransmission"))}

    def is_congested(self):
        return sum(self.shares.values()) >= NOTEWORTHY or self.bottleneck() is not None

    def bottleneck(self):
        """The row of the link that was busy with packets waiting; without ports of hosts, which queue their own
        packets."""
        links, messages = self.facts.links, self.facts.messages
        # A file without rows of messages does not tell by how much they were delayed.
        known = messages.sums["duration"] > 0
        if links.count == 0 or known and ratio(messages.sums["excess"], messages.sums["duration"]) < NOTEWORTHY:
            return None
        found = queued(links)
        return int(np.where(found, links.values["mean_queue"], -1).argmax()) if found.any() else None

    def worst_congestion(self):
        """The largest kind of congestion; if a job's parts are waits that congestion caused, the kind from messages."""
        shares = self.shares if any(self.shares.values()) else self.of_messages()
        worst = max(shares, key=lambda name: shares[name])
        # Messages that share a slow link queue there behind each other.
        queued_at = self.facts.delays.order[:1] if worst == "queueing" else []
        return "slowed" if queued_at and queued_at[0] == self.slowed() else worst

    def what_bounds(self, largest):
        """What is largest, unless a single link, or a single rank's window, alone takes more of the time than that can."""
        if largest in (None, "nothing", "straggler") or not self.parts.exact:
            return largest
        # Such waits are no consequence of congestion.
        if self.demands.window_bounds():
            return "window"
        if largest in CONGESTION:
            return "slowed" if self.demands.edge_bounds() and self.demands.edge_row == self.slowed() else largest
        if self.demands.host_bounds():
            return "host"
        if not self.demands.link_bounds():
            return "compute" if self.demands.compute_bounds() and largest != "local" else largest
        row, links = self.demands.row, self.facts.links
        if row == self.slowed():
            return "slowed"
        # At a host what waits is what it sends or gets anyway.
        return "queueing" if queued(links)[row] and links.link_class[row] not in OF_SERVERS and not self.is_edge(row) else "transfer"

    def what_is_largest(self):
        if not self.parts.total:
            return self.worst_congestion() if self.congested else "nothing"
        # Under congestion, ranks are idle that have ended before the slowest one.
        delays = CONGESTION + (*self.follows(), "idle") * self.congested
        shares = {name: self.parts.share(name) for name in self.parts.sums if name not in delays}
        # Without computation, ranks that have begun wait for what others do, which parts of these tell.
        if not self.parts.share("compute") and "peers" in shares:
            shares["peers"] = min(shares["peers"], self.for_late_ranks())
        largest = max(shares, key=lambda name: shares[name]) if shares else None
        if self.parts.exact and self.congested and self.parts.share(*CONGESTION, *self.follows()) >= shares.get(largest, 0):
            return self.worst_congestion()
        if largest == "exposed" and self.congested:
            return self.worst_congestion()
        waits = largest in ("compute", "credits", "exposed", "idle", "peers")
        return "straggler" if waits and self.others_wait() and self.explains_waits() else largest

    def follows(self):
        """Where nothing is computed, ranks wait for each other because of the network, too, if it delays some of them by much."""
        return (*FOLLOWS, "peers") if not self.parts.share("compute") and self.delays_some() else FOLLOWS

    def delays_some(self):
        """Whether a link is busy, or some messages are delayed by something else than short queues, of which few are enough."""
        return self.bottleneck() is not None or self.worst_congestion() not in ("queueing", "reordering")

    def for_late_ranks(self):
        """Share of the job's time that its ranks waited for others that had not begun yet."""
        run = self.facts.run
        return ratio(float(run.column("jobs", "waiting")[self.job]), self.job_time()) if run.has("jobs", "waiting") else 1.0

    def waiting(self):
        """Mean time of ranks that they may have waited for other ranks. Slots are not free at a rank that has not begun,
        and so on at the ranks before it."""
        return self.parts.share("peers", "credits", "exposed", "idle") * self.job_time()

    def others_wait(self):
        """Whether there is a straggler, and ranks wait on average for half of the time that it computes longer, or nothing takes
        as long as its compute: in a ring, whose messages go on meanwhile, few waits are seen."""
        straggler = self.straggler()
        return straggler is not None and (self.waiting() > straggler[1] / 2 or self.demands.compute_bounds())

    def explains_waits(self):
        """Whether that time is a third of all waits: in the bubble of a pipeline ranks wait for longer."""
        return self.straggler()[1] > self.waiting() / 3

    def straggler(self):
        """(rank, how much longer than the median of its job it computed), if that is much of the run."""
        run = self.facts.run
        if not run.has("ranks", "rank", "compute"):
            return None
        rank, compute = run.columns("ranks", "rank", "compute")
        mine = self.facts.jobs.of_rank(rank.astype(np.int64)) == self.job
        if mine.sum() < 2:
            return None
        rank, compute = rank[mine], compute[mine].astype(np.float64)
        late = compute.max() - np.median(compute)
        # Stages of a pipeline differ in groups; a straggler is alone.
        alone = (compute > np.median(compute) + late / 2).sum() <= max(len(compute) // 8, 1)
        return (int(rank[compute.argmax()]), late) if alone and late > STRAGGLER * run.end else None

    def network_saves(self):
        """What no network can save more of than: a run takes as long as its rank that computes longest."""
        run = self.facts.run
        if not run.has("ranks", "rank", "compute"):
            return (1 - self.parts.share("compute")) * self.job_time()
        rank, compute = run.columns("ranks", "rank", "compute")
        mine = self.facts.jobs.of_rank(rank.astype(np.int64)) == self.job
        return max(self.job_time() - float(compute[mine].max(initial=0)), 0.0)

    def job_name(self):
        return f"job {self.facts.jobs.names[self.job]}" if len(self.facts.jobs.names) > 1 else "the run"

    def job_time(self):
        run = self.facts.run
        return float(run.column("jobs", "time")[self.job]) if run.has("jobs", "time") and run.rows("jobs") else run.end

    def portion(self, name):
        return f"{time_text(self.parts.share(name) * self.job_time())}, {percent(self.parts.share(name))}"

    def bound(self):
        whole = f"{self.job_name()}, which takes {time_text(self.job_time())}"
        if self.kind in (None, "nothing"):
            return f"The file does not say what bounds {whole}."
        if self.by_demand and self.kind == "window":
            return (f"{self.title('window')} bounds {whole}: rank {self.demands.rank} waits for them for "
                    f"{percent(self.demands.waits)} of it, though what it sends waits in no long queues.")
        if self.at_edge or self.by_demand and self.kind in ("queueing", "transfer"):
            row, share = (self.demands.edge_row, self.demands.edge) if self.at_edge else (self.demands.row, self.demands.link)
            # Others' messages, placement and paths change what goes over links inside the network.
            alone = not self.guest[0] if self.at_edge else self.is_edge(row) and len(self.facts.jobs.names) == 1
            same = "" if alone else ", with the same traffic there,"
            return (f"A busy link bounds {whole}: {self.facts.links.name(row)} ({self.facts.links.link_class[row]}) was busy for "
                    f"{percent(share)} of it, so that{same} all else together can save at most "
                    f"{self.rest(share)}{self.mostly()}{self.also_a_straggler()}.")
        if self.by_demand and self.kind == "compute":
            return (f"Compute of one rank bounds {whole}: rank {self.demands.slowest} computes, or serves storage, for "
                    f"{percent(self.demands.compute)} of it, so that all else together can save at most "
                    f"{self.rest(self.demands.compute)}{self.mostly()}.")
        if self.kind == "host" and self.demands.host_bounds():
            return (f"Launches bound {whole}: the host of rank {self.demands.launching} launches kernels and collectives for "
                    f"{percent(self.demands.host)} of it, so that all else together can save at most "
                    f"{self.rest(self.demands.host)}{self.mostly()}.")
        if self.parts.exact and self.kind in CONGESTION:
            return self.delayed(whole)
        if self.kind == "straggler":
            rank, late = self.straggler()
            return (f"One rank bounds {whole}: rank {rank} computes {time_text(late)} longer than the median, because it is "
                    "slower or has more work.")
        if self.parts.exact or not self.parts.total:
            share = self.parts.share(self.kind) if self.parts.total else self.shares.get(self.kind, 0)
            rest = sorted((name for name in self.parts.sums if name != self.kind and self.parts.share(name) >= SHOWN),
                          key=lambda name: -self.parts.share(name))
            others = ", ".join(f"{TITLES[name]} {percent(self.parts.share(name))}" for name in rest[:2])
            on_path = f", and {percent(self.path.get(self.kind, 0))} of its critical path" if self.path else ""
            return (f"{self.title(self.kind)} bounds {whole}: {percent(share)} of it{f' ({others})' if others else ''}{on_path}"
                    f"{self.also_a_straggler()}.")
        text = f"compute {self.portion('compute')}; exposed communication {self.portion('exposed')}"
        if self.kind in CONGESTION:
            return (f"Exposed communication slowed by congestion, mostly {TITLES[self.kind]}, bounds {whole} ({text}; "
                    f"{TITLES[self.kind]} is {percent(self.shares[self.kind])} of the time of messages).")
        return f"{self.title(self.kind)} bounds {whole} ({text})."

    def is_edge(self, row):
        return bool(self.facts.links.leaves_host()[row] or self.facts.links.reaches_host()[row])

    def rest(self, share):
        return time_text((1 - share) * self.job_time())

    def mostly(self):
        """What the ranks spend most time on, and what delays messages."""
        names = sorted((name for name in self.parts.sums if self.parts.share(name) >= SHOWN), key=lambda name: -self.parts.share(name))
        names = names[:2] + [name for name in names[2:] if name in CONGESTION]
        return f" (mean of ranks: {', '.join(f'{TITLES[name]} {percent(self.parts.share(name))}' for name in names)})" if names else ""

    def also_a_straggler(self):
        if self.straggler() is None:
            return ""
        rank, late = self.straggler()
        waited = ", and others wait for it" if self.others_wait() else ""
        return f"; rank {rank} computes {time_text(late)} longer than the median{waited}"

    def delayed(self, whole):
        """Delays in the network, and waits that follow from them."""
        share = self.parts.share
        delays = sorted((name for name in (*CONGESTION, *self.follows()) if share(name) >= SHOWN),
                        key=lambda name: (name != self.kind, -share(name)))
        listed = ", ".join(f"{TITLES[name]} {percent(share(name))}" for name in delays[:3])
        compute = f", {percent(share('compute'))} compute" if share("compute") >= SHOWN else ""
        cause = "A link that is slower than it should be" if self.kind == "slowed" else f"Congestion, mostly {TITLES[self.kind]},"
        on_path = f", and of its critical path {percent(self.on_path())}" if self.path else ""
        saves = self.demands.network_saves()
        # The slow link itself may be the busiest one.
        if self.kind == "slowed" or share(*delays) <= saves + SHOWN:
            return f"{cause} bounds {whole}: {percent(share(*delays))} of it are delays ({listed}){on_path}{compute}."
        # Of messages that are handed over at once all but the first wait behind others on an idle network, too.
        return (f"{cause} delays {whole}, by at most {time_text(saves * self.job_time())}, {percent(saves)}{self.besides()} "
                f"(mean of ranks: {listed}){on_path}{compute}.")

    def besides(self):
        """The link of a host for which a job takes long even without congestion, if that is the longest such resource."""
        row, demands = self.demands.edge_row, self.demands
        if row is None or demands.edge < max(demands.compute, demands.host):
            return ""
        return f", because what has to pass {self.facts.links.name(row)} keeps it busy for {percent(demands.edge)} of it"

    def on_path(self):
        """Share of the critical path that congestion delays; without it what the ranks of the job were delayed on average."""
        return sum(self.path.get(name, 0.0) for name in CONGESTION) if self.path else sum(self.shares.values())

    @staticmethod
    def title(kind):
        text = TITLES[kind]
        return text[0].upper() + text[1:]

    def place(self):
        if not self.congested:
            return f"No congestion was found: {self.calm()}."
        link = self.link()
        if link is None:
            return "Congestion was found, but the file does not say at which links."
        several = len(self.facts.jobs.names) > 1
        group = self.facts.collectives.most_delayed(self.facts.messages.excess_of_collective)
        lost = (f"; {group['kind']} of {group['ranks']} ranks and {bytes_text(group['bytes'])}"
                f"{' of job ' + group['job'] if several else ''} was delayed most") if group and self.waits_there(group, link) else ""
        found = "A slow link was found" if self.row_of(link) == self.slow_link() else "Congestion was found"
        return (f"{found}: {link['name']} ({link['class']}){self.cause(link)}it was busy for "
                f"{percent(link['utilization'])} of the run and its queue reached {bytes_text(link['peak_queue'])}"
                f"{lost}.")

    def waits_there(self, group, link):
        """Whether the job of a group of collectives is one whose messages waited for the link."""
        return len(self.facts.jobs.names) == 1 or any(name == group["job"] for name, _ in link["waiting"])

    def cause(self, link):
        """What the link did."""
        row = self.row_of(link)
        if row == self.slow_link():
            return f" sent {self.slower(row)}; "
        if row == self.root_of_stops():
            return f" had links stopped for {time_text(self.facts.stops[row])} in all; "
        if row == self.lossy():
            return f" lost {int(self.facts.links.missing()[row]):,} packets; "
        if row == self.pacing_link():
            return " was the busiest link; "
        if not link["delay"]:
            return f"{self.others(link)} "
        jobs = " and ".join(f"{name} ({percent(share)})" for name, share in (link["front"] or link["waiting"])[:2])
        several = len(self.facts.jobs.names) > 1
        who = f", {'behind' if link['front'] else 'to'} packets of {jobs}" if several and jobs else ""
        span = f", mostly between {time_text(link['from'])} and {time_text(link['to'])}"
        return f"{self.others(link)} caused {percent(link['share'])} of the delay at links{who}{span}; "

    def row_of(self, link):
        return int(np.flatnonzero(self.facts.links.id == link["id"])[0])

    def root_of_stops(self):
        """The row of the link at which most stops begin, if pauses are the largest congestion; else None."""
        stops = self.facts.stops
        return int(stops.argmax()) if self.worst_congestion() == "pause" and stops.any() else None

    def lossy(self):
        """The row of the link that lost most packets, if retransmissions are the largest congestion; else None."""
        missing = self.facts.links.missing()
        return int(missing.argmax()) if self.worst_congestion() == "retransmission" and missing.any() else None

    def pacing_link(self):
        """The row of the busiest link behind hosts at which the job waited, if senders are mostly held to their rates, which leaves short queues;
        else None."""
        used = np.where(self.facts.links.leaves_host(), 0, self.facts.links.values["utilization"])
        # Of several jobs others may have busier links. Last packets of paced messages may have waited nowhere: then those of its hosts count.
        mine = self.facts.delays.waiting[:, self.job] > 0
        mine = mine if mine.any() else self.to_hosts()
        used = np.where(mine, used, 0) if mine.any() else used
        return int(used.argmax()) if self.worst_congestion() == "pacing" and used.any() else None

    def to_hosts(self):
        """Which links end at hosts of the job, if it is one of several."""
        run, links = self.facts.run, self.facts.links
        if len(self.facts.jobs.names) < 2 or not run.has("ranks", "rank", "node"):
            return np.zeros(links.count, dtype=bool)
        rank, node = (column.astype(np.int64) for column in run.columns("ranks", "rank", "node"))
        return np.isin(links.target, node[self.facts.jobs.of_rank(rank) == self.job])

    def slow_link(self):
        """The same as slowed(), if slow links are the largest congestion; else None."""
        return self.slowed() if self.worst_congestion() == "slowed" else None

    def slower(self, row):
        rate, longer = self.facts.slowed[row]
        usual = self.facts.links.values["rate"][row]
        # What was sent twice may still be on its way when the job has ended.
        longer = min(longer, self.job_time() * (1 - rate / usual))
        return f"at {rate_text(rate)} instead of {rate_text(usual)}, for {time_text(longer)} longer"

    def slowed(self):
        """The row of the link that sent below its rate for longest, if that is much of the run; else None. Of both directions
        of a link the one that caused more delay."""
        slowed, delay = self.facts.slowed, self.facts.delays.of_link
        worst = max(slowed, key=lambda row: (slowed[row][1], delay[row]), default=None)
        return worst if worst is not None and slowed[worst][1] > NOTEWORTHY * self.facts.run.end else None

    def faults(self):
        """A link that the experiment slows down, and one that lost packets, unless the sentence on congestion says so."""
        links, texts = self.facts.links, []
        row = self.slowed()
        if row is not None and row != self.slow_link():
            texts.append(f"{links.name(row)} sent {self.slower(row)}")
        lost = links.values["lost"]
        if self.lossy() is None and lost.any() and self.shares.get("retransmission", 0) >= NOTEWORTHY:
            texts.append(f"{links.name(int(lost.argmax()))} lost {int(lost.max()):,} packets")
        texts += self.down()
        return f"Faults were found: {'; '.join(texts)}." if texts else None

    def down(self):
        """Links and switches that the experiment lets fail."""
        with weft_results.open(self.facts.run.path) as run:
            if "failures" not in run.experiment_text:
                return []
            try:
                entries = (run.experiment.get("network") or {}).get("failures") or []
            except weft_results.ResultsError:  # without PyYAML
                return []
        entries = [entry for entry in entries if isinstance(entry, dict) and "rate" not in entry]
        names = [" – ".join(map(str, entry["link"])) if isinstance(entry.get("link"), list) else
                 str(entry.get("link") or entry.get("switch") or entry.get("class")) for entry in entries]
        times = [f"from {entry.get('at')}" + (f" to {entry['until']}" if "until" in entry else " on") for entry in entries]
        more = [f"{len(entries) - MOST_FAULTS} more were down"] if len(entries) > MOST_FAULTS else []
        return [f"{name} was down {time}" for name, time in zip(names[:MOST_FAULTS], times)] + more

    def others(self, link):
        """Text with the number of links with similar delay."""
        of_link = self.facts.delays.of_link
        count = int((of_link >= link["delay"] / 2).sum()) - 1 if link["delay"] else 0
        return f", worst of {count + 1} that are about as bad," if count else ""

    def calm(self):
        together = percent(sum(self.shares.values()))
        of_what = "the job's time" if self.parts.exact and self.parts.total else "the time of messages"
        if str(self.facts.run.attribute("manifest/model", "fidelity", "")) == "ideal":
            return "the network was simulated as an ideal one, in which nothing waits"
        if not self.parts.exact and self.facts.messages.seen == 0:
            return "no queue stood for long, as far as a file without messages says"
        return f"queueing, pauses and retransmissions are {together} of {of_what}"

    def link(self):
        """The link that is to blame for stops or lost packets, if these are the largest congestion; otherwise the one that
        caused most delay; if messages name none, the one with the longest mean queue."""
        delays = self.facts.delays
        for row in (self.slow_link(), self.root_of_stops(), self.lossy(), self.pacing_link()):
            if row is not None:
                return delays.row(row)
        if delays.order:
            return delays.row(delays.order[0])
        row = self.bottleneck()
        return delays.row(row) if row is not None else None

    def advice(self):
        if self.by_demand and self.kind == "window":
            return ("A larger window (`network.window`) may help, by at most "
                    f"{time_text(self.demands.window_saves() * self.job_time())}; faster links would not.")
        if self.at_edge:
            return self.edge_advice()
        others = ("compute", "local", "peers", "straggler", "host", "idle", "transfer")
        if self.kind in ADVICE or (self.congested and self.kind not in others):
            kind = self.kind if self.kind in ADVICE else self.worst_congestion()
            return f"{self.where_advice(kind)}{self.remedy(kind)}{self.at_most(kind)}."
        busiest = self.facts.links.values["utilization"].max(initial=0)
        latency = self.latency()
        if self.kind == "transfer" and (0 < busiest < IDLE_LINKS or latency):
            share = f", and latencies are {percent(latency)} of the time of messages" if latency else ""
            return (f"Links were busy for at most {percent(busiest)} of the run{share}, so that latencies count: an algorithm with "
                    "fewer steps, fewer and larger messages, or shorter ways may help.")
        most = time_text(self.network_saves())
        late = time_text(self.straggler()[1]) if self.kind == "straggler" else ""
        texts = {
            "compute": f"Faster devices, lower precision or less recomputation may help{self.what_it_waits_for()}; a better network "
                       f"would save at most {most}.",
            "exposed": "Faster links, another algorithm or protocol of the collectives, or more overlap with compute "
                       f"may help, by at most {most}.",
            "transfer": f"Faster links, less data, {self.shorter_ways()}or more overlap with compute may help"
                        f"{self.what_it_waits_for() if self.parts.share('compute') >= LONG_WAITS else ''}.",
            "straggler": "Less work for that rank, such as fewer blocks in its stage of a pipeline, or a faster one, would help "
                         f"all that wait for it, by at most {late}.",
            "peers": "A more even distribution of work may help, and in a pipeline more micro-batches or another schedule.",
            "host": "CUDA graphs (`workload.cuda_graphs`), fused kernels (`workload.framework`), larger micro-batches, which need fewer "
                    f"launches, or a faster host may help, by at most {time_text(self.demands.host_saves() * self.job_time())}.",
            "idle": "More micro-batches or another schedule may fill the idle time.",
            "credits": "More or larger slots of the protocol (`workload.credits`, `chunk_size`), or more channels, may help.",
            "window": "A larger window (`network.window`) may help.",
            "sending": "Faster links, less data, or more overlap with compute may help.",
            "own": "More channels or NICs, or fewer messages at a time, may help.",
            "local": "Another algorithm or protocol of the collectives, more channels (`workload.channels`), larger messages or fewer "
                     "launches may help.",
        }
        text = texts.get(self.kind)
        return f"{text[:-1]}{self.against_waits(texts)}{self.against_straggler()}{self.against_delays()}." if text else None

    def against_waits(self, texts):
        """What may help beside against the longest waits on the critical path that congestion does not cause: means over ranks
        hide them, as few ranks wait for slots or behind their own messages, and all others for these ranks."""
        # Messages that wait behind others at a link that is busy for long wait for its rate, and not for more channels.
        waits = ("credits", "window") if self.demands.edge >= BUSY else ("credits", "own", "window")
        share, name = max((self.path.get(name, 0.0), name) for name in waits)
        if share < LONG_WAITS or self.kind != "transfer":
            return ""
        text = texts[name].removesuffix(" may help.").removesuffix(",")
        return f"; against {TITLES[name]}, {percent(share)} of the critical path, {text[0].lower()}{text[1:]}"

    @cached_property
    def guest(self):
        """The job that has most of what has to pass the busiest link of a host, beside the job of the verdict, and its share; ("", 0)
        if no other job has much of it."""
        if len(self.facts.jobs.names) < 2:
            return "", 0.0
        sizes = bytes_of_jobs(self.facts, self.demands.edge_row)
        shares = np.delete(sizes, self.job) / max(sizes.sum(), 1)
        if shares.max(initial=0) < LONG_WAITS:
            return "", 0.0
        return str(np.delete(np.array(self.facts.jobs.names, dtype=object), self.job)[shares.argmax()]), float(shares.max())

    def against_straggler(self):
        """What a slow rank may save where it is not the limit."""
        if self.kind in ("straggler", "compute") or self.straggler() is None:
            return ""
        rank, late = self.straggler()
        return f"; less work for rank {rank}, or a faster one, by at most {time_text(late)}"

    def edge_advice(self):
        """Of a link of a host that is busy all the time: other paths, and senders that hold back, change nothing."""
        row, links = self.demands.edge_row, self.facts.links
        of_class = links.values["rate"][links.link_class == links.link_class[row]].max()
        slower = links.values["rate"][row] < of_class
        rates = (f"That link has {rate_text(links.values['rate'][row])}, and others of its class have {rate_text(of_class)}: "
                 if slower else "")
        towards = links.reaches_host()[row]
        host = links.target_name[row] if towards else links.source_name[row]
        guest, share = self.guest
        apart = f"job {guest}, which has {percent(share)} of what passes it, at another place, " if guest else ""
        text = f"only {apart}less data {'to' if towards else 'from'} {host}, or a faster link, would help by more"
        return f"{rates}{text if slower else text[0].upper() + text[1:]}."

    def remedy(self, kind):
        """What may help against a kind of congestion."""
        links, link = self.facts.links, self.link()
        row = self.row_of(link) if link else None
        routing, paths = (self.other_routings(), self.other_paths()) if not self.evenly_busy(row) else ("", "")
        if kind == "retransmission" and links.values["lost"].sum() > links.values["dropped"].sum():
            return ON_WIRES.format(timer=self.timer())
        at_host = row is not None and links.reaches_host()[row]
        if kind in ("pause", "pacing") and self.fills(row):
            kind = "queueing"
        if kind == "queueing" and at_host:
            return SENDERS
        # Pauses between switches that a load balancing does not know.
        others = (kind == "pacing" or kind == "pause" and routing) and row is not None and not at_host
        return (f"{OTHER_PATHS if others else ''}{'or ' if others and kind == 'pacing' else ''}{ADVICE[kind]}").format(
            paths=f"{paths}, " if paths else "", buffer=self.buffer())

    def timer(self):
        """The timer of recovery, if it has expired: on lossless links it is that of RDMA software, 67 ms, which is for losses at the end
        of what is in flight."""
        run = self.facts.run
        expired = int(run.column("queue_pairs", "timeouts").sum()) if run.has("queue_pairs", "timeouts") else 0
        return f"a shorter timer (`network.go_back_n.timeout`, or that of another recovery), which expired {expired:,} times, " if expired else ""

    def evenly_busy(self, row):
        """Whether all links of its class are about as busy, so that other paths of the same lengths save little."""
        if row is None:
            return False
        links = self.facts.links
        # Messages that cannot take a ring the other way stay on the links of their way.
        there = same_way(links, row) if self.choices[1] < LONG_WAITS else links.link_class == links.link_class[row]
        busy = links.values["busy"][there]
        return bool(busy.mean() > (1 - LONG_WAITS) * busy.max())

    def routing(self):
        return str(self.facts.run.attribute("manifest/model", "routing", ""))

    @cached_property
    def choices(self):
        """On tori and grids the shares of the delay of messages that another order of dimensions, or the other way around a ring, may
        avoid: traffic along one dimension has neither."""
        return choices(self.facts.run, self.facts.links)

    def other_routings(self):
        """Text that names routings to try."""
        names = [f"`{name}`" for name in alternatives(self.routing())
                 if name not in BETWEEN_DIMENSIONS or self.choices[0] >= LONG_WAITS]
        return f"another routing ({' or '.join(names).replace('`', '`network.routing: ', 1)})" if names else ""

    def other_paths(self):
        """What may choose better paths, an empty text if nothing may."""
        known, routing = self.routing(), self.other_routings()
        if known in BY_HASH:
            balancing = "" if known.endswith("_minimal_lanes") else "a path for each packet (`network.load_balancing: spray`)"
        elif known in BY_THEMSELVES:
            balancing = ""
        else:
            # In tori and grids load balancing chooses between both ways around.
            either = known.startswith("dimension") and self.choices[1] >= LONG_WAITS
            no_other = not routing and not known.startswith("dimension")
            balancing = "better load balancing (`network.load_balancing`)" if no_other or either else ""
        return ", ".join(text for text in (routing, balancing) if text)

    def buffer(self):
        """The key of the buffers that stop links when they are full."""
        with weft_results.open(self.facts.run.path) as run:
            try:
                network = run.experiment.get("network") or {}
            except (weft_results.ResultsError, AttributeError):  # without PyYAML
                network = {}
        return "network.credit.buffer" if network.get("flow_control") == "credit" else "network.buffer"

    def fills(self, row):
        """Whether a link inside the network is busy nearly all the time, so that only less traffic there helps, or more links."""
        return row is not None and not self.is_edge(row) and self.demands.link > 1 - LONG_WAITS

    def at_most(self, kind):
        """How much a better use of the same links can save. More or faster links could save more."""
        link = self.link()
        if link is not None and self.fills(self.row_of(link)):
            return ""
        known = self.parts.exact and kind in ("pause", "pacing", "retransmission", "reordering")
        return f", by at most {time_text(self.demands.network_saves() * self.job_time())}" if known else ""

    def against_delays(self):
        """What may help beside, where congestion is not the limit."""
        share = self.on_path()
        # Means over ranks hide most of it.
        hidden = self.kind == "transfer" or not self.path and self.kind in ("local", "peers")
        if not self.congested or share < (NOTEWORTHY if hidden else LONG_WAITS):
            return ""
        where = "of the critical path" if self.path else "of it"
        return f"; and against delays by congestion, {percent(share)} {where}: {self.remedy(self.worst_congestion())}"

    def latency(self):
        """The share of latencies in the time of messages, if that is most of it, and no link is busy for so long; else None."""
        sums = self.facts.messages.sums
        share = ratio(sums["latency"], sums["alone"])
        rates_count = self.demands.link > self.parts.share("transfer") / 2
        return share if share >= MOST_LATENCY and not rates_count else None

    def shorter_ways(self):
        """Where latencies are most of what messages take, though a link is busy for long, both count."""
        sums = self.facts.messages.sums
        many = ratio(sums["latency"], sums["alone"]) >= MOST_LATENCY and not self.demands.edge_bounds()
        return "fewer steps of the algorithm, shorter ways, " if many else ""

    def what_it_waits_for(self):
        """What may help beside less compute where ranks wait much for their hosts, a rank for acknowledgements, or ranks for each
        other, as in the bubble of a pipeline."""
        if self.parts.share("host") >= LONG_WAITS:
            return (f", and against {self.portion('host')}, of waiting for the host CUDA graphs (`workload.cuda_graphs`) or fused "
                    "kernels")
        if self.demands.window_saves() >= LONG_WAITS:
            return (f", and against {time_text(self.demands.waits * self.job_time())} for which rank {self.demands.rank} waits for "
                    "acknowledgements a larger window (`network.window`)")
        if self.parts.share("peers") < LONG_WAITS:
            return ""
        return (f", and against {self.portion('peers')}, of waiting for peers more even work, or more micro-batches or another "
                "schedule of a pipeline")

    def where_advice(self, kind):
        link = self.link()
        row = self.row_of(link) if link else None
        if row in self.facts.slowed:
            return "That link is slower than it should be, and repairing it helps first; "
        if kind != "queueing" or link is None:
            return "What to try first: "
        fastest = self.facts.links.slower(row)
        if fastest is None and self.facts.links.reaches_host()[row]:
            return f"Many send to {self.facts.links.target_name[row]} at once: "
        if len(link["waiting"]) > 1:
            return "Jobs share that link, so that placing them apart helps first; "
        if fastest is not None:
            return (f"That link has {rate_text(self.facts.links.values['rate'][row])}, and links before it have "
                    f"{rate_text(fastest)}: ")
        return "What to try first: "

    def data(self):
        link = self.link() if self.congested else None
        return {"kind": self.kind or "nothing", "congested": self.congested, "sentences": self.sentences,
                "link": link["name"] if link else "", "job": self.facts.jobs.names[self.job]}
