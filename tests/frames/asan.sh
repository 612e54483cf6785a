#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Runs the test program `frames` with AddressSanitizer in the plugin and the tests:
# tests/frames/asan.sh [OPTION...]. The options are passed to the test program. Each reader reads
# 100,000 frames, or NMSFILTER_TEST_FRAMES.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source tests/asan.sh
build_asan
# GLib never frees type names and quarks.
export ASAN_OPTIONS=detect_leaks=0:detect_odr_violation=0:quarantine_size_mb=16
export NMSFILTER_TEST_FRAMES=${NMSFILTER_TEST_FRAMES:-100000}
"$(asan_program frames)" --nocapture "$@"
