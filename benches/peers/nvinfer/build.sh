#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles nvinfer's suppression from its published source: benches/peers/nvinfer/build.sh DEEPSTREAM FOLDER
#
# DEEPSTREAM has the folders includes and src of DeepStream 9.1. Writes FOLDER/libnvinfer_nms.so (nvinfer.h).
# The headers of CUDA and TensorRT are replaced by stubs, and so are two of another library of
# DeepStream's; the function that is measured uses none of their names. nvinfer's own Makefile has no option for
# optimization; -O3 is in nvinfer's favor. Operations are not contracted, as on x86-64 by default.
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
# The standard of nvinfer's Makefile.
# shellcheck disable=SC2086  # a list of options
${CXX:-g++} -std=c++14 $options -c -o "$object" \
    "$deepstream/src/utils/nvdsinfer/nvdsinfer_context_impl_output_parsing.cpp"
# shellcheck disable=SC2086
${CXX:-g++} -std=c++17 $options -Wall -Wextra -Werror -shared -Wl,--no-undefined -o "$library" nvinfer.cpp "$object"
# Renamed when complete: other programs may be using the file or writing it, too.
mv -f "$library" "$folder/libnvinfer_nms.so"
