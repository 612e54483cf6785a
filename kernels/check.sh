#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the checked-in PTX is what its sources give, and that it compiles to machine code for
# common GPUs: kernels/check.sh
#
# Prints registers, spilled bytes and shared memory of each kernel for each GPU. Fails where the PTX
# is not what build.sh builds, where a kernel spills, or where an assembler reports an error. Then
# runs the kernels on the host under AddressSanitizer. Needs cargo, clang-19 (build.sh), g++ and
# Python 3 with venv; NVIDIA's assemblers come from the Python package index into the folder
# NMSFILTER_CUDA_TOOLS.
set -eu
cd "$(dirname "$0")"
tools=${NMSFILTER_CUDA_TOOLS:-../target/cuda-tools}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

./build.sh "$work/ptx"
if ! diff -rq "$work/ptx" ptx; then
    echo "check.sh: kernels/ptx is not what the sources give; run kernels/build.sh and commit" >&2
    exit 1
fi

# Folder, packages
fetch() {
    [ -e "$tools/$1/.complete" ] && return
    [ -x "$tools/python/bin/pip" ] || python3 -m venv "$tools/python"
    "$tools/python/bin/pip" install --quiet --disable-pip-version-check --no-deps --target "$tools/$1" "$2"
    touch "$tools/$1/.complete"
}
fetch 11 nvidia-cuda-nvcc-cu11==11.8.89
fetch 12 nvidia-cuda-nvcc-cu12==12.9.86
fetch 13 nvidia-cuda-nvcc==13.5.37

python3 check.py "$tools" ptx

echo "the emulated kernels under AddressSanitizer:"
g++ -std=c++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -ffp-contract=off \
    -Wall -Wextra -Wno-unknown-pragmas -Werror emulate/check.cpp -o "$work/check"
# In another folder than the builds with optimization.
built=${CARGO_TARGET_DIR:-../target}/scenes
CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo build --quiet --locked --package nmsfilter-core --example scenes --target-dir "$built"
"$built/debug/examples/scenes" "$work/small" 1 150
"$work/check" "$work/small"
"$built/debug/examples/scenes" "$work/large" 1000 2 6000
"$work/check" "$work/large"
