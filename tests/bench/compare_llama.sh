#!/bin/bash
# Headroom beside llama.cpp on the same files with the same threads, one after the other, several rounds:
#   tests/bench/compare_llama.sh [-t THREADS] [-p PROMPT] [-n DECODE] [-r ROUNDS] PATH/TO/headroom-cli MODEL.gguf…
# llama.cpp comes as the npm package node-llama-cpp 3.21.1 (with its prebuilt libraries), installed under build/. Needs node, npm, python3.
set -euo pipefail
cd "$(dirname "$0")/../.."
threads=2 prompt=512 decode=128 rounds=3
while getopts t:p:n:r: option; do
    case $option in
        t) threads=$OPTARG ;;
        p) prompt=$OPTARG ;;
        n) decode=$OPTARG ;;
        r) rounds=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 2 ] || { sed -n '2,4s/^# \?//p' "$0" >&2; exit 2; }
cli=$1
shift

folder=$PWD/build/node-llama-cpp
if [ ! -d "$folder/node_modules/node-llama-cpp" ]; then
    mkdir -p "$folder"
    (cd "$folder" && npm init -y >/dev/null && NODE_LLAMA_CPP_SKIP_DOWNLOAD=true npm install --save-exact --no-audit --no-fund node-llama-cpp@3.21.1 >&2)
fi

for model in "$@"; do
    results=$(mktemp)
    for ((round = 0; round < rounds; round++)); do
        "$cli" bench --json -m "$model" -p "$prompt" -n "$decode" -r 1 --threads "$threads" >>"$results"
        echo >>"$results"
        node tests/bench/compare_llama.mjs "$folder" "$model" "$threads" "$prompt" "$decode" >>"$results"
    done
    python3 - "$results" "$(basename "$model")" "$threads" "$prompt" "$decode" <<'PYTHON'
import json, statistics, sys
path, model, threads, prompt, decode = sys.argv[1:]
ours, theirs = [], []
for line in filter(str.strip, open(path)):
    result = json.loads(line)
    (ours if "runs" in result else theirs).append(result["runs"][0] if "runs" in result else result)
print(f"{model}, {threads} threads, prompt {prompt}, decode {decode}, medians of {len(ours)} alternating rounds")
for name, key in (("prompt", "prompt_tps"), ("decode", "decode_tps")):
    a, b = (statistics.median(r[key] for r in runs) for runs in (ours, theirs))
    print(f"  {name}: headroom {a:7.1f} tok/s, llama.cpp {b:7.1f} tok/s, ratio {a / b:.2f}")
PYTHON
    rm -f "$results"
done
