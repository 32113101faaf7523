# SPDX-License-Identifier: GPL-2.0-only
"""What stands behind scripts/commands: export and compare."""
