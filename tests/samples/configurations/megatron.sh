torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py --num-layers 4 --hidden-size 64 --num-attention-heads 4 \
  --seq-length 32 --max-position-embeddings 32 --tensor-model-parallel-size 2 --micro-batch-size 1 \
  --global-batch-size 8 --bf16
