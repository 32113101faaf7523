# SPDX-License-Identifier: GPL-2.0-only
"""A NIC and two GPUs below a PCIe switch, and an NVSwitch between the GPUs."""

XML = """<system version="1">
  <cpu host_hash="0x1" numaid="0" affinity="ffff" arch="x86_64" vendor="AuthenticAMD" familyid="143" modelid="49">
    <pci busid="0000:01:00.0" class="0x060400" vendor="0x1000" device="0xc010"
           link_speed="16.0 GT/s PCIe" link_width="16">
      <pci busid="0000:05:00.0" class="0x020700" vendor="0x15b3" device="0x101b"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <nic>
          <net name="mlx5_0" dev="0" speed="200000" port="1" latency="0.000000" guid="0x1" maxconn="131072" gdr="1"/>
        </nic>
      </pci>
      <pci busid="0000:07:00.0" class="0x030200" vendor="0x10de" device="0x20b0"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="0" sm="80" rank="0" gdr="1">
          <nvlink target="0000:c7:00.0" count="4" tclass="0x068000"/>
        </gpu>
      </pci>
      <pci busid="0000:08:00.0" class="0x030200" vendor="0x10de" device="0x20b0"
           link_speed="16.0 GT/s PCIe" link_width="16">
        <gpu dev="1" sm="80" rank="1" gdr="1">
          <nvlink target="0000:c7:00.0" count="4" tclass="0x068000"/>
        </gpu>
      </pci>
    </pci>
  </cpu>
</system>
"""


def sample(folder):
    (folder / "topology.xml").write_text(XML)
    return ["topology.xml"]


def counts(folder):
    gpus = (folder / "topology.xml").read_text().count("<gpu ")
    return {"ranks": gpus, "operations": {"all_reduce": gpus}, "bytes": {"all_reduce": gpus << 20}}


def damaged(folder):
    for what, text in {"cut": XML[:-20], "other": "<plan></plan>\n", "empty": "",
                       "one": XML.replace("<gpu dev=\"1\"", "<gp ")
                       }.items():
        (folder / f"{what}.xml").write_text(text)
        yield what, [f"{what}.xml"]
