#!/bin/sh
# run_kernels.sh [--tool TOOL] [TEST…]: on a machine with a GPU, from the folder that pack_kernels.sh made: the tests of kernels (or those
# named) on each card. --tool memcheck or racecheck: under NVIDIA's compute-sanitizer. Exit status 1 if anything failed.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" QT_FORCE_STDERR_LOGGING=1
tool=
quiet=
if [ "${1:-}" = --tool ]; then
    tool=$2
    shift 2
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
    # A kernel is asked for in every unit until one has it: memcheck would count each answer "not there" as an error.
    [ "$tool" = memcheck ] && quiet='--report-api-errors no'
    [ -n "$sanitizer" ] || { echo "compute-sanitizer was not found" >&2; exit 1; }
fi
if [ $# -eq 0 ]; then
    for test in "$here"/bin/tst_kernel_*; do set -- "$@" "${test##*/}"; done
fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv 2>/dev/null
status=0
for test; do
    echo "== $test${tool:+ under $tool}"
    if [ -n "$tool" ]; then
        "$sanitizer" --tool "$tool" $quiet --error-exitcode 9 --print-limit 20 "$here/bin/$test" || status=1
    else
        "$here/bin/$test" || status=1
    fi
done
exit $status
