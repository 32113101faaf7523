# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.congestion import Congestion


class Retransmission(Congestion):
    name = "retransmission"
    help = "larger buffers, lossless classes (`network.flow_control`), or quicker recovery may help"
    # Packets that were sent and did not arrive.
    on_wires = "a link without errors and failures, {timer}or quicker recovery (`network.recovery`) may help"

    def remedy(self, evidence):
        links = evidence.facts.links
        if links.values["lost"].sum() > links.values["dropped"].sum():
            return self.on_wires.format(timer=self.timer(evidence.facts.run))
        return super().remedy(evidence)

    def timer(self, run):
        """The timer of recovery, if it has expired: on lossless links it is that of RDMA software, 67 ms, which is for losses at the end
        of what is in flight."""
        expired = int(run.column("queue_pairs", "timeouts").sum()) if run.has("queue_pairs", "timeouts") else 0
        if not expired:
            return ""
        return f"a shorter timer (`network.go_back_n.timeout`, or that of another recovery), which expired {expired:,} times, "

    def culprit(self, evidence):
        """The row of the link that lost most packets."""
        missing = evidence.facts.links.missing()
        return int(missing.argmax()) if missing.any() else None

    def what_it_did(self, evidence, row):
        return f" lost {int(evidence.facts.links.missing()[row]):,} packets; "
