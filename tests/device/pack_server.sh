#!/bin/sh
# pack_server.sh BUILD_FOLDER SYNTH_GGUF OUTPUT_FOLDER: gathers what run_server.sh needs on a machine with an NVIDIA card and without this
# project's dependencies: bench_server, headroom-cli, the libraries (the C library excepted), and the tool that writes files of real shapes
# (SYNTH_GGUF: synth_gguf.py).
# Before: cmake --preset release && cmake --build --preset release --target bench_server headroom-cli
set -eu
build=$1
synth=$2
output=$3
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$output"
cp "$here/run_server.sh" "$synth" "$output/"
for program in bench_server headroom-cli; do strip -o "$output/$program" "$build/bin/$program"; done
"$here/copy_libraries.sh" "$output/lib" "$build/bin/bench_server" "$build/bin/headroom-cli"
