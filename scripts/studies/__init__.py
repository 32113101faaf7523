# SPDX-License-Identifier: GPL-2.0-only
"""Studies of many experiments: varied inputs, the runs, and the table of outcomes."""
