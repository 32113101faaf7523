# SPDX-License-Identifier: GPL-2.0-only
import weft_results
from report_page.values import time_text
from report_page.verdict.congestion import HeldBack


class Pause(HeldBack):
    name = "pause"
    help = "larger buffers (`{buffer}`), or marking by ECN that slows senders before they are paused, may help"

    def words(self, evidence):
        return {**super().words(evidence), "buffer": buffer_key(evidence.facts.run.path)}

    def leads_around(self, evidence):
        """A load balancing does not know of pauses between other switches; a routing may."""
        return bool(evidence.paths.routings)

    def culprit(self, evidence):
        """The row of the link at which most stops begin."""
        stops = evidence.facts.stops
        return int(stops.argmax()) if stops.any() else None

    def what_it_did(self, evidence, row):
        return f" had links stopped for {time_text(evidence.facts.stops[row])} in all; "


def buffer_key(path):
    """The key of the buffers that stop links when they are full."""
    with weft_results.open(path) as run:
        try:
            network = run.experiment.get("network") or {}
        except (weft_results.ResultsError, AttributeError):  # without PyYAML
            network = {}
    return "network.credit.buffer" if network.get("flow_control") == "credit" else "network.buffer"
