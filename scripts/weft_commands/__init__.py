# SPDX-License-Identifier: GPL-2.0-only
"""The implementation of scripts/commands: export and compare."""
