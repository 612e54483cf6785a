#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures nmsfilter, OpenCV and torchvision on the same candidate lists, in one run.
#
#   benches/peers/run.sh [FOLDER]
#
# Results are written to FOLDER (default: nmsbench-results): peers.csv and the files of nmsbench. Needs
# Python 3.11 or later with venv, and the recorded data (NMSFILTER_TEST_DATA, default: ../shared).
# Installs requirements.txt, several gigabytes, into target/peers. NMSBENCH can name an nmsbench
# executable; otherwise cargo builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
out=$(realpath -m "${1:-nmsbench-results}")
data=$(realpath "${NMSFILTER_TEST_DATA:-../shared}")
[ -d "$data/data" ] || { echo "there is no recorded data in $data; set NMSFILTER_TEST_DATA" >&2; exit 1; }
export NMSFILTER_TEST_DATA=$data
mkdir -p "$out"

venv=$(realpath -m "${CARGO_TARGET_DIR:-target}")/peers
if [ ! -e "$venv/done" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --requirement benches/peers/requirements.txt
    touch "$venv/done"
fi
"$venv/bin/python" benches/peers/ultraface.py "$data" "$out/ultraface640_selfie_0.05.csv"
bench=(${NMSBENCH:-cargo run --quiet --release --package nmsbench --})
"${bench[@]}" --out "$out" candidates "$out/ultraface640_selfie_0.05.csv"
"$venv/bin/python" benches/peers/nms.py "$out"
