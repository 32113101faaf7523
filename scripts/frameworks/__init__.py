# SPDX-License-Identifier: GPL-2.0-only
"""What the importers of frameworks' and profilers' files share (docs/tutorial/importing_frameworks.md)."""
