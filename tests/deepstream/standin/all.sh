#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds all stand-ins that the tests use, for an environment without a compiler: all.sh FOLDER [HEADERS]
#
# NMSFILTER_TEST_STANDINS is FOLDER there. HEADERS as in build.sh.
set -eu
folder=$1 headers=${2-}
build=$(dirname "$0")/build.sh
for version in 60 61 62 63 64 70 71 80 90 91; do
    "$build" "$folder/$version" $version
done
[ -z "$headers" ] || "$build" "$folder/91-headers" 91 "$headers"
PREFIX=other- "$build" "$folder/71-other-names" 71
for variant in 71-without-nvds_version 80-without-nvds_add_obj_meta_to_frame 80-without-gst_buffer_get_nvds_batch_meta; do
    function=${variant#*-without-}
    CFLAGS="${CFLAGS-} -D$function=other_$function" "$build" "$folder/$variant" "${variant%%-*}"
done
