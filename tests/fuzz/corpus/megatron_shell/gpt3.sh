#!/bin/bash
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
