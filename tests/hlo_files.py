# SPDX-License-Identifier: GPL-2.0-only
"""HLO and StableHLO for tests, as XLA and MLIR print them (xla/hlo of github.com/openxla/xla, docs/spec.md of
github.com/openxla/stablehlo)."""

# Four devices in two rows of two. A loop of three rounds: a GEMM, its sum over the columns while a second GEMM runs.
STEP = """HloModule jit_step, is_scheduled=true, entry_computation_layout={(bf16[1024,1024]{1,0})->bf16[1024,4096]{1,0}}, replica_count=1, num_partitions=4

%add (x: bf16[], y: bf16[]) -> bf16[] {
  %x = bf16[] parameter(0)
  %y = bf16[] parameter(1)
  ROOT %sum = bf16[] add(bf16[] %x, bf16[] %y)
}

%fused (p0: bf16[1024,1024], p1: bf16[1024,4096]) -> bf16[1024,4096] {
  %p0 = bf16[1024,1024]{1,0} parameter(0)
  %p1 = bf16[1024,4096]{1,0} parameter(1)
  ROOT %d = bf16[1024,4096]{1,0} dot(bf16[1024,1024]{1,0} %p0, bf16[1024,4096]{1,0} %p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}

%body (t: (s32[], bf16[1024,1024], bf16[1024,4096])) -> (s32[], bf16[1024,1024], bf16[1024,4096]) {
  %t = (s32[], bf16[1024,1024]{1,0}, /*index=2*/bf16[1024,4096]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%t), index=0
  %a = bf16[1024,1024]{1,0} get-tuple-element(%t), index=1
  %b = bf16[1024,4096]{1,0} get-tuple-element(%t), index=2
  %c1 = s32[] constant(1)
  %next = s32[] add(%i, %c1)
  %f = bf16[1024,4096]{1,0} fusion(%a, %b), kind=kOutput, calls=%fused, metadata={op_name="jit(step)/first \\"(x\\"" source_file="x.py" source_line=3}
  %start = bf16[1024,4096]{1,0} all-reduce-start(%f), channel_id=1, replica_groups=[2,2]<=[2,2]T(1,0), use_global_device_ids=true, to_apply=%add, backend_config={"is_sync":false}
  %g = bf16[1024,4096]{1,0} fusion(%a, %b), kind=kOutput, calls=%fused, metadata={op_name="second"}
  %done = bf16[1024,4096]{1,0} all-reduce-done(%start)
  ROOT %r = (s32[], bf16[1024,1024]{1,0}, bf16[1024,4096]{1,0}) tuple(%next, %a, %done)
}

%cond (u: (s32[], bf16[1024,1024], bf16[1024,4096])) -> pred[] {
  %u = (s32[], bf16[1024,1024]{1,0}, bf16[1024,4096]{1,0}) parameter(0)
  %j = s32[] get-tuple-element(%u), index=0
  %n = s32[] constant(3)
  ROOT %lt = pred[] compare(%j, %n), direction=LT
}

ENTRY %main (p: bf16[1024,1024], q: bf16[1024,4096]) -> bf16[1024,4096] {
  %p = bf16[1024,1024]{1,0:T(8,128)(2,1)} parameter(0)
  %q = bf16[1024,4096]{1,0} parameter(1)
  %zero = s32[] constant(0)
  %gathered = bf16[4096,1024]{1,0} all-gather(%p), channel_id=2, replica_groups={{0,1,2,3}}, dimensions={0}, use_global_device_ids=true
  %moved = bf16[1024,1024]{1,0} collective-permute(%p), channel_id=3, source_target_pairs={{0,1},{1,2},{2,3},{3,0}}
  %init = (s32[], bf16[1024,1024]{1,0}, bf16[1024,4096]{1,0}) tuple(%zero, %moved, %q)
  %w = (s32[], bf16[1024,1024]{1,0}, bf16[1024,4096]{1,0}) while(%init), condition=%cond, body=%body
  ROOT %out = bf16[1024,4096]{1,0} get-tuple-element(%w), index=2
}
"""

STABLE = """module @jit_step attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<128x256xbf16> {mhlo.sharding = "{devices=[4,1]<=[4]}"}, %arg1: tensor<256x512xbf16>) -> (tensor<128x512xf32> {jax.result_info = ""}) {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<bf16>
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<128x256xbf16>, tensor<256x512xbf16>) -> tensor<128x512xf32>
    %1:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %0) : tensor<i32>, tensor<128x512xf32>
     cond {
      %c_1 = stablehlo.constant dense<5> : tensor<i32>
      %3 = stablehlo.compare  LT, %iterArg, %c_1,  SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = func.call @inner(%iterArg_0) : (tensor<128x512xf32>) -> tensor<128x512xf32>
      %c_1 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %iterArg, %c_1 : tensor<i32>
      stablehlo.return %4, %3 : tensor<i32>, tensor<128x512xf32>
    }
    %2 = "stablehlo.collective_permute"(%1#1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<128x512xf32>) -> tensor<128x512xf32>
    return %2 : tensor<128x512xf32>
  }
  func.func private @inner(%arg0: tensor<128x512xf32>) -> tensor<128x512xf32> {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<128x512xf32>) -> tensor<128x512xf32>
    return %0 : tensor<128x512xf32>
  }
}
"""


def module(body, partitions=4, replicas=1, more=""):
    """A module of one computation. `more` precedes it."""
    return (f"HloModule test, replica_count={replicas}, num_partitions={partitions}\n\n"
            f"add {{\n  x = f32[] parameter(0)\n  y = f32[] parameter(1)\n  ROOT s = f32[] add(x, y)\n}}\n\n{more}"
            f"ENTRY main {{\n  p = f32[1024,256]{{1,0}} parameter(0)\n{body}}}\n")
