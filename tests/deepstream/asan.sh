#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the test program `deepstream` with AddressSanitizer in the element, the tests and the
# stand-in: tests/deepstream/asan.sh [OPTION...]. The options are passed to the test program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/asan.sh
build_asan
program=$(asan_program deepstream)
# GLib never frees type names and quarks, so leaks are not detected here. Instead, the stand-in
# counts what exists.
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:detect_stack_use_after_return=0
# GLib's slices would hide memory that is freed.
export G_SLICE=always-malloc CFLAGS=-fsanitize=address
cd tests
# The test that measures memory is left out, because the sanitizer keeps freed memory for a while.
"$program" --skip failures::many_batches "$@"
