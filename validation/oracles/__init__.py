# SPDX-License-Identifier: GPL-2.0-only
"""Laws and reference models that share no code with the simulator. Times are whole picoseconds, rates bit/s, sizes bytes."""
