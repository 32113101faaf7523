# SPDX-License-Identifier: GPL-2.0-only
from report_page.verdict.kind import Kind


class Other(Kind):
    """Time that no category of report_page.attribution describes."""

    name = "other"
