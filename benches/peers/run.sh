#!/bin/bash
# Ours beside OpenCV and torchvision on the same lists, in one run.
#
#   benches/peers/run.sh [FOLDER]
#
# Results go to FOLDER (nmsbench-results): peers.csv, and what nmsbench writes. Wants Python 3.11 or
# later with venv, and the recorded data (NMSFILTER_TEST_DATA, ../shared unless set); installs
# requirements.txt, some gigabytes, into target/peers. NMSBENCH names a built nmsbench where there
# is no cargo.
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
