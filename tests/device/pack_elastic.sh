#!/bin/sh
# pack_elastic.sh BUILD_FOLDER OUTPUT_FOLDER: gathers what run_elastic.sh needs on a machine with an NVIDIA card and without this project's
# dependencies.
# Before: cmake --preset release && cmake --build --preset release --target bench_elastic
set -eu
build=$1
output=$2
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$output"
cp "$here/run_elastic.sh" "$here/../tools/synth_gguf.py" "$output/"
strip --strip-debug -o "$output/bench_elastic" "$build/bin/bench_elastic"
"$here/copy_libraries.sh" "$output/lib" "$build/bin/bench_elastic"
