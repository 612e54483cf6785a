#!/bin/sh
# Builds the GPU that is not there: kernels/emulate/libcuda.sh FOLDER
#
#   FOLDER/libcuda.so.1      for LD_LIBRARY_PATH; libcuda.cpp says what it is
#   FOLDER/old/libcuda.so.1  the same, of a driver that lacks a function
#   FOLDER/gstcuda/libgstcuda-1.0.so.0
#                            the functions of GStreamer's CUDA library by which the stream of a memory
#                            is found; gstcuda.cpp says more
set -eu
folder=$1
mkdir -p "$folder/old" "$folder/gstcuda"
cd "$(dirname "$0")"
build() {
    ${CXX:-g++} -std=c++17 -O2 -g -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -Werror -fPIC -shared \
        -fvisibility=hidden -Wl,-soname,libcuda.so.1 "$@" libcuda.cpp
}
build -o "$folder/libcuda.so.1"
build -DNMSFILTER_OLD_DRIVER -o "$folder/old/libcuda.so.1"
${CXX:-g++} -std=c++17 -O2 -g -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden \
    -Wl,-soname,libgstcuda-1.0.so.0 -o "$folder/gstcuda/libgstcuda-1.0.so.0" gstcuda.cpp
