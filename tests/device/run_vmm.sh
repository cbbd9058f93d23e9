#!/bin/sh
# run_vmm.sh: on a machine with an NVIDIA card, from the folder that pack_vmm.sh made: the verdict and the table of segment sizes, through
# CUDA and through the HIP path. Everything is printed to standard output.
set -u
here=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cd "$(mktemp -d)" || exit 1
nvidia-smi --query-gpu=name,driver_version,memory.total,memory.used --format=csv
echo "== time to find the devices"
"$here/vmm_bench" find
"$here/vmm_bench" find
echo "== CUDA"
"$here/vmm_bench" cuda
"$here/vmm_bench" list
"$here/vmm_bench" list
echo "== HIP on top of CUDA"
# The counter of record is NVML on both paths: the folder with the HIP library gets a link to the system's.
mkdir hip
cp "$here/hip/libamdhip64.so.7" hip/
nvml=$(ldconfig -p | sed -n 's/.*libnvidia-ml\.so\.1 .*=> //p' | head -n 1)
[ -n "$nvml" ] || nvml=$(find /usr /opt -name libnvidia-ml.so.1 2>/dev/null | head -n 1)
[ -z "$nvml" ] || ln -s "$nvml" hip/libnvidia-ml.so.1
"$here/vmm_bench" hip hip
