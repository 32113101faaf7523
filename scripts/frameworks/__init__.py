# SPDX-License-Identifier: GPL-2.0-only
"""Code that importers of files of frameworks and profilers share (docs/tutorial/importing_frameworks.md)."""
