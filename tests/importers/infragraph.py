# SPDX-License-Identifier: GPL-2.0-only
"""Two servers of two accelerators on a leaf switch."""

DEVICES = """infrastructure:
  devices:
    - name: server
      components:
        - {name: xpu, type: xpu}
        - {name: nic, type: nic, external: true}
        - {name: nvlsw, type: custom}
      links:
        - name: pcie
          bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 32}
        - name: nvlink
          bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 128}
      connections: [xpu.0.pcie.nic.0, xpu.1.pcie.nic.1, xpu.0.nvlink.nvlsw.0, xpu.1.nvlink.nvlsw.0]
    - name: leaf
      components:
        - {name: asic, type: custom}
        - {name: port, type: nic, external: true}
      links: [{name: ic}]
      connections: [asic.0.ic.port.0, asic.0.ic.port.1, asic.0.ic.port.2, asic.0.ic.port.3]
"""
INFRASTRUCTURE = """infrastructure:
  name: two servers
  links:
    - name: eth
      bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}
  instances:
    - {name: server, device: server}
    - {name: leaf, device: leaf}
  connections:
    - server.0.nic.0.eth.leaf.0.port.0
    - server.0.nic.1.eth.leaf.0.port.1
    - server.1.nic.0.eth.leaf.0.port.2
    - server.1.nic.1.eth.leaf.0.port.3
"""


def sample(folder):
    (folder / "devices.yaml").write_text(DEVICES)
    (folder / "infrastructure.yaml").write_text(INFRASTRUCTURE)
    return ["infrastructure.yaml", "devices.yaml"]


def counts(_folder):
    servers = {line.split(".")[1] for line in INFRASTRUCTURE.split("\n") if "- server." in line}
    ranks = 2 * len(servers)
    return {"ranks": ranks, "operations": {"all_reduce": ranks}, "bytes": {"all_reduce": ranks << 20}}


def damaged(folder):
    sample(folder)
    for what, (old, new) in {"link": ("nic.0.eth.leaf.0.port.0", "nic.0.ib.leaf.0.port.0"),
                             "words": ("nic.0.eth", "nic.eth"),
                             "instance": ("server.0.nic.0", "sever.0.nic.0"),
                             "device": ("device: leaf", "device: spine"),
                             "rate": ("gigabits_per_second:", "bits:")}.items():
        (folder / f"{what}.yaml").write_text(INFRASTRUCTURE.replace(old, new, 1))
        yield what, [f"{what}.yaml", "devices.yaml"]
    yield "devices alone", ["devices.yaml"]
