#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures nmsfilter, DeepStream's nvinfer, OpenCV and torchvision on equal candidate lists, in one
# run on one core.
#
#   benches/peers/run.sh [--without-torch] [FOLDER]
#
# Results are written to FOLDER (default: nmsbench-results): peers.csv, oriented-peers.csv and the
# files of nmsbench. The script needs Python 3.11 or later with venv, a C++ compiler, and the
# recorded data (NMSFILTER_TEST_DATA, default: ../shared). nvinfer also needs the folder
# deepstream-9.1 in the recorded data. The packages in requirements.txt are installed into
# target/peers; they take several gigabytes, or 300 MB without torch and torchvision. NMSBENCH can
# name an nmsbench executable; otherwise cargo builds it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
selection=complete
if [ "${1-}" = --without-torch ]; then
    selection=without-torch
    shift
fi
out=$(realpath -m "${1:-nmsbench-results}")
data=$(realpath "${NMSFILTER_TEST_DATA:-../shared}")
[ -d "$data/data" ] || { echo "there is no recorded data in $data; set NMSFILTER_TEST_DATA" >&2; exit 1; }
export NMSFILTER_TEST_DATA=$data
mkdir -p "$out"

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
venv=$target/peers/$selection
if [ ! -e "$venv/done" ]; then
    python3 -m venv "$venv"
    requirements=$(cat benches/peers/requirements.txt)
    [ "$selection" = complete ] || requirements=$(grep -v '^torch' <<<"$requirements")
    "$venv/bin/pip" install --quiet --requirement <(echo "$requirements")
    touch "$venv/done"
fi
nvinfer=()
if [ -d "$data/deepstream-9.1" ]; then
    benches/peers/nvinfer/build.sh "$data/deepstream-9.1" "$target/nvinfer"
    nvinfer=("$target/nvinfer/libnvinfer_nms.so")
else
    echo "SKIPPED: nvinfer, because there is no deepstream-9.1 in $data"
fi
bench=${NMSBENCH:-$target/release/nmsbench}
[ -n "${NMSBENCH-}" ] || cargo build --quiet --release --package nmsbench

# The last core that this script is allowed to use.
core=$(taskset --cpu-list --pid $$ | sed 's/.*[ ,-]//')
on_one_core=(taskset --cpu-list "$core")
"$venv/bin/python" benches/peers/ultraface.py "$data" "$out/ultraface640_selfie_0.05.csv"
"${on_one_core[@]}" "$bench" --out "$out" candidates "$out/ultraface640_selfie_0.05.csv"
"${on_one_core[@]}" "$venv/bin/python" benches/peers/nms.py "$out" "${nvinfer[@]}"
"${on_one_core[@]}" "$bench" --out "$out" oriented
"${on_one_core[@]}" "$venv/bin/python" benches/peers/oriented.py "$out"
