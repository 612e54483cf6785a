#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the stand-in for DeepStream's libraries: build.sh FOLDER VERSION [HEADERS]
#
#   FOLDER/libnvds_meta.so, FOLDER/libnvdsgst_meta.so, from 8.0 on FOLDER/libnvds_utils.so
#
# VERSION is the version without its point, such as 71. HEADERS is a folder with NVIDIA's headers of
# 9.1; without it, the structures come from metadata.h. CC and CFLAGS are used to compile. With
# CFLAGS=-fsanitize=address, the program that loads the libraries must contain the AddressSanitizer
# runtime. If PREFIX is set, it replaces "lib" at the beginning of file names.
#
# LIBRARIES is a folder with NVIDIA's own libraries. If it is set, FOLDER gets links to them, and
# FOLDER/libstandin.so, which contains the producers of batches that call them.
set -eu
folder=$1 version=$2 headers=${3-}
mkdir -p "$folder"
folder=$(realpath "$folder")
cd "$(dirname "$0")"
packages='gstreamer-1.0'
structures="-DDEEPSTREAM=$version"
if [ -n "$headers" ]; then
    packages='gstreamer-1.0 gstreamer-base-1.0 gstreamer-video-1.0'
    # As system headers, they give no warnings.
    structures="-DNVIDIA_HEADERS -isystem $headers"
fi
compiler=${CC:-cc}
# library NAME SOURCE... [OPTION...]
library() {
    name=${PREFIX-}$1
    shift
    # Compiling and linking are separate steps, so that the AddressSanitizer runtime is not linked.
    for argument in "$@"; do
        shift
        case $argument in
            *.c)
                object=$folder/$name-${argument%.c}.o
                # shellcheck disable=SC2086,SC2046
                $compiler -std=c11 -O1 -g -Wall -Wextra -Werror -D_GNU_SOURCE -fPIC ${CFLAGS-} $structures \
                    $(pkg-config --cflags $packages) -c -o "$object" "$argument"
                set -- "$@" "$object"
                ;;
            *) set -- "$@" "$argument" ;;
        esac
    done
    # shellcheck disable=SC2046
    $compiler -shared -Wl,-soname,"$name" -o "$folder/$name" "$@" $(pkg-config --libs gstreamer-1.0)
}
if [ -n "${LIBRARIES-}" ]; then
    for name in libnvds_meta.so libnvdsgst_meta.so libnvds_utils.so; do
        ln -sf "$(realpath "$LIBRARIES")/$name" "$folder/$name"
    done
    library libstandin.so nvidia.c surface.c tensors.c read.c \
        -L"$folder" -l:libnvdsgst_meta.so -l:libnvds_meta.so -Wl,-rpath,"$folder"
    exit
fi
if [ "$version" -ge 80 ]; then
    library libnvds_utils.so version.c
    set --
else
    set -- version.c
fi
library libnvds_meta.so meta.c tensors.c read.c "$@"
library libnvdsgst_meta.so gst.c surface.c "$folder/${PREFIX-}libnvds_meta.so"
