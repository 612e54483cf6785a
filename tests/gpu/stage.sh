#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes a folder with tests for a GPU machine that has neither Rust nor GStreamer. This machine needs both.
#
#   tests/gpu/stage.sh FOLDER [GSTREAMER.tar.xz]
#
# FOLDER receives the test programs, nmsbench, the plugins, the stand-ins for DeepStream's
# libraries (and links to NVIDIA's own, if NMSFILTER_DEEPSTREAM_LIBRARIES names a folder), a kit of NVIDIA's elements
# (if NMSFILTER_NVIDIA_KIT names one that tests/nvidia/build.sh built without --no-gpu), the recorded tensors,
# models, pictures and videos in NMSFILTER_TEST_DATA (files up to 4 MiB each, 27 MB together), its programs that occupy
# a GPU, the Python package (if NMSFILTER_WHEEL names a wheel), and GStreamer from the archive. The archive must have a
# single folder with a program `run`, which runs a command with this GStreamer. Without an archive, the GPU machine must
# have GStreamer. Copy FOLDER and this checkout to the GPU machine, and run tests/gpu/run.sh there.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '3,14s/^# \?//p' "$0" >&2; exit 2; }
folder=$(realpath -m "$1")
gstreamer=${2:+$(realpath "$2")}
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
data=$(realpath -m "${NMSFILTER_TEST_DATA:-../shared}")

rm -rf "$folder"
mkdir -p "$folder/programs" "$folder/data"
export CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/gpu
plugins=(--package gst-plugin-nmsfilter --package gst-plugin-onnxruntime --package gst-plugin-nmsfilterdemo)
cargo build --locked --release --lib "${plugins[@]}" --package nmsbench --bins
# programs OPTION...: builds test programs, and copies them to the folder.
programs() {
    cargo test --locked --no-run --message-format json "$@" |
        python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    target = message.get("target") or {}
    if message.get("executable") and "test" in target.get("kind", []):
        print(target["name"], message["executable"])' |
        while read -r name program; do
            strip -o "$folder/programs/$name" "$program"
        done
}
# Time on a GPU machine is scarce, so the tests' own code is optimized, too.
programs --package nmsfilter-core --package nmsfilter-tests \
    --config 'profile.dev.package.nmsfilter-tests.opt-level=2'
# This program measures times, too: of optimized code, as it is installed.
programs --release --package nmsfilter-tests --test deepstream
strip -o "$folder/programs/libtest_provider.so" "$CARGO_TARGET_DIR/debug/deps/libtest_provider.so"
strip -o "$folder/programs/nmsbench" "$CARGO_TARGET_DIR/release/nmsbench"
for plugin in libgstnmsfilter.so libgstonnxruntime.so libgstnmsfilterdemo.so; do
    strip -o "$folder/$plugin" "$CARGO_TARGET_DIR/release/$plugin"
done
standin() {
    tests/deepstream/standin/build.sh "$folder/programs/deepstream-$1" "${@:2}"
}
for version in 60 61 64 80 90; do
    standin $version $version
done
headers=$data/deepstream-9.1/includes
[ ! -e "$headers" ] || standin 91 91 "$headers"
if [ -e "$headers" ] && [ -n "${NMSFILTER_DEEPSTREAM_LIBRARIES-}" ]; then
    LIBRARIES=$NMSFILTER_DEEPSTREAM_LIBRARIES standin 91-nvidia 91 "$headers"
fi
if [ -e "$headers" ] && [ -n "${NMSFILTER_NVIDIA_KIT-}" ]; then
    LIBRARIES=$NMSFILTER_NVIDIA_KIT/lib standin kit 91 "$headers"
    cp -r "$NMSFILTER_NVIDIA_KIT" "$folder/programs/nvidia-kit"
    rm -rf "$folder/programs/nvidia-kit/include"
fi
# Larger files are left out, because transfers to a GPU machine are often limited.
for kind in recorded models images videos oscars; do
    [ ! -e "$data/data/$kind" ] ||
        find "$data/data/$kind" -type f -size -4097k -exec cp --parents --no-preserve=mode -t "$folder/data" {} +
done
du -sh "$folder/data"
for tool in gpu-occupy gpu-filler; do
    [ ! -e "$data/tools/$tool.cu" ] || cp --no-preserve=mode "$data/tools/$tool.cu" "$folder"
done
# The paths at which the programs expect the checkout, and a folder for their files.
echo "$PWD" >"$folder/checkout"
echo "$CARGO_TARGET_DIR/tmp" >"$folder/scratch"
echo "$data" >"$folder/data-folder"
# The commit that measurements name.
git describe --always --dirty --abbrev=8 --exclude='*' >"$folder/commit"
[ -z "${NMSFILTER_WHEEL-}" ] || python3 -m zipfile -e "$NMSFILTER_WHEEL" "$folder/python"
[ -z "$gstreamer" ] || cp "$gstreamer" "$folder/gstreamer.tar.xz"
# All programs have the plugins' code, so a dictionary that holds several programs makes the archive smaller by half.
XZ_OPT=-9 tar -C "$folder" --remove-files --dereference -cJf "$folder/programs.tar.xz" programs data
du -sh "$folder"
