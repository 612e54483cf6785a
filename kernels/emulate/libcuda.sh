#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the stub driver: kernels/emulate/libcuda.sh FOLDER
#
#   FOLDER/libcuda.so.1      for LD_LIBRARY_PATH (libcuda.cpp)
#   FOLDER/old/libcuda.so.1  the same without two functions that older drivers lack
#   FOLDER/gstcuda/libgstcuda-1.0.so.0
#                            the functions of GStreamer's CUDA library that give the stream of a
#                            memory (gstcuda.cpp)
#
# CXXFLAGS are further options of the compiler, such as -fsanitize=address.
set -eu
folder=$(realpath -m "$1")
mkdir -p "$folder/old" "$folder/gstcuda"
cd "$(dirname "$0")"
object=$folder/libcuda.o
trap 'rm -f "$object" "$object.old"' EXIT
build() {
    ${CXX:-g++} -std=c++17 -O2 -g -ffp-contract=off -Wall -Wextra -Wno-unknown-pragmas -Werror -fPIC -fvisibility=hidden \
        ${CXXFLAGS-} "$@"
}
build -shared -Wl,-soname,libgstcuda-1.0.so.0 -o "$folder/gstcuda/libgstcuda-1.0.so.0" gstcuda.cpp &
build -c -o "$object" libcuda.cpp
build -shared -Wl,-soname,libcuda.so.1 -o "$folder/libcuda.so.1" "$object"
echo '{ local: cuGraphAddDependencies_v2; cuGraphInstantiateWithFlags; };' >"$object.old"
build -shared -Wl,-soname,libcuda.so.1 "-Wl,--version-script=$object.old" -o "$folder/old/libcuda.so.1" "$object"
wait $!
