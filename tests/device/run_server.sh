#!/bin/sh
# run_server.sh SECONDS SHAPE…: on a machine with an NVIDIA card, from the folder that pack_server.sh made: the server with one client and with
# 16, answers of 256 tokens that the device chooses and that the host draws, and the card's own rate for as many sessions.
# SHAPE: qwen3-8b, qwen3moe-30b-a3b, … (synth_gguf.py). Models are written to the folder MODELS (default: a temporary one).
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
models=${MODELS:-$(mktemp -d)}
mkdir -p "$models"
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader
nproc
seconds=$1
shift
for shape; do
    model=$models/$shape.gguf
    [ -f "$model" ] || python3 "$here/synth_gguf.py" "$shape" q4_k_m "$model" || exit 1
    for temperature in 0 0.8; do
        echo "== $shape, temperature $temperature"
        "$here/bench_server" -m "$model" --device cuda:0 --clients 16 --seconds "$seconds" --tokens 256 --temperature $temperature --vanish 64
    done
    for sessions in 8 16; do "$here/headroom-cli" bench -m "$model" -p 64 -n 256 -r 1 --sessions $sessions; done
done
