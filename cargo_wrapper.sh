#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by meson.build: cargo_wrapper.sh CARGO SOURCE TARGET_DIR PROFILE FEATURES DEPFILE PACKAGE=LIBRARY=OUTPUT...
# Builds the packages in one call of cargo, and copies the LIBRARY that cargo makes of each to its OUTPUT. Cargo's own variables apply: CARGO_TARGET_DIR in
# place of TARGET_DIR, and CARGO_BUILD_TARGET for another platform.
set -eu
cargo=$1 source=$2 target=$3 profile=$4 features=$5 depfile=$6
target=${CARGO_TARGET_DIR:-$target}
shift 6

packages=
for built; do packages="$packages --package ${built%%=*}"; done
# shellcheck disable=SC2086 # names of packages, without spaces
"$cargo" build --locked --lib $packages --manifest-path "$source/Cargo.toml" --target-dir "$target" \
    --profile "$profile" --features "$features"
# Cargo's name for the folder of its dev profile.
[ "$profile" != dev ] || profile=debug
folder=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
: >"$depfile"
for built; do
    output=${built##*=}
    library=${built#*=} library=${library%%=*}
    cp "$folder/$library" "$output"
    # Cargo lists what it read, for one of the kinds of library; ninja wants its own name for the result.
    sed -n "1s|^.*/${library%.*}\.[a-z]*: |$output: |p" "$folder/${library%.*}.d" >>"$depfile"
done
