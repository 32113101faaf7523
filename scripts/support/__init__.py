# SPDX-License-Identifier: GPL-2.0-only
"""What all commands in Python share: the console, errors, quantities with units, and the experiment's file as nodes."""
