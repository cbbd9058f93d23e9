#!/bin/sh
# run_elastic.sh PART…: on a machine with an NVIDIA card, from the folder that pack_elastic.sh made: the figures of docs/elastic.md.
# Parts: even, skewed (the model with even and with skewed routing, everything that bench_elastic measures), devices (with two cards or more:
# its part of that name, for the mixture and for a dense model), or its other parts for the even one.
# Models are written to the folder MODELS (default: a temporary one).
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
models=${MODELS:-$(mktemp -d)}
mkdir -p "$models"
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader
nproc

# model NAME SHAPE OPTIONS…: writes the file once.
model() {
    name=$1
    shape=$2
    shift 2
    [ -f "$models/$name.gguf" ] || python3 "$here/synth_gguf.py" "$shape" q4_k_m "$models/$name.gguf" "$@" || exit 1
}
mixture=qwen3moe-30b-a3b

for part in "$@"; do
    echo "== $part"
    case $part in
    even) model even $mixture && "$here/bench_elastic" "$models/even.gguf" ;;
    skewed) model skewed $mixture --skew 3 && "$here/bench_elastic" "$models/skewed.gguf" curve ;;
    devices)
        model even $mixture && "$here/bench_elastic" "$models/even.gguf" devices
        model dense qwen3-8b && "$here/bench_elastic" "$models/dense.gguf" devices
        ;;
    *) model even $mixture && "$here/bench_elastic" "$models/even.gguf" "$part" ;;
    esac
done
