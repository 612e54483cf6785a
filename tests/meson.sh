#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# meson.sh FOLDER: builds with meson, runs its tests and installs as README.md describes: below GStreamer's prefix,
# here into a staging folder, and below another; with all plugins, and without nmsfilterdemo. The build is kept in
# FOLDER.
set -euo pipefail
folder=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$folder/build own=$folder/prefix staged=$folder/staged fewer=$folder/fewer
gstreamer=$(pkg-config --variable=prefix gstreamer-1.0)
plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
rm -rf "$own" "$staged" "$fewer"

# The dev profile without optimization builds faster; the steps are the same.
export CARGO_PROFILE_DEV_OPT_LEVEL=0 RUSTFLAGS="${RUSTFLAGS-} -D warnings"
meson setup "$build" --buildtype=debug --prefix="$own" -Donnxruntime=true -Ddemo=true \
    $([ ! -d "$build" ] || echo --reconfigure)
meson compile -C "$build"
# The sources are dependencies of the build. (Not grep -q, which would close ninja's pipe.)
ninja -C "$build" -t deps | grep '/src/lib.rs$'
ninja -C "$build" -t deps | grep '/inference/src/lib.rs$'
ninja -C "$build" -t deps | grep '/demo/src/lib.rs$'
meson test -C "$build" --print-errorlogs
meson install -C "$build" --quiet
for element in detectionjson nmsfilter ortinference crowdtestsrc roioverlay tensorreplay; do
    GST_PLUGIN_PATH=$own${plugins#"$gstreamer"} GST_REGISTRY=$folder/registry.bin \
        gst-inspect-1.0 "$element" >/dev/null
done

meson setup "$build" --reconfigure --prefix="$gstreamer"
DESTDIR=$staged meson install -C "$build" --quiet
[ "$(ls "$staged$plugins")" = "$(ls "$own${plugins#"$gstreamer"}")" ]
echo "installed: $(ls "$staged$plugins"/*)"

# Without the feature internals, which the demonstrations turn on: what no part of the plugins uses is found.
meson setup "$build" --reconfigure -Ddemo=false
DESTDIR=$fewer meson install -C "$build" --quiet
[ "$(ls "$fewer$plugins")" = $'libgstnmsfilter.so\nlibgstonnxruntime.so' ]
echo "installed without the option demo: $(ls "$fewer$plugins"/*)"
