#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# The demonstration: installs missing packages, builds the plugins, and runs a crowd through
# `nmsfilter`. Run it as root, or as a user with sudo, on Debian 12, Debian 13 or Ubuntu 24.04. It
# writes out/crowd.png and out/crowd.avi, and prints how many people were found, missed and found
# twice.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

echo "1/3 Looking for what is missing"
setup
echo "2/3 Building the plugins and the demonstration"
cargo build --release --locked --lib --example crowd \
    --package gst-plugin-nmsfilter --package gst-plugin-onnxruntime --package gst-plugin-objecttracker \
    --package gst-plugin-nmsfilterdemo
echo "3/3 Running the crowd"
"${CARGO_TARGET_DIR:-target}/release/examples/crowd"
echo
echo "To use the plugins: export GST_PLUGIN_PATH='$(realpath "${CARGO_TARGET_DIR:-target}/release")'"
echo "To look at it:      gst-inspect-1.0 nmsfilter"
