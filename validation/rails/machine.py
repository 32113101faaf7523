# SPDX-License-Identifier: GPL-2.0-only
"""Servers of 8 GPUs whose rails are not joined, and bytes by class of links."""


def rails_alone(pxn):
    return {
        "kind": "rails", "rails": 8, "rail": {"kind": "star", "hosts": 8, "link_rate": "400 Gb/s", "link_delay": "500 ns"},
        "server": {"design": "hgx_h100", "wiring": "rail", "pxn": pxn},
    }  # fmt: skip


def bytes_of_classes(run):
    return {name: int(run.links["bytes"][run.links["link_class"] == name].sum()) for name in set(run.links["link_class"])}
