#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# meson.build runs this script: cargo_wrapper.sh CARGO SOURCE TARGET_DIR PROFILE DEPFILE
# PACKAGE=LIBRARY=OUTPUT... Builds all packages in one call of cargo. From each PACKAGE, copies the
# file LIBRARY that cargo makes to OUTPUT. Cargo's own variables are obeyed: CARGO_TARGET_DIR
# replaces TARGET_DIR, and CARGO_BUILD_TARGET selects another platform.
set -eu
cargo=$1 source=$2 target=$3 profile=$4 depfile=$5
target=${CARGO_TARGET_DIR:-$target}
shift 5

packages=
for built; do packages="$packages --package ${built%%=*}"; done
# shellcheck disable=SC2086 # names of packages, without spaces
"$cargo" build --locked --lib $packages --manifest-path "$source/Cargo.toml" --target-dir "$target" \
    --profile "$profile"
# Cargo calls the folder of its dev profile "debug".
[ "$profile" != dev ] || profile=debug
folder=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
: >"$depfile"
for built; do
    output=${built##*=}
    library=${built#*=} library=${library%%=*}
    cp "$folder/$library" "$output"
    # Cargo lists the files that it read for one of the library kinds. Ninja needs its own name for
    # the result.
    sed -n "1s|^.*/${library%.*}\.[a-z]*: |$output: |p" "$folder/${library%.*}.d" >>"$depfile"
done
