# SPDX-License-Identifier: GPL-2.0-only
"""Studies of many experiments: inputs that vary, the runs, and the table of outcomes."""
