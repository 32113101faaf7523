TP=$((64/8))
export PARAMS=" ${EXTRA} \
  --tensor-model-parallel-size ${TP} --micro-batch-size 4 \
  --num-layers 8 --hidden-size 64 --num-attention-heads 8"
if [ -n "$X" ]; then
  A=1
elif [[ $TP == 8 ]]; then A=${B:-2}; fi
f() { echo; }
for i in 1 2; do B=$i; done
cat <<EOF
x
EOF
