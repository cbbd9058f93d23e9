#!/bin/bash
# tests/fuzz/run.sh SECONDS [NAME…]: builds the fuzzers (all, or those named: gguf, stream, …) and runs each for that long.
# The corpus grows in build/fuzz/corpus; inputs that broke something are left in build/fuzz/findings. Exit status 1 if there are any.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:?usage: tests/fuzz/run.sh SECONDS [NAME…]}
shift
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
    for source in tests/fuzz/fuzz_*.cpp; do
        name=${source##*/fuzz_}
        names+=("${name%.cpp}")
    done
fi

mkdir -p build
# Debian's llvm-symbolizer has no version in its name where only one is installed.
for symbolizer in llvm-symbolizer-19 llvm-symbolizer; do
    if [ -z "${ASAN_SYMBOLIZER_PATH:-}" ] && command -v "$symbolizer" > /dev/null; then
        ASAN_SYMBOLIZER_PATH=$(command -v "$symbolizer")
        export ASAN_SYMBOLIZER_PATH
    fi
done

cmake --preset fuzz > build/fuzz-configure.log 2>&1 || { cat build/fuzz-configure.log; exit 2; }
cmake --build --preset fuzz --target make_fuzz_seeds "${names[@]/#/fuzz_}"
seeds=build/fuzz/seeds
rm -rf "$seeds"
build/fuzz/bin/make_fuzz_seeds "$seeds"
mkdir -p "$seeds/schema"
for file in tests/server/schemas/*.json; do (echo -n x; cat "$file") > "$seeds/schema/${file##*/}"; done

failed=()
for name in "${names[@]}"; do
    corpus=build/fuzz/corpus/$name
    findings=build/fuzz/findings/$name
    mkdir -p "$corpus" "$findings" "$seeds/$name"
    options=(-max_total_time="$seconds" -max_len=4096 -timeout=30 -report_slow_units=30 -rss_limit_mb=2048 -artifact_prefix="$findings/" -print_final_stats=1)
    [ -f "tests/fuzz/$name.dict" ] && options+=(-dict="tests/fuzz/$name.dict")
    echo "fuzz_$name for $seconds s"
    build/fuzz/bin/fuzz_"$name" "${options[@]}" "$corpus" "$seeds/$name" 2> "build/fuzz/$name.log" || failed+=("$name")
    tail -n 8 "build/fuzz/$name.log"
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "findings: ${failed[*]} (see build/fuzz/findings and build/fuzz/*.log)"
    exit 1
fi
echo "no findings"
