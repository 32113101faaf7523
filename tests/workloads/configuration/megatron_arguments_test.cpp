// SPDX-License-Identifier: GPL-2.0-only
// Jobs from Megatron-LM's options: models, parallelism, batches, and complaints with file and line.
#include "workloads/configuration/megatron_arguments.hpp"

#include <gtest/gtest.h>

#include "tests/workloads/workload_under_test.hpp"

namespace weft::test::megatron_arguments_test {
namespace {

std::optional<std::string> nothing(const std::string&) { return std::nullopt; }

TrainingDescription from_shell(const std::string& text) {
  TrainingDescription description;
  apply_megatron_options(read_megatron_shell(text, "run.sh", nothing), description);
  return description;
}
TrainingDescription from_yaml(const std::string& text) {
  TrainingDescription description;
  const Spec spec = Spec::parse(text, "job.yaml");
  apply_megatron_options(read_megatron_yaml(spec, "job.yaml", nothing), description);
  return description;
}
TrainingDescription settled(TrainingDescription description) {
  settle_description(description, 0, {"x.yaml", 1});
  return description;
}
ModelConfig ready_made(const std::string& name) {
  return read_model(JsonConfig::load(workloads_folder() + "/models/" + name + ".json"));
}

const std::string gpt3 = R"(#!/bin/bash
# GPT-3 175B on 1024 GPUs, as in Narayanan et al. 2021, arXiv:2104.04473, table 1
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"128"}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NNODES # all of them
    --master_addr localhost
)
MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
)
PARALLEL="--tensor-model-parallel-size 8 \
  --pipeline-model-parallel-size 8 \
  --num-layers-per-virtual-pipeline-stage 3"
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} $PARALLEL \
    --micro-batch-size 1 --global-batch-size 1536 --fp16 \
    --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 \
    --lr 6.0e-5 --data-path $DATA_PATH
)";

TEST(MegatronArguments, AScript) {
  const TrainingDescription job = settled(from_shell(gpt3));
  // 50257 tokens are padded to a multiple of 128 x 8 tensor-parallel ranks: 51200.
  EXPECT_EQ(job.model.vocabulary, 51200);
  EXPECT_EQ(job.model.parameters(), ready_made("gpt3-175b").parameters());
  EXPECT_EQ(job.world, 1024);
  EXPECT_EQ(job.parallel.data, 1024 / (8 * 8));
  EXPECT_EQ(job.parallel.virtual_stages, 96 / (8 * 3));
  EXPECT_EQ(job.parallel.schedule, "interleaved");
  EXPECT_EQ(job.micro_batches, 1536 / 16);
  EXPECT_EQ(job.sequence_length, 2048);
  EXPECT_EQ(job.precision, "fp16");
  EXPECT_EQ(job.gradient_precision, "fp16");
  EXPECT_EQ(job.recompute, Recompute::full);
  EXPECT_EQ(job.recompute_layers, 0);
  EXPECT_FALSE(job.overlap_gradients);
  EXPECT_EQ(job.where.at("tensor").text(), "run.sh:19");
  EXPECT_EQ(job.where.at("pipeline").text(), "run.sh:20");
  EXPECT_EQ(job.where.at("world").text(), "run.sh:9");
  EXPECT_EQ(job.ignored, (std::vector<std::string>{"--data-path", "--lr"}));
}

TEST(MegatronArguments, ContradictionsAreToldAtTheirLine) {
  std::string text = gpt3;
  text.replace(text.find("\"128\""), 5, "\"100\"");
  EXPECT_NE(complaint([&] { settled(from_shell(text)); }).find("run.sh:9: tensor 8 x context 1 x pipeline 8 = 64"),
            std::string::npos);
}

TEST(MegatronArguments, OptionsInAVariableThatAnotherFileUses) {
  const TrainingDescription job = from_shell(
      "TP=$((64/8))\nPP=8\nexport PARAMS=\" ${EXTRA} \\\n"
      "  --tensor-model-parallel-size ${TP} \\\n"
      "  --pipeline-model-parallel-size ${PP} --DDP-impl local \\\n"
      "  --activations-checkpoint-method uniform --batch-size 4\"\nsubmit\n");
  EXPECT_EQ(job.parallel.tensor, 8);
  EXPECT_EQ(job.parallel.pipeline, 8);
  EXPECT_EQ(job.recompute, Recompute::full);
  EXPECT_EQ(job.micro_batch, 4);
  EXPECT_EQ(job.where.at("tensor").text(), "run.sh:4");
  EXPECT_TRUE(job.model.blocks.empty());
}

TEST(MegatronArguments, CommandsWithinCommands) {
  const TrainingDescription job = from_shell(
      "options=\"--num-layers 2 --hidden-size 64 --num-attention-heads 4 --seq-length=128\"\n"
      "run_cmd=\"cd /x && python -u pretrain_gpt.py ${options}\"\n"
      "srun -l sh -c \"${run_cmd}\"\n");
  EXPECT_EQ(job.model.layers(), 2);
  EXPECT_EQ(job.sequence_length, 128);
}

std::string llama(const std::string& more) {
  return "pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 "
         "--group-query-attention --num-query-groups 8 --swiglu --normalization RMSNorm --disable-bias-linear "
         "--position-embedding-type rope --untie-embeddings-and-output-weights --seq-length 8192 "
         "--max-position-embeddings 8192 --make-vocab-size-divisible-by 1 " +
         more;
}

TEST(MegatronArguments, ModelsHaveTheSizesOfTheirModelCards) {
  EXPECT_EQ(from_shell(llama("--vocab-size 128256")).model.parameters(), 8'030'261'248);
  EXPECT_EQ(from_shell(llama("--tokenizer-type HuggingFaceTokenizer --tokenizer-model meta-llama/Meta-Llama-3.1-8B"))
                .model.parameters(),
            8'030'261'248);
  const ModelConfig mixtral =
      from_shell(llama("--num-experts 8 --moe-router-topk 2 --tokenizer-type Llama2Tokenizer")).model;
  EXPECT_EQ(mixtral.parameters(), 46'702'792'704);
  EXPECT_EQ(mixtral.active_parameters(), ready_made("mixtral-8x7b").active_parameters());
  EXPECT_EQ(from_shell("pretrain_gpt.py --num-layers 12 --hidden-size 768 --num-attention-heads 12 --seq-length 1024 "
                       "--max-position-embeddings 1024 --make-vocab-size-divisible-by 1")
                .model.parameters(),
            124'439'808);
}

TEST(MegatronArguments, GatedWidthIsTwoThirds) {
  // arguments.py: int(4h * 2/3 / 64) * 64
  const auto job = from_shell("x --num-layers 1 --hidden-size 4096 --num-attention-heads 32 --swiglu --seq-length 8");
  EXPECT_EQ(job.model.layer_shape(0).mlp.inner, 10880);
}

const std::string deepseek = R"(ENV_VARS:
  NCCL_NVLS_ENABLE: 0
  TP: 2
  WORLD_SIZE: 1024
MODEL_ARGS:
  --tensor-model-parallel-size: ${TP}
  --pipeline-model-parallel-size: 8
  --expert-model-parallel-size: 64
  --expert-tensor-parallel-size: 1
  --pipeline-model-parallel-layout: Et*3|(tt|)*29m|L
  --use-distributed-optimizer: true
  --overlap-grad-reduce: true
  --overlap-param-gather: true
  --sequence-parallel: true
  --finetune: false
  --micro-batch-size: 1
  --global-batch-size: 8192
  --seq-length: 4096
  --tokenizer-type: HuggingFaceTokenizer
  --tokenizer-model: deepseek-ai/DeepSeek-V3
  --num-layers: 61
  --hidden-size: 7168
  --ffn-hidden-size: 18432
  --num-attention-heads: 128
  --kv-channels: 128
  --max-position-embeddings: 4096
  --position-embedding-type: rope
  --make-vocab-size-divisible-by: 3232
  --normalization: RMSNorm
  --swiglu: true
  --disable-bias-linear: true
  --untie-embeddings-and-output-weights: true
  --multi-latent-attention: true
  --qk-layernorm: true
  --num-experts: 256
  --moe-layer-freq: ([0]*3+[1]*58)
  --moe-ffn-hidden-size: 2048
  --moe-shared-expert-intermediate-size: 2048
  --moe-router-topk: 8
  --moe-token-dispatcher-type: flex
  --q-lora-rank: 1536
  --kv-lora-rank: 512
  --qk-head-dim: 128
  --qk-pos-emb-head-dim: 64
  --v-head-dim: 128
  --mtp-num-layers: 1
  --recompute-granularity: selective
  --recompute-modules: [mla_up_proj, mlp]
  --fp8-format: e4m3
  --bf16: true
)";

TEST(MegatronArguments, YamlWithLatentAttentionExpertsAndALayout) {
  const TrainingDescription job = settled(from_yaml(deepseek));
  // Without the correction of the experts' scores, which is no parameter in Megatron: 58 blocks with 256 experts.
  // With the layer of multi-token prediction: a 59th one, two norms, the projection, and the norm before the head.
  ModelConfig published = ready_made("deepseek-v3");
  const std::int64_t expert_block = elements_of(published.shapes[1].tensors), h = 7168;
  EXPECT_EQ(job.model.parameters(), published.parameters() + expert_block + 2 * h * h + 3 * h - 59 * 256);
  EXPECT_EQ(job.model.vocabulary, 129280);
  EXPECT_EQ(job.model.prediction_blocks, 1);
  EXPECT_EQ(job.parallel.prediction_stage, 30);
  EXPECT_EQ(job.parallel.data, 1024 / (2 * 8));
  EXPECT_EQ(job.parallel.virtual_stages, 4);
  // E and three blocks, 29 times two, the layer of multi-token prediction, the loss.
  std::vector<std::int64_t> stages(32, 2);
  stages.front() = 3;
  stages[30] = stages[31] = 0;
  EXPECT_EQ(job.parallel.stage_layers, stages);
  EXPECT_EQ(job.parallel.sharding, Sharding::optimizer);
  EXPECT_TRUE(job.parallel.sequence);
  EXPECT_TRUE(job.overlap_gradients);
  EXPECT_TRUE(job.overlap_parameters);
  EXPECT_EQ(job.precision, "fp8");
  EXPECT_EQ(job.fp8_recipe, Fp8Recipe::delayed);
  EXPECT_EQ(job.parameter_precision, "bf16");
  EXPECT_EQ(job.gradient_precision, "fp32");
  // Gradients are in buckets of max(40M, 1M per data-parallel rank) elements of 4 bytes.
  EXPECT_EQ(job.buckets.further.count(), 4 * 64'000'000);
  EXPECT_EQ(job.recompute, Recompute::none);
  EXPECT_EQ(job.where.at("expert").text(), "job.yaml:8");
  EXPECT_EQ(job.ignored, (std::vector<std::string>{}));
  EXPECT_TRUE(job.recompute_modules.up_projections);
  EXPECT_TRUE(job.recompute_modules.mlp);
  EXPECT_FALSE(job.recompute_modules.norms || job.recompute_modules.expert_activations);
}

TEST(MegatronArguments, YamlWithUnderscores) {
  const TrainingDescription job = from_yaml(
      "DEPENDENCIES: {image: x}\nARGS:\n  num_layers: 4\n  hidden_size: 64\n"
      "  num_attention_heads: 4\n  seq_length: 32\n  bf16: true\n  lr: 1e-4\n");
  EXPECT_EQ(job.model.layers(), 4);
  EXPECT_EQ(job.precision, "bf16");
  EXPECT_EQ(job.ignored, (std::vector<std::string>{"--lr", "DEPENDENCIES"}));
}

TrainingDescription small(const std::string& more) {
  return from_shell("pretrain_gpt.py --num-layers 12 --hidden-size 64 --num-attention-heads 4 --seq-length 32 " + more);
}

TEST(MegatronArguments, UnevenStages) {
  using Layers = std::vector<std::int64_t>;
  EXPECT_EQ(small("--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 2 "
                  "--decoder-last-pipeline-num-layers 4")
                .parallel.stage_layers,
            (Layers{2, 3, 3, 4}));
  EXPECT_EQ(small("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
                  "--decoder-last-pipeline-num-layers 4")
                .parallel.stage_layers,
            (Layers{4, 2, 4, 2}));
  // 12 blocks, embedding and loss are 14 parts on 7 stages.
  EXPECT_EQ(small("--pipeline-model-parallel-size 7 --account-for-embedding-in-pipeline-split "
                  "--account-for-loss-in-pipeline-split")
                .parallel.stage_layers,
            (Layers{1, 2, 2, 2, 2, 2, 1}));
}

TEST(MegatronArguments, OverlapOfExchangesWithExperts) {
  const std::string mixture =
      "--num-experts 8 --expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall "
      "--overlap-moe-expert-parallel-comm ";
  const auto combined = small(mixture + "--delay-wgrad-compute");
  EXPECT_EQ(combined.parallel.schedule, "combined_1f1b");
  EXPECT_TRUE(combined.ignored.empty());
  EXPECT_EQ(small(mixture).ignored.front(),
            "--overlap-moe-expert-parallel-comm without --delay-wgrad-compute (gradients of weights are late here)");
}

TEST(MegatronArguments, OverlapOfTensorRanks) {
  const std::string tensor = "--tensor-model-parallel-size 4 --sequence-parallel ";
  EXPECT_FALSE(small(tensor).tensor_overlap.on);
  const TensorOverlap all = small(tensor + "--tp-comm-overlap").tensor_overlap;
  EXPECT_TRUE(all.on);
  EXPECT_EQ(all.of(OverlappedGemm::fc1_fprop).method, OverlapMethod::ring_exchange);
  EXPECT_EQ(all.of(OverlappedGemm::fc2_fprop).method, OverlapMethod::pipeline);
  EXPECT_EQ(all.of(OverlappedGemm::fc2_fprop).parts, 4);
  EXPECT_EQ(all.of(OverlappedGemm::fc2_fprop).units, 16);
  EXPECT_EQ(all.of(OverlappedGemm::qkv_wgrad).method, OverlapMethod::bulk);
  const auto some = small(tensor +
                          "--tp-comm-overlap --disable-tp-comm-overlap-ag --disable-tp-comm-bulk-wgrad "
                          "--tp-comm-overlap-cfg ub.yaml");
  for (const OverlappedGemm gemm : {OverlappedGemm::qkv_fprop, OverlappedGemm::proj_dgrad, OverlappedGemm::fc1_wgrad})
    EXPECT_EQ(some.tensor_overlap.of(gemm).method, OverlapMethod::none);
  EXPECT_EQ(some.tensor_overlap.of(OverlappedGemm::proj_fprop).method, OverlapMethod::pipeline);
  EXPECT_EQ(some.tensor_overlap.of(OverlappedGemm::fc1_dgrad).method, OverlapMethod::bulk);
  EXPECT_EQ(some.ignored.front(), "--tp-comm-overlap-cfg (what it says goes under tensor_overlap)");
  EXPECT_FALSE(small("--tp-comm-overlap").tensor_overlap.on);  // one tensor rank
}

TEST(MegatronArguments, RecipesOfFp8) {
  EXPECT_EQ(small("--bf16 --fp8-format hybrid --fp8-recipe blockwise").fp8_recipe, Fp8Recipe::blockwise);
  EXPECT_EQ(small("--bf16 --fp8-format hybrid --fp8-recipe tensorwise").fp8_recipe, Fp8Recipe::tensorwise);
  EXPECT_EQ(small("--bf16 --fp8-format hybrid --fp8-recipe mxfp8").fp8_recipe, Fp8Recipe::mxfp8);
  EXPECT_EQ(small("--bf16 --fp8-recipe blockwise").fp8_recipe, Fp8Recipe::delayed);
  EXPECT_EQ(small("--bf16 --fp8-format hybrid --fp8-recipe custom").ignored, std::vector<std::string>{"--fp8-recipe"});
  EXPECT_FALSE(small("--cross-entropy-loss-fusion").fused_loss);
  EXPECT_TRUE(small("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te").fused_loss);
  EXPECT_EQ(small("--fp8-format hybrid").amax_ranks, AmaxRanks::stage);
  EXPECT_EQ(small("--fp8-format hybrid --tp-only-amax-red").amax_ranks, AmaxRanks::tensor);
  EXPECT_EQ(small("--fp8-format hybrid --fp8-recipe tensorwise --tp-only-amax-red").amax_ranks, AmaxRanks::none);
  EXPECT_TRUE(small("--fp8-format hybrid").padded_copies);
  EXPECT_FALSE(small("--fp8-format hybrid --moe-router-padding-for-fp8").padded_copies);
  EXPECT_FALSE(small("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend hybridep").padded_copies);
  EXPECT_TRUE(small("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep").padded_copies);
  EXPECT_TRUE(small("--moe-router-fusion").fused_router);
  EXPECT_FALSE(small("").fused_router);
  EXPECT_TRUE(small("--moe-permute-fusion").fused_permutation);
  EXPECT_FALSE(small("").fused_permutation);
}

TEST(MegatronArguments, ShardingAndGradients) {
  EXPECT_EQ(small("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads_params").parallel.sharding,
            Sharding::parameters);
  EXPECT_EQ(small("--use-torch-fsdp2").parallel.sharding, Sharding::parameters);
  EXPECT_EQ(small("--use-distributed-optimizer --num-distributed-optimizer-instances 2").parallel.shard_copies, 2);
  EXPECT_EQ(small("--bf16 --grad-reduce-in-bf16").gradient_precision, "bf16");
  const std::string moments = "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16";
  EXPECT_EQ(small("--use-precision-aware-optimizer " + moments).moment_precision, "bf16");
  EXPECT_EQ(small("--use-precision-aware-optimizer").moment_precision, "fp32");
  EXPECT_TRUE(small("--moe-expert-capacity-factor 1.25 --moe-pad-expert-input-to-capacity").pad_to_capacity);
  EXPECT_EQ(small("--fp16 --accumulate-allreduce-grads-in-fp32").gradient_precision, "fp32");
  EXPECT_EQ(small("").precision, "fp32");
  EXPECT_FALSE(small("--clip-grad 0.0").clip_gradients);
  EXPECT_EQ(small("--overlap-grad-reduce --ddp-bucket-size 1000").bucket_elements, 1000);
  EXPECT_TRUE(small("--overlap-grad-reduce").buckets_of_first_chunk);
  for (const std::string other : {"--DDP-impl torch", "--use-torch-fsdp2", "--use-megatron-fsdp"})
    EXPECT_FALSE(small(other).buckets_of_first_chunk) << other;
  const std::string interleaved = "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1 ";
  EXPECT_TRUE(small(interleaved + "--overlap-grad-reduce").align_gradients);
  for (const std::string& other : {interleaved, interleaved + "--overlap-grad-reduce --no-align-grad-reduce",
                                   std::string("--pipeline-model-parallel-size 2 --overlap-grad-reduce")})
    EXPECT_FALSE(small(other).align_gradients) << other;
  EXPECT_TRUE(small("--DDP-impl torch").overlap_gradients);
  EXPECT_EQ(small("--cp-comm-type a2a --context-parallel-size 2").parallel.context_kind, ContextKind::ulysses);
  EXPECT_EQ(
      small("--num-experts 4 --expert-model-parallel-size 2 --moe-token-dispatcher-type alltoall").parallel.expert, 2);
  EXPECT_FALSE(small("--sequence-parallel").parallel.sequence);
  EXPECT_EQ(small("--use-tp-pp-dp-mapping").parallel.order, "tp-cp-ep-pp-dp");
  EXPECT_EQ(small("--recompute-granularity full --recompute-method block --recompute-num-layers 3").recompute_layers,
            3);
}

void expect_bad(const std::string& more, const std::vector<std::string>& parts) {
  const std::string message = complaint([&] { small("\\\n" + more); });
  EXPECT_TRUE(message.starts_with("run.sh")) << message;
  for (const auto& part : parts) EXPECT_NE(message.find(part), std::string::npos) << message << "\nlacks: " << part;
}

TEST(MegatronArguments, Complaints) {
  expect_bad("--tensor-model-parallel-size two", {"run.sh:2: --tensor-model-parallel-size", "from 1 to", "'two'"});
  expect_bad("--tensor-model-parallel-size", {"run.sh:2", "expected a value"});
  expect_bad("--tensor-model-parallel-size $TP", {"run.sh:2", "its value is $TP, which nothing here sets"});
  expect_bad("--hidden-size 65", {"--num-attention-heads", "4 heads", "65"});
  expect_bad("--use-precision-aware-optimizer --exp-avg-dtype fp8 --exp-avg-sq-dtype fp8", {"run.sh:2", "'fp8'"});
  expect_bad("--use-precision-aware-optimizer --exp-avg-dtype bf16", {"run.sh:2: --exp-avg-dtype", "different"});
  expect_bad("--num-experts 4 --moe-router-topk 5", {"5 experts", "4", "up to 4"});
  expect_bad("--num-experts 4 --moe-layer-freq [1]*11", {"11 entries", "expected 12"});
  expect_bad("--num-experts 4 --moe-layer-freq [1*11", {"[1*11", "lists"});
  expect_bad("--num-experts 4 --expert-model-parallel-size 2",
             {"run.sh:2: --expert-model-parallel-size", "default, allgather", "alltoall or flex"});
  expect_bad("--num-experts 4 --expert-model-parallel-size 2 --moe-token-dispatcher-type allgather",
             {"run.sh:2: --moe-token-dispatcher-type", "alltoall or flex"});
  expect_bad("--cp-comm-type a2a+p2p", {"'a2a+p2p'", "p2p, all_gather or a2a"});
  expect_bad("--tokenizer-type HuggingFaceTokenizer --tokenizer-model my/own",
             {"--vocab-size", "HuggingFaceTokenizer"});
  expect_bad("--pipeline-model-parallel-size 5 --num-layers-per-virtual-pipeline-stage 1", {"5 pipeline ranks", "12"});
  expect_bad("--num-layers-per-virtual-pipeline-stage 1 --num-virtual-stages-per-pipeline-rank 2", {"leave one"});
  expect_bad("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|t|tL'", {"3 stages", "2 pipeline"});
  expect_bad("--pipeline-model-parallel-layout 'E(t'", {"E(t", "Et*3"});
  expect_bad("--bf16 --fp16", {"leave one"});
  expect_bad("--recompute-granularity some", {"'some'", "full or selective"});
  EXPECT_NE(complaint([] { from_shell("python train.py --lr 1\n"); }).find("run.sh: no options of Megatron-LM"),
            std::string::npos);
  EXPECT_NE(
      complaint([] { from_shell("python pretrain_bert.py --num-layers 2\n"); }).find("pretrain_bert.py trains no GPT"),
      std::string::npos);
  EXPECT_NE(complaint([] { from_yaml("ARGSS:\n  a: 1\n"); }).find("expected MODEL_ARGS (or ARGS)"), std::string::npos);
  EXPECT_NE(complaint([] {
              from_yaml("MODEL_ARGS:\n  --num-layers:\n    a: 1\n");
            }).find("expected a value or a list of values"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::test::megatron_arguments_test
