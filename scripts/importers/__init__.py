# SPDX-License-Identifier: GPL-2.0-only
"""The formats of `weft import`: one module or folder each. scripts/importing/registry.py describes the content of a
module."""
