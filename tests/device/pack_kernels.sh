#!/bin/sh
# pack_kernels.sh BUILD_FOLDER OUTPUT_FOLDER [TEST…]: gathers what run_kernels.sh needs on a machine with a GPU and without this project's
# dependencies: the tests of kernels (all that are built, or those named) and the libraries they are linked to, Qt's included (the C library
# excepted). The simulated drivers stay here: the tests then run on the cards alone.
# Before: cmake --preset release && cmake --build --preset release --target tst_kernel_sampling …
set -eu
build=$1
output=$2
shift 2
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
mkdir -p "$output/bin"
cp "$here/run_kernels.sh" "$output/"
if [ $# -eq 0 ]; then
    for test in "$build"/bin/tst_kernel_*; do
        [ "${test##*/}" = tst_kernel_objects ] || set -- "$@" "${test##*/}"
    done
fi
for test; do
    "$here/copy_libraries.sh" "$output/lib" "$build/bin/$test"
    strip --strip-debug -o "$output/bin/$test" "$build/bin/$test"
done
