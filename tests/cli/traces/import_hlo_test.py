# SPDX-License-Identifier: GPL-2.0-only
"""`weft import hlo`: HLO and StableHLO text. Times are the H100's of workloads/devices, written out here."""

# Time limit: 300 s

import json
import pathlib
import re
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
import hlo_files
import weft_testing
from import_testing import ImportTest

MIB = 1 << 20
BF16, FRACTION, MEMORY = 989.4e12, 0.803, 3.35e12  # FLOP/s, of GEMMs; B/s: workloads/devices/h100-sxm.yaml


def gemm_us(m, n, k):
    return 2 * m * n * k / (BF16 * FRACTION) * 1e6


class Hlo(ImportTest):
    FORMAT = "hlo"

    def source(self, text, name="module.txt"):
        (self.folder / name).write_text(text)
        return name

    def collectives(self):
        rows = weft_testing.table(self.folder / "out.h5", "collectives")
        return {key: rows[key].tolist() for key in ("start", "end", "bytes")}

    def groups(self):
        return sorted(json.loads((self.folder / "out.groups.json").read_text()).values())

    def test_a_scheduled_module(self):
        read = self.imported(self.source(hlo_files.STEP))
        # In each of 3 rounds two GEMMs and a counter; a permutation is a send and a receive.
        self.assertEqual(read["operations"], {"all_gather": 4, "all_reduce": 12, "send": 4, "recv": 4,
                                              "compute": 4 * 9})
        self.assertEqual(read["bytes"], {"all_gather": 4 * 4 * 2 * MIB, "all_reduce": 12 * 8 * MIB, "send": 4 * 2 * MIB,
                                         "recv": 4 * 2 * MIB})
        self.assertAlmostEqual(read["compute_seconds"] * 1e6 / 24, gemm_us(1024, 4096, 1024), 3)
        found = self.run_imported()
        (first, start), (second, _) = found[0, 'jit(step)/first "(x"'], found[0, "second"]
        self.assertEqual(second, start)  # beside the all-reduce of the first GEMM
        ends = sorted(self.collectives()["end"])
        self.assertAlmostEqual(first, ends[-3] / 1e6, 2)  # and the next round behind the all-reduce

    def test_forms_of_replica_groups(self):
        """All name columns: {0,2} and {1,3}."""
        for groups in ("{{0,2},{1,3}}", "[2,2]<=[2,2]T(1,0)", "[2,2]<=[4]T(0)"):
            with self.subTest(groups):
                body = (f"  ROOT r = f32[1024,256]{{1,0}} all-reduce(p), channel_id=1, replica_groups={groups}, "
                        "use_global_device_ids=true, to_apply=add\n")
                read = self.imported(self.source(hlo_files.module(body)))
                self.assertEqual(read["operations"], {"all_reduce": 4})
                due = [[0, 1], [2, 3]] if "<=[4]" in groups else [[0, 2], [1, 3]]
                self.assertEqual(self.groups(), due)
                self.run_imported()

    def test_groups_by_axes_of_a_mesh(self):
        """JAX of 2026 prints them so. Devices are an array with named axes; a group has those that differ on the listed
        ones (MeshAxesReplicaGroupList::flattened_replica_groups in xla/hlo/ir/replica_group.cc). Of 8 devices
        (i, j) is 4 i + j; 'x':(2)2 are the last two of x = 2 x 2 x 2, of (i, j, k) j, and devices are 4 i + 2 j + k;
        device_ids [4,2]T(1,0) are 0 2 4 6 1 3 5 7."""
        rows, columns = [[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]]
        for groups, due in (("mesh['x'=2,'y'=4] {'y'}", rows), ("mesh['x'=2,'y'=4] {'x'}", columns),
                            ("@mesh<x=2,y=4> {x}", columns), ("mesh['x'=2,'y'=4,'z'=1] {'x'}", columns),
                            ("mesh['x'=8] {'x':(1)2}", columns),
                            ("mesh['x'=8] {'x':(2)2}", [[0, 2], [1, 3], [4, 6], [5, 7]]),
                            ("mesh['x'=8] {'x':(1)2,'x':(4)2}", [[0, 1, 4, 5], [2, 3, 6, 7]]),
                            ("mesh['x'=2,'y'=4], device_ids=([4,2]T(1,0)) {'y'}", [[0, 2, 4, 6], [1, 3, 5, 7]]),
                            ("mesh['x'=4,'y'=2], device_ids=(7,6,5,4,3,2,1,0) {'x'}", [[0, 2, 4, 6], [1, 3, 5, 7]])):
            with self.subTest(groups):
                body = (f"  ROOT r = f32[1024,256]{{1,0}} all-reduce(p), channel_id=1, replica_groups={groups}, "
                        "use_global_device_ids=true, to_apply=add\n")
                self.imported(self.source(hlo_files.module(body, partitions=8)))
                self.assertEqual(sorted(map(sorted, self.groups())), due)
        for groups in ("mesh['x'=2] {'z'}", "mesh['x'=8] {'x':(3)2}", "mesh['x'=8] {'x','x'}", "mesh['x'=8,'x'=2] {'x'}",
                       "mesh['x'=4], device_ids=(0,1,1,2) {'x'}", "mesh['x'=4], device_ids=([3,2]T(1,0)) {'x'}",
                       "mesh['x'=999999999,'y'=999999999] {'x'}", "mesh['x'=0] {'x'}"):
            body = f"  ROOT r = f32[1024,256]{{1,0}} all-reduce(p), replica_groups={groups}, to_apply=add\n"
            self.refused(self.source(hlo_files.module(body)), says=[r"module.txt:\d+: 'r': .*does not fit together"])

    def test_who_takes_part(self):
        """CollectiveOpGroupMode: without a channel replicas, with one and without global ids all partitions of the
        replicas named, permutations between partitions."""
        for what, attributes, groups in (
                ("replicas", "replica_groups={{0,1}}", [[0, 2], [1, 3]]),
                ("both", "channel_id=1, replica_groups={{0},{1}}", [[0, 1], [2, 3]]),
                ("all", "channel_id=1, replica_groups={}, use_global_device_ids=true", [[0, 1, 2, 3]])):
            with self.subTest(what):
                body = f"  ROOT r = f32[1024,256]{{1,0}} all-reduce(p), {attributes}, to_apply=add\n"
                self.imported(self.source(hlo_files.module(body, partitions=2, replicas=2)))
                self.run_imported()
                self.assertEqual(len(self.collectives()["bytes"]), len(groups))
                if len(groups) > 1:
                    self.assertEqual(self.groups(), groups)
        body = "  ROOT r = f32[1024,256]{1,0} collective-permute(p), channel_id=1, source_target_pairs={{0,1}}\n"
        self.imported(self.source(hlo_files.module(body, partitions=2, replicas=2)))
        found = self.run_imported()
        self.assertEqual({rank: label for rank, label in found}, {rank: "r" for rank in range(4)})

    def test_all_kinds(self):
        body = """  a = f32[4096,256]{1,0} all-gather(p), dimensions={0}, replica_groups={}, channel_id=1, use_global_device_ids=true
  b = f32[256,256]{1,0} reduce-scatter(p), dimensions={0}, replica_groups={}, channel_id=2, use_global_device_ids=true, to_apply=add
  c = f32[1024,256]{1,0} all-to-all(p), dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=3
  d = f32[1024,256]{1,0} collective-broadcast(p), replica_groups={{2,1}}, channel_id=4
  e = ((f32[1024,256]{1,0}), f32[256,256]{1,0}, s32[]) reduce-scatter-start(p), dimensions={0}, replica_groups={}, channel_id=5, use_global_device_ids=true, to_apply=add
  f = f32[256,256]{1,0} reduce-scatter-done(e)
  g = ((f32[1024,256]{1,0}), f32[1024,256]{1,0}) async-start(p), calls=wrapped
  ROOT h = f32[1024,256]{1,0} async-done(g)
"""
        wrapped = ("wrapped {\n  q = f32[1024,256]{1,0} parameter(0)\n  ROOT t = f32[1024,256]{1,0} all-to-all(q), "
                   "dimensions={0}, replica_groups={{0,1,2,3}}, channel_id=6\n}\n\n")
        read = self.imported(self.source(hlo_files.module(body, more=wrapped)))
        self.assertEqual(read["operations"], {"all_gather": 4, "reduce_scatter": 8, "all_to_all": 8, "broadcast": 2})
        self.assertEqual(read["bytes"], {"all_gather": 4 * 4 * MIB, "reduce_scatter": 8 * MIB, "all_to_all": 8 * MIB,
                                         "broadcast": 2 * MIB})
        self.run_imported()

    def test_what_operations_take(self):
        """A batched GEMM, a convolution, cuBLAS, slices of a large array, and an addition."""
        body = """  q = bf16[8,128,64]{2,1,0} parameter(1)
  k = bf16[8,64,256]{2,1,0} parameter(2)
  dot = bf16[8,128,256]{2,1,0} dot(q, k), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
  img = bf16[32,56,56,64]{3,2,1,0} parameter(3)
  ker = bf16[3,3,64,128]{3,2,1,0} parameter(4)
  conv = bf16[32,56,56,128]{3,2,1,0} convolution(img, ker), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  w = bf16[4096,4096]{1,0} parameter(5)
  gemm = (bf16[4096,4096]{1,0}, s8[4096]{0}) custom-call(w, w), custom_call_target="__cublas$gemm", backend_config={"gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"],"rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}
  at = s32[] parameter(6)
  slice = f32[1,256]{1,0} dynamic-slice(p, at, at), dynamic_slice_sizes={1,256}
  ROOT sum = f32[1024,256]{1,0} add(p, p)
"""
        read = self.imported(self.source(hlo_files.module(body, partitions=1)))
        found = self.run_imported()
        took = {label: end - start for (_, label), (start, end) in found.items()}
        self.assertAlmostEqual(took["conv"], max(gemm_us(32 * 56 * 56, 128, 9 * 64), 0), 3)
        self.assertAlmostEqual(took["gemm"], gemm_us(4096, 4096, 4096), 3)
        self.assertAlmostEqual(took["dot"], max(gemm_us(128, 256, 64) * 8, 2 * 8 * (128 * 64 + 64 * 256 + 128 * 256)
                                                / MEMORY * 1e6), 3)
        self.assertAlmostEqual(took["slice"], 2 * 1024 / MEMORY * 1e6, 3)
        self.assertAlmostEqual(took["sum"], 3 * MIB / MEMORY * 1e6, 3)
        self.assertEqual(read["operations"], {"compute": 5})

    def test_loops(self):
        loop = """cond {
  c = (s32[], f32[1024,256]{1,0}) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] parameter_of_nobody(i)
  ROOT lt = pred[] compare(i, n), direction=LT
}

body {
  b = (s32[], f32[1024,256]{1,0}) parameter(0)
  x = f32[1024,256]{1,0} get-tuple-element(b), index=1
  ar = f32[1024,256]{1,0} all-reduce(x), channel_id=1, replica_groups={}, use_global_device_ids=true, to_apply=add
  j = s32[] get-tuple-element(b), index=0
  ROOT t = (s32[], f32[1024,256]{1,0}) tuple(j, ar)
}

"""
        body = ("  z = s32[] constant(0)\n  t = (s32[], f32[1024,256]{1,0}) tuple(z, p)\n"
                "  ROOT w = (s32[], f32[1024,256]{1,0}) while(t), condition=cond, body=body%s\n")
        self.refused(self.source(hlo_files.module(body % "", more=loop)),
                     says=[r"module.txt:\d+: the loop 'w'", "--trip-count"])
        self.assertEqual(self.imported("module.txt", "--trip-count", "7")["operations"]["all_reduce"], 28)
        self.refused("module.txt", "--trip-count", "7", "--max-operations", "13", says=["14 operations", "--max-operations"])
        known = ', backend_config={"known_trip_count":{"n":"4"}}'
        read = self.imported(self.source(hlo_files.module(body % known, more=loop)))
        self.assertEqual(read["operations"]["all_reduce"], 16)
        known = ", backend_config=\"{\\\"known_trip_count\\\":{\\\"n\\\":\\\"5\\\"}}\""
        self.assertEqual(self.imported(self.source(hlo_files.module(body % known,
                                                                    more=loop)))["operations"]["all_reduce"], 20)

    def test_stable_hlo(self):
        read = self.imported(self.source(hlo_files.STABLE, "step.mlir"))
        self.assertEqual(read["operations"], {"all_reduce": 5 * 4, "send": 2, "recv": 2, "compute": 4})
        self.assertEqual(read["bytes"], {"all_reduce": 5 * 4 * MIB // 4, "send": 2 * MIB // 4, "recv": 2 * MIB // 4})
        self.run_imported()
        self.assertEqual(set(self.collectives()["bytes"]), {MIB // 4})
        unknown = hlo_files.STABLE.replace("dense<5> : tensor<i32>", "dense<[5]> : tensor<1xi32>")
        self.refused(self.source(unknown, "step.mlir"), says=["--trip-count"])

    # What jax.jit(f).lower(...).as_text() gives on four devices: sharded, and not yet divided among them.
    SHARDED = """module @jit_f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<1024x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (tensor<512x512xf32>) {
    %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0] : (tensor<1024x512xf32>, tensor<1024x512xf32>) -> tensor<512x512xf32>
    return %0 : tensor<512x512xf32>
  }
}
"""
    # The same by shard_map: a part of 256 rows on each device, and a sum of 1 MiB.
    MANUAL = SHARDED.replace("    %0 = stablehlo.dot_general %arg0, %arg0", """    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{}, {}]>] manual_axes={"x"} (%arg1: tensor<256x512xf32>) {
      %1 = stablehlo.dot_general %arg1, %arg1""").replace("(tensor<1024x512xf32>, tensor<1024x512xf32>) -> tensor<512x512xf32>", """(tensor<256x512xf32>, tensor<256x512xf32>) -> tensor<512x512xf32>
      %2 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %3 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %3 : tensor<f32>
      }) : (tensor<512x512xf32>) -> tensor<512x512xf32>
      sdy.return %2 : tensor<512x512xf32>
    } : (tensor<1024x512xf32>) -> tensor<512x512xf32>""")

    # The same as HLO before (jax.jit(f).lower(...).as_text(dialect="hlo")) and behind XLA's SPMD partitioner.
    SHARDED_HLO = ("HloModule jit_f, num_partitions=4\n\nENTRY %main.1 {\n"
                   "  %x = f32[64,32]{1,0} parameter(0), sharding={devices=[4,1]<=[4]}\n"
                   "  ROOT %y = f32[64,32]{1,0} add(%x, %x)\n}\n")

    def test_sharded_hlo(self):
        text = self.SHARDED_HLO
        self.refused(self.source(text, "step.hlo"), says=[r"step.hlo:4: a sharded tensor", "4 devices", "compile"])
        named = text.replace("{devices=[4,1]<=[4]}", "{mesh['x'=4,'y'=1], [{'x'}, {}]}")
        self.refused(self.source(named, "step.hlo"), says=[r"step.hlo:4: a sharded tensor", "4 devices", "compile"])
        for whole in (named.replace("{'x'}", "{}"), named.replace("{'x'}", "{'y'}")):
            self.assertEqual(self.imported(self.source(whole, "step.hlo"))["operations"], {"compute": 4})
        copies = "{devices=[1,1,4]<=[4] last_tile_dim_replicate}"
        for divided, operations in ((text.replace("main.1", "main.1_spmd").replace("64,", "16,"), 4),
                                    (text.replace("jit_f,", "jit_f, is_scheduled=true,").replace("64,", "16,"), 4),
                                    (text.replace("num_partitions=4", "num_partitions=1"), 1),
                                    (text.replace("{devices=[4,1]<=[4]}", copies), 4)):
            with self.subTest(divided):
                self.assertEqual(self.imported(self.source(divided, "step.hlo"))["operations"], {"compute": operations})

    def test_sharded_stable_hlo(self):
        """A module that is yet to be divided among devices is refused; the body of shard_map has their parts."""
        gspmd = '{mhlo.sharding = "{devices=[4,1]<=[4]}"}'
        old = re.sub(r"\{sdy\.sharding = [^}]*\}, \{\}\]>\}", lambda _: gspmd, self.SHARDED)
        self.assertIn(gspmd, old)
        for text in (self.SHARDED, old):
            self.refused(self.source(text, "step.mlir"), says=[r"step.mlir:3: a sharded tensor", "4 devices", "compile"])
        for text in (self.SHARDED.replace('{"x"}', "{}"),
                     old.replace("[4,1]<=[4]", "[1,1,4]<=[4] last_tile_dim_replicate")):  # a copy on each
            self.assertEqual(self.imported(self.source(text, "step.mlir"))["operations"], {"compute": 4})
        read = self.imported(self.source(self.MANUAL, "step.mlir"))
        self.assertEqual((read["operations"], read["bytes"]), ({"all_reduce": 4, "compute": 4}, {"all_reduce": 4 * MIB}))
        self.assertIn(f"{2 * 512 * 256 * 512 / 1e12:.6g} TFLOP in GEMMs", (self.folder / "out.yaml").read_text())
        self.run_imported()

    def test_products_of_newer_releases(self):
        """Scaled products, and products of groups: of rows, each with its matrix, and of what is summed, which give a
        matrix each. 2 m n k FLOPs each. Half a byte for each element of
        f4e2m1fn: four devices gather 4 x 128 KiB each."""
        for body, m, n, k in (
                ("x = f4e2m1fn[1024,512] parameter(1)\n  y = f8e8m0fnu[1024,16] parameter(2)\n"
                 "  ROOT d = f32[1024,1024] scaled-dot(x, x, y, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
                 1024, 1024, 512),
                ("x = f32[8,256,64] parameter(1)\n  g = s32[8] parameter(2)\n  ROOT d = f32[1024,64] ragged-dot(p, x, g), "
                 "lhs_contracting_dims={1}, rhs_contracting_dims={1}, lhs_ragged_dims={0}, rhs_group_dims={0}", 1024, 64, 256),
                ("x = f32[1024,64] parameter(1)\n  g = s32[8] parameter(2)\n  ROOT d = f32[8,256,64] ragged-dot(p, x, g), "
                 "lhs_contracting_dims={0}, rhs_contracting_dims={0}, lhs_ragged_dims={0}", 256, 64, 1024)):
            self.imported(self.source(hlo_files.module(f"  {body}\n")))
            self.assertIn(f"{2 * m * n * k / 1e12:.6g} TFLOP in GEMMs", (self.folder / "out.yaml").read_text())
        packed = hlo_files.module("  x = f4e2m1fn[1024,256] convert(p)\n  ROOT g = f4e2m1fn[4096,256] all-gather(x), "
                                  "channel_id=1, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true\n")
        self.assertEqual(self.imported(self.source(packed))["bytes"], {"all_gather": 4 * 4 * MIB // 8})
        self.refused(self.source(packed.replace("f4e2m1fn", "f5e2m2")), says=[r"module.txt:\d+: the element type 'f5e2m2'"])

    def test_halves_of_a_permutation(self):
        """XLA's decomposed permutation on four devices: a send and a recv that name all pairs, a kernel between them and
        their ends. Devices 0 to 2 send, 1 to 3 receive, 1 MiB each."""
        pairs = "_xla_send_recv_source_target_pairs={{0,1},{1,2},{2,3}}"
        for quoted in (pairs, pairs.replace("={{", '="{{').replace("}}", '}}"')):
            body = f"""  t = token[] after-all()
  r = (f32[1024,256]{{1,0}}, u32[], token[]) recv(t), channel_id=7, frontend_attributes={{{quoted}}}
  s = (f32[1024,256]{{1,0}}, u32[], token[]) send(p, t), channel_id=7, frontend_attributes={{{quoted}}}
  k = f32[1024,256]{{1,0}} custom-call(p), custom_call_target="x"
  rd = (f32[1024,256]{{1,0}}, token[]) recv-done(r), channel_id=7
  sd = token[] send-done(s), channel_id=7
  ROOT o = f32[1024,256]{{1,0}} get-tuple-element(rd), index=0
"""
            read = self.imported(self.source(hlo_files.module(body)))
            self.assertEqual(read["operations"], {"compute": 4, "send": 3, "recv": 3})
            self.assertEqual(read["bytes"], {"send": 3 * MIB, "recv": 3 * MIB})
            self.run_imported()
        self.refused(self.source(hlo_files.module(body.replace("channel_id=7", "channel_id=7, is_host_transfer=true"))),
                     says=["'r' is a recv"])

    def test_ragged_all_to_all(self):
        """Its rows are data: refused, or taken as equal shares, a quarter of 1 MiB for each of four devices."""
        body = """  i = s32[4] iota(), iota_dimension=0
  ROOT r = f32[1024,256]{1,0} ragged-all-to-all(p, p, i, i, i, i), replica_groups={{0,1,2,3}}, channel_id=1
"""
        self.refused(self.source(hlo_files.module(body)), says=["'r': the number of rows for each receiver", "--ragged even"])
        read = self.imported(self.source(hlo_files.module(body)), "--ragged", "even")
        self.assertEqual((read["operations"], read["bytes"]), ({"all_to_all": 4}, {"all_to_all": 4 * MIB}))
        self.assertIn("--ragged even", " ".join(one["what"] for one in read["ignored"]))
        self.run_imported()

    def test_what_is_refused(self):
        good = hlo_files.STEP
        for what, text, says in (
                ("cut", good[:2000], r"module.txt:\d+: "),
                ("bracket", good.replace("fusion(%a, %b)", "fusion(%a, %b", 1), r"module.txt:\d+: '\(' without"),
                ("dynamic", good.replace("%p = bf16[1024,1024]", "%p = bf16[<=1024,1024]"), "not fixed"),
                ("group", good.replace("{{0,1,2,3}}", "{{0,1,2,9}}"),
                 r"module.txt:\d+: 'gathered': the group .* none of 0 to 3"),
                ("twice", good.replace("{{0,1,2,3}}", "{{0,1},{1,3}}"), "in two groups"),
                ("form", good.replace("{{0,1,2,3}}", "{0,1"), r"module.txt:\d+: "),
                ("send", good.replace("ROOT %out = bf16[1024,4096]{1,0} get-tuple-element(%w), index=2",
                                      "ROOT %out = token[] send(%q)"), "'out' is a send"),
                ("body", good.replace("body=%body", "body=%nobody"), "no computation 'nobody'"),
                ("itself", good.replace("calls=%fused, metadata", "calls=%body, metadata"), "calls itself"),
                ("nothing", "hello", "HloModule")):
            with self.subTest(what):
                self.assertNotEqual(text, good)
                self.refused(self.source(text), says=[says])
        self.refused(self.source(good), "--ranks", "8", says=["for 4 devices"])
        self.refused("module.txt", "--device", "h1000", says=["no such device"])


if __name__ == "__main__":
    unittest.main()
