#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by meson.build: cargo_wrapper.sh CARGO SOURCE TARGET_DIR PROFILE FEATURES DEPFILE PACKAGE=OUTPUT...
# Builds the libraries of the packages, and copies each to its OUTPUT. Cargo's own variables apply: CARGO_TARGET_DIR in
# place of TARGET_DIR, and CARGO_BUILD_TARGET for another platform.
set -eu
cargo=$1 source=$2 target=$3 profile=$4 features=$5 depfile=$6
target=${CARGO_TARGET_DIR:-$target}
shift 6

packages=
for plugin; do packages="$packages --package ${plugin%%=*}"; done
# shellcheck disable=SC2086 # names of packages, without spaces
"$cargo" build --locked --lib $packages --manifest-path "$source/Cargo.toml" --target-dir "$target" \
    --profile "$profile" --features "$features"
# Cargo's name for the folder of its dev profile.
[ "$profile" != dev ] || profile=debug
built=$target/${CARGO_BUILD_TARGET:+$CARGO_BUILD_TARGET/}$profile
: >"$depfile"
for plugin; do
    output=${plugin#*=}
    library=$(basename "$output")
    cp "$built/$library" "$output"
    # Cargo lists what it read, for one of the kinds of library; ninja wants its own name for the result.
    sed -n "1s|^.*/${library%.*}\.[a-z]*: |$output: |p" "$built/${library%.*}.d" >>"$depfile"
done
