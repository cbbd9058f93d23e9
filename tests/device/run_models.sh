#!/bin/sh
# run_models.sh PART…: on a machine with an NVIDIA card, from the folder that pack_models.sh made. Parts:
#   words      the built-in model's greedy words on the card and on the processor, prompts of 1 to 1,500 tokens
#   families   small models of every family on the card and on the processor, logits and greedy tokens (compare_devices.py)
#   8b  30b    files of these shapes: prompt, decode at 128 and 16,384 tokens of context, eight sessions together
#   several    on a machine with two cards: both models dealt out to them, beside the processor and beside one card
#   experts    30b with a quarter, half, three quarters and none of the experts on the card
# Everything is printed to standard output; models are written to the folder MODELS (default: a temporary one).
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
models=${MODELS:-$(mktemp -d)}
mkdir -p "$models"
cli=$here/headroom-cli
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv,noheader
nproc

# model SHAPE: writes the file once.
model() {
    [ -f "$models/$1.gguf" ] || python3 "$here/synth_gguf.py" "$1" q4_k_m "$models/$1.gguf" || exit 1
}

words() {
    long=$(i=0; while [ $i -lt 300 ]; do printf 'The reserve keeps %d MiB free. ' $i; i=$((i + 1)); done)
    failed=0
    for length in 1 7 40 200 1000 6000; do
        prompt=$(printf '%s' "$long" | cut -c1-$length)
        on_cpu=$("$cli" complete -m "$here/guide.gguf" --device cpu --temp 0 -n 48 -p "$prompt" --ctx 2048)
        on_gpu=$("$cli" complete -m "$here/guide.gguf" --device cuda:0 --temp 0 -n 48 -p "$prompt" --ctx 2048)
        if [ "$on_cpu" = "$on_gpu" ]; then echo "words, prompt of $length characters: the same"; else
            echo "words, prompt of $length characters: DIFFERENT"
            printf 'cpu: %s\ngpu: %s\n' "$on_cpu" "$on_gpu" | cut -c1-600
            failed=1
        fi
    done
    return $failed
}

for part in "$@"; do
    echo "== $part"
    case $part in
    words) words ;;
    families)
        "$here/write_synthetic_models" "$models/families"
        for small in "$models"/families/*.gguf; do python3 "$here/compare_devices.py" "$cli" "$small" 256; done
        for shape in qwen3-0.6b qwen3moe-1.5b-a0.3b; do
            model $shape
            python3 "$here/compare_devices.py" "$cli" "$models/$shape.gguf" 30000
        done
        ;;
    8b | 30b)
        shape=qwen3-8b
        [ "$part" = 8b ] || shape=qwen3moe-30b-a3b
        model $shape
        "$cli" bench -m "$models/$shape.gguf" -p 128 -n 256 -r 3 --sessions 8
        "$cli" bench -m "$models/$shape.gguf" -p 4096 -n 128 -r 3
        "$cli" bench -m "$models/$shape.gguf" -p 16384 -n 64 -r 1 --ctx 16640
        ;;
    several)
        "$cli" devices
        total=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -n 1)
        # What the cards may hold is too little for one of them: half of the layers each, then half of the experts too.
        for case in "qwen3-8b 4000" "qwen3moe-30b-a3b 12000" "qwen3moe-30b-a3b 5500"; do
            shape=${case% *} keep=${case#* }
            model $shape
            echo "-- $shape, $keep MiB of each card"
            python3 "$here/compare_devices.py" "$cli" "$models/$shape.gguf" 30000 auto --reserve-mib $((total - keep))
            "$cli" bench -m "$models/$shape.gguf" -p 4096 -n 128 -r 2 --ctx 4352 --reserve-mib $((total - keep))
            "$cli" bench -m "$models/$shape.gguf" -p 128 -n 128 -r 2 --ctx 1024 --sessions 8 --reserve-mib $((total - keep))
        done
        ;;
    experts)
        model qwen3moe-30b-a3b
        total=$(nvidia-smi --query-gpu=memory.free --format=csv,noheader,nounits | head -n 1)
        for keep in 1600 5500 9500 13500 20000; do
            "$cli" bench -m "$models/qwen3moe-30b-a3b.gguf" -p 128 -n 64 -r 1 --reserve-mib $((total - keep))
        done
        ;;
    *) echo "unknown part" && exit 2 ;;
    esac
done
