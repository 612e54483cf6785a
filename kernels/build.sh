#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the checked-in PTX: kernels/build.sh [folder, default kernels/ptx]
#
# Needs clang 19.1.7 (Debian 12: apt-get install clang-19). CUDA is not needed. The same sources and
# the same compiler give the same bytes on any machine.
#
#   *.sm_60.ptx  ISA 6.3: any GPU of compute capability 6.0 and up, any driver from CUDA 10.0 on.
#                PTX for 7.0 or 7.5 takes as many registers and more instructions
#   *.sm_80.ptx  ISA 7.4: 8.0 and up, drivers from CUDA 11.4 on; warp reductions in one
#                instruction, and nanosleep as the backoff
#   *.sm_90.ptx  ISA 8.2: 9.0 and up, drivers from CUDA 12.2 on (older ones take sm_80); programmatic
#                dependent launch, and logical operations that combine their result with a predicate
set -eu
cd "$(dirname "$0")"
out=${1:-ptx}
clang=${CLANG:-clang-19}
wanted=19.1.7

version=$("$clang" -dumpversion) || {
    echo "build.sh: $clang not found; install clang-19 or set CLANG to clang $wanted" >&2
    exit 1
}
if [ "$version" != "$wanted" ]; then
    echo "build.sh: expected clang $wanted, got $version; other versions generate other PTX" >&2
    exit 1
fi

mkdir -p "$out"
# build NAME ARCHITECTURE ISA
build() {
    "$clang" -x cuda --cuda-device-only "--cuda-gpu-arch=$2" "--cuda-feature=+$3" \
        -nocudainc -nocudalib -Wno-unknown-cuda-version -include freestanding.cuh \
        -std=c++17 -O3 -ffp-contract=off -Wall -Wextra -Werror -S "$1.cu" -o "$out/$1.$2.ptx"
}
jobs=
for file in 'nmsfilter sm_60 ptx63' 'nmsfilter sm_80 ptx74' 'nmsfilter sm_90 ptx82' 'resample sm_60 ptx63' 'paper sm_60 ptx63'; do
    # shellcheck disable=SC2086 # three words
    build $file &
    jobs="$jobs $!"
done
for job in $jobs; do wait "$job"; done
