#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Measures the CPU part of docs/developers/measurements.md: benches/measurements.sh [--without-torch] FOLDER
#
# Needs an idle machine for two minutes, and what benches/peers/run.sh needs, which it runs. Results are written to
# FOLDER, for benches/measurements.py.
set -euo pipefail
torch=()
if [ "${1-}" = --without-torch ]; then
    torch=("$1")
    shift
fi
[ $# = 1 ] || { sed -n '3,6s/^# \?//p' "$0" >&2; exit 2; }
out=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mkdir -p "$out"
git describe --always --dirty --abbrev=8 --exclude='*' >"$out/commit"
date -u +%F >"$out/date"
benches/peers/run.sh "${torch[@]}" "$out"
