#!/bin/sh
# Makes the checked-in PTX anew: kernels/build.sh [folder, kernels/ptx where none is named]
#
# Needs clang 19.1.7 (Debian 12: apt-get install clang-19) and nothing of CUDA. The same sources
# and compiler give the same bytes on any machine.
#
#   *.sm_60.ptx  ISA 6.3: any GPU of compute capability 6.0 and up, any driver from CUDA 10.0 on.
#                For 7.0 or 7.5 the same sources give as many registers and more instructions
#   *.sm_80.ptx  ISA 7.4: 8.0 and up, drivers from CUDA 11.4 on; sums and maxima of a warp in one
#                instruction, and a rest while waiting
#   *.sm_90.ptx  ISA 7.8: 9.0 and up, drivers from CUDA 11.8 on; kernels that take turns by themselves
set -eu
cd "$(dirname "$0")"
out=${1:-ptx}
clang=${CLANG:-clang-19}
wanted=19.1.7

version=$("$clang" -dumpversion) || {
    echo "build.sh: $clang is not there; install clang-19 or name clang $wanted in CLANG" >&2
    exit 1
}
if [ "$version" != "$wanted" ]; then
    echo "build.sh: expected clang $wanted, got $version; other versions give other PTX" >&2
    exit 1
fi

mkdir -p "$out"
# build NAME ARCHITECTURE ISA
build() {
    "$clang" -x cuda --cuda-device-only "--cuda-gpu-arch=$2" "--cuda-feature=+$3" \
        -nocudainc -nocudalib -Wno-unknown-cuda-version -include freestanding.cuh \
        -std=c++17 -O3 -ffp-contract=off -Wall -Wextra -Werror -S "$1.cu" -o "$out/$1.$2.ptx"
}
build nmsfilter sm_60 ptx63
build nmsfilter sm_80 ptx74
build nmsfilter sm_90 ptx78
build paper sm_60 ptx63
