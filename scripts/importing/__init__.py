# SPDX-License-Identifier: GPL-2.0-only
"""Shared code of all formats of `weft import`: errors, experiments as text, machines for inputs without one, the
command."""
