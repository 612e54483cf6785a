#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Tests of the Python package: python/tests/run.sh [WHEEL]
#
# Installs WHEEL, or one that it builds without optimization, into a new virtual environment of the system's Python, which has
# PyGObject, and runs the tests there, outside of the checkout. If NMSFILTER_EMULATED_CUDA is the folder of the driver that
# emulates a GPU (kernels/emulate), those of device memory run, too. NumPy and the tools that read converted lines are kept in
# the user's cache folder (NMSFILTER_CACHE), and the wheel in NMSFILTER_WHEELS, if that is a folder.
set -euo pipefail
tests=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}
export NMSFILTER_TEST_DATA=${NMSFILTER_TEST_DATA:-$(realpath -m "$tests/../../../shared")}
python=/usr/bin/python3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

if [ $# = 1 ]; then
    wheel=$(realpath "$1")
else
    wheels=${NMSFILTER_WHEELS:-$folder/wheel}
    CARGO_PROFILE_DEV_OPT_LEVEL=0 NMSFILTER_WHEEL_PROFILE=dev "$tests/../build.sh" "$wheels"
    wheel=("$wheels"/*.whl)
fi
wheels=$cache/python-wheels
"$python" -m venv --system-site-packages "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check --quiet)
ls "$wheels"/numpy-* >/dev/null 2>&1 || "${pip[@]}" download --no-deps --dest "$wheels" numpy
"${pip[@]}" install --no-index --find-links "$wheels" numpy "${wheel[@]}"

# A registry of its own: the plugins are elsewhere each time.
export GST_REGISTRY=$folder/registry.bin
cd "$folder"
"$folder/venv/bin/python" -m nmsfilter
"$python" "$tests/../../tests/documents.py" "$folder" --python "$folder/venv/bin/python"
"$tests/types.sh" "$folder/venv/bin/python"
tools=$cache/results-tools-2.0.11-1.4.0-0.31.2
[ -d "$tools/lib" ] || { python3 -m venv "$tools" &&
    "$tools/bin/pip" install --quiet pycocotools==2.0.11 motmetrics==1.4.0 supervision==0.31.2 || { rm -r "$tools"; exit 1; }; }
"$tools/bin/python" -W ignore "$tests/converted.py"
[ -z "${NMSFILTER_EMULATED_CUDA-}" ] || export LD_LIBRARY_PATH=$NMSFILTER_EMULATED_CUDA
"$folder/venv/bin/python" -W error::ResourceWarning -m unittest discover --start-directory "$tests"
