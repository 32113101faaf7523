# SPDX-License-Identifier: GPL-2.0-only
"""Shared code of all commands in Python: the console, errors, quantities with units, and the experiment's file as
nodes."""
