#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by meson.build: cargo_wrapper.sh CARGO SOURCE TARGET_DIR PROFILE FEATURES DEPFILE PACKAGE=OUTPUT...
# Builds the libraries of the packages, and copies each to its OUTPUT.
set -eu
cargo=$1 source=$2 target=$3 profile=$4 features=$5 depfile=$6
shift 6

packages=
for plugin; do packages="$packages --package ${plugin%%=*}"; done
# shellcheck disable=SC2086 # names of packages, without spaces
"$cargo" build --locked --lib $packages --manifest-path "$source/Cargo.toml" --target-dir "$target" \
    --profile "$profile" --features "$features"
# Cargo's name for the folder of its dev profile.
[ "$profile" != dev ] || profile=debug
: >"$depfile"
for plugin; do
    output=${plugin#*=}
    library=$(basename "$output")
    cp "$target/$profile/$library" "$output"
    # Cargo lists what it read, for one of the kinds of library; ninja wants its own name for the result.
    sed -n "1s|^.*/${library%.*}\.[a-z]*: |$output: |p" "$target/$profile/${library%.*}.d" >>"$depfile"
done
