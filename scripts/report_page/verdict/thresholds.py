# SPDX-License-Identifier: GPL-2.0-only
"""Shares that decide what is said."""

# Below this share of the time of messages, or of a job, queues and pauses are no congestion: ACKs and the packets of
# the message itself also cause short waits on an idle network.
NOTEWORTHY = 0.02
# A rank that computes longer than the median by a smaller share of the run is no straggler.
STRAGGLER = 0.05
# Smaller shares are not mentioned.
SHOWN = 0.005
