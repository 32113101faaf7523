# SPDX-License-Identifier: GPL-2.0-only
"""What the importers of frameworks' and profilers' files share (docs/importing_frameworks.md)."""
