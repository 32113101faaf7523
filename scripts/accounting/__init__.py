# SPDX-License-Identifier: GPL-2.0-only
"""What machines and runs cost, in money, energy and emissions (docs/reference/accounting.md)."""
