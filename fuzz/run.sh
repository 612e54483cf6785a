#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Fuzzes the engines and elements: fuzz/run.sh [--asan] [--seconds N | --frames N] [--seed N]
# [--keep FILE]. With --asan, AddressSanitizer is used. By default, the fuzzer runs for 60 seconds,
# and the seed, which is printed, is the current time. See README.md.
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

if [ -n "$asan" ]; then
    source tests/asan.sh
    build_asan
    program=$(asan_program nmsfuzz)
    # GLib never frees type names and quarks, so leaks are not detected. Instead, the fuzzer counts
    # the memories of tensors. Short allocation stacks double the speed. Replay a case with longer
    # stacks to find an allocation.
    ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=64:detect_odr_violation=0
    export ASAN_OPTIONS=$ASAN_OPTIONS:malloc_context_size=1:detect_stack_use_after_return=0
else
    # The counters need an unstable option, but no nightly compiler. With --target, the build has
    # its own folder.
    host=$(rustc -vV | sed -n 's/^host: //p')
    RUSTC_BOOTSTRAP=1 RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc.sh \
        cargo build --locked --package nmsfuzz --target "$host"
    program=${CARGO_TARGET_DIR:-target}/$host/debug/nmsfuzz
fi
"$program" run --seed "$seed" "${limit[@]}" "${rest[@]}"
