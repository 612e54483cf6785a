#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# crate.sh ROOT FOLDER TARGET: packages what is published, and builds in ROOT (tests/roots/make.sh), without this tree, a
# program that depends on the core, and the plugins: the program prints survivors, the plugins find faces in a
# picture. What is packaged is kept in FOLDER, the build in TARGET. ORT_DYLIB_PATH and NMSFILTER_TEST_DATA are those of tests/run.sh.
set -euo pipefail
root=$1 folder=$(realpath -m "$2") target=$(realpath -m "$3")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
source pipelines/setup.sh

packages=$folder/packages sources=$folder/sources
mkdir -p "$target"
rm -rf "$sources" "$packages/package"
cargo package --package nmsfilter-core --package nmsfilter-gstreamer --package gst-plugin-nmsfilter --package gst-plugin-objecttracker --package gst-plugin-onnxruntime --locked --offline --no-verify --allow-dirty \
    --target-dir "$packages"
mkdir -p "$sources/survivors/src"
# The files in the archives are dated 2006. With --touch they get today's date, so that cargo builds
# them.
for crate in "$packages"/package/*.crate; do tar --extract --touch --directory "$sources" --file "$crate"; done

# What a user writes. The workspace is for the crates that are not in the registry yet.
cat >"$sources/survivors/Cargo.toml" <<MANIFEST
[package]
name = "survivors"
version = "0.0.0"
edition = "2024"

[dependencies]
nmsfilter-core = "0.1"
MANIFEST
cat >"$sources/survivors/src/main.rs" <<'PROGRAM'
use nmsfilter_core::nms::{Backend, Nms};
use nmsfilter_core::tensor::TensorView;

fn main() -> Result<(), nmsfilter_core::nms::NmsError> {
    let windows = [100.0, 50.0, 80.0, 0.9, 104.0, 54.0, 80.0, 0.6, 300.0, 60.0, 90.0, 0.7f32];
    let tensors = [TensorView::from_slice("windows", &[3, 4], &windows)];
    let mut nms = Nms::new(Backend::Auto, None)?;
    let survivors: Vec<u32> = nms.run(&tensors)?.group(0).survivors.iter().map(|found| found.anchor).collect();
    println!("survivors: {survivors:?}");
    Ok(())
}
PROGRAM
cat >"$sources/Cargo.toml" <<'MANIFEST'
[workspace]
members = ["*"]
resolver = "3"

[patch.crates-io]
gst-plugin-nmsfilter = { path = "gst-plugin-nmsfilter-0.1.0" }
nmsfilter-core = { path = "nmsfilter-core-0.1.0" }
nmsfilter-gstreamer = { path = "nmsfilter-gstreamer-0.1.0" }
MANIFEST
# Use the dependency versions with which the tree is tested. Cargo ignores those that these packages
# do not need.
cp Cargo.lock "$sources/"

data=()
[ ! -d "$NMSFILTER_TEST_DATA" ] || data=(ro "$NMSFILTER_TEST_DATA" /data)
as_root tests/roots/enter.sh "$root" "$(id -u):$(id -g)" "${data[@]}" \
    rw "$sources" /sources rw "$target" /target ro "$(rustc --print sysroot)" /rust \
    rw "${CARGO_HOME:-$HOME/.cargo}" /cargo ro tests/packages /check ro "$(dirname "$ORT_DYLIB_PATH")" /onnxruntime \
    -- env -C /sources RUSTUP_TOOLCHAIN=/rust PATH=/rust/bin:/usr/bin:/bin CARGO_HOME=/cargo CARGO_NET_OFFLINE=true \
    CARGO_TARGET_DIR=/target CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_PROFILE_DEV_DEBUG=line-tables-only \
    GST_PLUGIN_PATH=/target/debug NMSFILTER_TEST_DATA=/data ORT_DYLIB_PATH="/onnxruntime/${ORT_DYLIB_PATH##*/}" \
    sh -ec "
        # Other tests leave an empty folder where they mount the tree.
        test -z \"\$(ls -A '$PWD' 2>/dev/null)\"
        test \"\$(cargo run --quiet --package survivors)\" = 'survivors: [0, 2]'
        echo 'the program prints the survivors'
        cargo build --lib --package gst-plugin-nmsfilter --package gst-plugin-objecttracker --package gst-plugin-onnxruntime
        /check/picture.sh
        # The next build in this folder is of the tree, and cargo could take what was compiled here for it.
        cargo clean --quiet --package nmsfilter-core --package nmsfilter-gstreamer --package gst-plugin-nmsfilter --package gst-plugin-objecttracker --package gst-plugin-onnxruntime"
