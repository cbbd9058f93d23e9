#!/bin/sh
# pack_models.sh BUILD_FOLDER SYNTH_GGUF OUTPUT_FOLDER: gathers what run_models.sh needs on a machine with an NVIDIA card and without this
# project's dependencies: headroom-cli, the built-in model, the libraries (the C library excepted), and the tool that writes files of real
# shapes (SYNTH_GGUF: synth_gguf.py).
# Before: cmake --preset release && cmake --build --preset release --target headroom-cli write_synthetic_models
set -eu
build=$1
synth=$2
output=$3
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$output"
cp "$build/bin/headroom-cli" "$here/run_models.sh" "$here/compare_devices.py" "$synth" "$output/"
cp "$build/bin/write_synthetic_models" "$output/"
cp "$here/../../resources/model/guide-q4_k_m.gguf" "$output/guide.gguf"
"$here/copy_libraries.sh" "$output/lib" "$build/bin/headroom-cli" "$build/bin/write_synthetic_models"
