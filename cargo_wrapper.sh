#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Run by meson.build: cargo_wrapper.sh CARGO SOURCE TARGET_DIR PROFILE FEATURES OUTPUT DEPFILE
set -eu
cargo=$1 source=$2 target=$3 profile=$4 features=$5 output=$6 depfile=$7
library=$(basename "$output")

"$cargo" build --locked --lib --manifest-path "$source/Cargo.toml" --target-dir "$target" \
    --profile "$profile" --features "$features"
# Cargo's name for the folder of its dev profile.
[ "$profile" != dev ] || profile=debug
cp "$target/$profile/$library" "$output"
# Cargo lists what it read, for one of the kinds of library; ninja wants its own name for the result.
sed -n "1s|^.*/${library%.*}\.[a-z]*: |$output: |p" "$target/$profile/${library%.*}.d" >"$depfile"
