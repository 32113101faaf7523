# SPDX-License-Identifier: GPL-2.0-only
"""Costs, energy and emissions of machines and runs (docs/reference/accounting.md)."""
