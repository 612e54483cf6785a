#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Checks that the checked-in PTX is what its sources give, and that it compiles to machine code for
# common GPUs: kernels/check.sh
#
# Prints registers, spilled bytes and shared memory of each kernel for each GPU. Fails where the PTX
# is not what build.sh builds, where a kernel spills, or where an assembler reports an error. Then runs
# the CUDA engine's tests with a stub driver that runs the kernels on the host under AddressSanitizer
# (emulate/libcuda.cpp). Needs cargo, GStreamer, clang-19 (build.sh), g++ and Python 3 with venv; NVIDIA's
# assemblers come from the Python package index into the folder NMSFILTER_CUDA_TOOLS.
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
fetch 12 nvidia-cuda-nvcc-cu12==12.2.140
fetch 13 nvidia-cuda-nvcc==13.5.37

python3 check.py "$tools" ptx

echo "the emulated kernels under AddressSanitizer:"
CXXFLAGS='-O1 -fsanitize=address,undefined -fno-sanitize-recover=all' emulate/libcuda.sh "$work/emulated"
# With the features of the whole workspace, so that what other tests use is not compiled again.
program=$(cd .. && cargo test --quiet --locked --no-run --workspace --test cuda --message-format json-render-diagnostics |
    sed -n 's/.*"name":"cuda".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
# With one multiprocessor a warp has many candidates, with five several warps have few.
for multiprocessors in 1 5; do
    # GLib never frees type names and quarks. The runtime must be loaded before all libraries.
    (cd ../tests && LD_PRELOAD=$(g++ -print-file-name=libasan.so) LD_LIBRARY_PATH=$work/emulated \
        ASAN_OPTIONS=detect_leaks=0 NMSFILTER_EMULATED_CUDA=$work/emulated NMSFILTER_EMULATED_DEVICES=2 \
        NMSFILTER_EMULATED_MULTIPROCESSORS=$multiprocessors NMSFILTER_TEST_BACKEND=cuda \
        NMSFILTER_TEST_FEWER=100 NMSFILTER_TEST_SCENES=20 \
        "$program" --include-ignored tensors_in_ each_image random_ sorted_scenes the_cpu_and_the_gpu kernels_run_again)
done
