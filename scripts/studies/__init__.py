# SPDX-License-Identifier: GPL-2.0-only
"""Studies of many experiments: what varies, who runs it, and the table of what came out."""
