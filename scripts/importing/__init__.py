# SPDX-License-Identifier: GPL-2.0-only
"""What all formats of `weft import` share: errors, experiments as text, machines for inputs without one, the
command."""
