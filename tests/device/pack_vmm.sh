#!/bin/sh
# pack_vmm.sh BUILD_FOLDER OUTPUT_FOLDER: gathers what run_vmm.sh needs on a machine with an NVIDIA card and without this project's
# dependencies: the benchmark, the libraries it is linked to (the C library excepted), and HIP on top of the NVIDIA driver.
# Before: cmake --preset release && cmake --build --preset release --target vmm_bench hip_on_cuda
set -eu
build=$1
output=$2
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$output/hip"
cp "$build/bin/vmm_bench" "$here/run_vmm.sh" "$output/"
cp "$build/hip_on_cuda/libamdhip64.so.7" "$output/hip/"
"$here/copy_libraries.sh" "$output/lib" "$build/bin/vmm_bench"
