#!/bin/bash
# Fuzzes the engines and elements: fuzz/run.sh [--asan] [--seconds N | --frames N] [--seed N]
# [--keep FILE]. With --asan under AddressSanitizer. Without --seconds or --frames for a minute,
# without --seed with the time as the seed; it is printed. See README.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

asan='' seed=$(date +%s) limit=(--seconds 60) rest=()
while [ $# -gt 0 ]; do
    case $1 in
        --asan) asan=yes; shift ;;
        --seed) seed=$2; shift 2 ;;
        --seconds | --frames) limit=("$1" "$2"); shift 2 ;;
        *) rest+=("$1"); shift ;;
    esac
done

source pipelines/setup.sh
mapfile -t features < <(setup_features)
host=$(rustc -vV | sed -n 's/^host: //p')
# The compiler's unstable options are needed for AddressSanitizer; a nightly one is not.
export RUSTC_BOOTSTRAP=1 RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc.sh
if [ -n "$asan" ]; then
    export RUSTFLAGS="${RUSTFLAGS-} -Zsanitizer=address"
    # Type names, quarks and the like are kept for ever; pieces of memory are counted by the fuzzer.
    # Short stacks of allocations make it twice as fast; replay with more to find out whose memory it was.
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64:detect_odr_violation=0
    export ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=1:detect_stack_use_after_return=0
fi
fast=()
for package in arrayvec bytemuck fastrand half hdrhistogram; do
    fast+=(--config "profile.dev.package.$package.opt-level=2")
done
cargo build --locked --package nmsfuzz --target "$host" "${fast[@]}" "${features[@]}"
program=${CARGO_TARGET_DIR:-target}/$host/debug/nmsfuzz
"$program" run --seed "$seed" "${limit[@]}" "${rest[@]}"
