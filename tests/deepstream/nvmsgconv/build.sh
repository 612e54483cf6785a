#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles DeepStream's payload generator: tests/deepstream/nvmsgconv/build.sh DEEPSTREAM FOLDER
#
# DEEPSTREAM must contain the folders includes and src of DeepStream 9.1. Writes
# FOLDER/libnvmsgconv_json.so (nvmsgconv_json.h). All sources of the generator are compiled. Stubs
# replace the headers of DeepStream's 3D components and of the CUDA runtime, so payloads for 3D
# detections are empty. The element nvmsgconv, which calls the generator, is not compiled. The
# script needs json-glib, libuuid, yaml-cpp, and protobuf 3.21, which generated NVIDIA's
# schema.pb.cc.
set -eu
deepstream=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
cd "$(dirname "$0")"
source=$deepstream/src/utils/nvmsgconv
library=$folder/libnvmsgconv_json.so
# Compiling takes a quarter of a minute.
if [ -e "$library" ] && [ -z "$(find . "$source" "$deepstream/includes" -newer "$library" -print -quit)" ]; then
    exit
fi
packages="glib-2.0 gobject-2.0 gmodule-2.0 json-glib-1.0 uuid yaml-cpp protobuf"
if ! pkg-config --print-errors --exists $packages; then
    echo "install libjson-glib-dev uuid-dev libyaml-cpp-dev libprotobuf-dev" >&2
    exit 1
fi
# -w suppresses warnings, because the sources are NVIDIA's.
options="-std=c++14 -O0 -fPIC -fvisibility=hidden -isystem stubs -isystem $deepstream/includes -isystem $source
    -isystem $source/deepstream_schema $(pkg-config --cflags $packages)"
work=$(mktemp -d "$folder/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
# shellcheck disable=SC2086  # a list of options
for file in nvmsgconv.cpp deepstream_schema/eventmsg_payload.cpp deepstream_schema/dsmeta_payload.cpp \
    deepstream_schema/deepstream_schema.cpp deepstream_schema/schema.pb.cc deepstream_schema/lidar_schema.pb.cc; do
    ${CXX:-g++} $options -w -c -o "$work/$(basename "$file").o" "$source/$file"
done
# shellcheck disable=SC2086,SC2046  # lists of options
${CXX:-g++} $options -Wall -Wextra -Werror "-DNVMSGCONV_CONFIG=\"$PWD/config.txt\"" -shared -Wl,--no-undefined \
    -o "$work/library.so" nvmsgconv_json.cpp "$work"/*.o $(pkg-config --libs $packages)
# The file is renamed when it is complete, because other programs may be using or writing it
# concurrently.
mv -f "$work/library.so" "$library"
