#!/bin/sh
# run_elastic.sh PART…: on a machine with an NVIDIA card, from the folder that pack_elastic.sh made: the figures of docs/elastic.md.
# Parts: even, skewed (the model with even and with skewed routing, everything that bench_elastic measures), or its parts for the even one.
# Models are written to the folder MODELS (default: a temporary one).
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
models=${MODELS:-$(mktemp -d)}
mkdir -p "$models"
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader
nproc

# model NAME OPTIONS…: writes the file once.
model() {
    name=$1
    shift
    [ -f "$models/$name.gguf" ] || python3 "$here/synth_gguf.py" qwen3moe-30b-a3b q4_k_m "$models/$name.gguf" "$@" || exit 1
}

for part in "$@"; do
    echo "== $part"
    case $part in
    even) model even && "$here/bench_elastic" "$models/even.gguf" ;;
    skewed) model skewed --skew 3 && "$here/bench_elastic" "$models/skewed.gguf" curve ;;
    *) model even && "$here/bench_elastic" "$models/even.gguf" "$part" ;;
    esac
done
