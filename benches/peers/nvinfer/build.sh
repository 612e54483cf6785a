#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles nvinfer's suppression from its published source: benches/peers/nvinfer/build.sh DEEPSTREAM FOLDER
#
# DEEPSTREAM must contain the folders includes and src of DeepStream 9.1. Writes
# FOLDER/libnvinfer_nms.so (nvinfer.h). Stubs replace the headers of CUDA and TensorRT, and two
# headers of another DeepStream library; the measured function needs no name in them. nvinfer's own
# Makefile sets no optimization, so -O3 is in nvinfer's favor. Operations are not contracted, which
# is the default on x86-64.
set -eu
deepstream=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")"
options="-O3 -DNDEBUG -ffp-contract=off -fPIC -fvisibility=hidden -Wno-deprecated-declarations
    -Wno-non-template-friend -isystem stubs -isystem $deepstream/includes -isystem $deepstream/src/utils/nvdsinfer"
object=$(mktemp "$folder/parsing.XXXXXX.o")
library=$(mktemp "$folder/nvinfer.XXXXXX.so")
trap 'rm -f "$object" "$library"' EXIT
# This is the language standard in nvinfer's Makefile.
# shellcheck disable=SC2086  # a list of options
${CXX:-g++} -std=c++14 $options -c -o "$object" \
    "$deepstream/src/utils/nvdsinfer/nvdsinfer_context_impl_output_parsing.cpp"
# shellcheck disable=SC2086
${CXX:-g++} -std=c++17 $options -Wall -Wextra -Werror -shared -Wl,--no-undefined -o "$library" nvinfer.cpp "$object"
# The file is renamed when it is complete, because other programs may be using or writing it
# concurrently.
mv -f "$library" "$folder/libnvinfer_nms.so"
