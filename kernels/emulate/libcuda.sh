#!/bin/sh
# Builds the GPU that is not there: kernels/emulate/libcuda.sh FOLDER
#
#   FOLDER/libcuda.so.1      for LD_LIBRARY_PATH; libcuda.cpp says what it is
#   FOLDER/old/libcuda.so.1  the same, of a driver that lacks a function
set -eu
folder=$1
mkdir -p "$folder/old"
cd "$(dirname "$0")"
build() {
    ${CXX:-g++} -std=c++17 -O2 -g -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -Werror -fPIC -shared \
        -fvisibility=hidden -Wl,-soname,libcuda.so.1 "$@" libcuda.cpp
}
build -o "$folder/libcuda.so.1"
build -DNMSFILTER_OLD_DRIVER -o "$folder/old/libcuda.so.1"
