#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# meson.sh FOLDER [ROOT]: builds with meson, runs its tests, and installs as README.md describes. It
# installs with GStreamer's prefix, into a staging folder, and with another prefix, each with all
# plugins and without nmsfilterdemo. If ROOT is given (tests/roots/clean.sh, with this machine's
# Debian release), the installation is used there. FOLDER keeps the build.
set -euo pipefail
folder=$(realpath -m "$1") root=${2-}
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=$folder/build own=$folder/prefix staged=$folder/staged fewer=$folder/fewer
gstreamer=$(pkg-config --variable=prefix gstreamer-1.0)
plugins=$(pkg-config --variable=pluginsdir gstreamer-1.0)
rm -rf "$own" "$staged" "$fewer"
mkdir -p "$folder"

# The dev profile without optimization builds faster, in equal steps.
export CARGO_PROFILE_DEV_OPT_LEVEL=0
compile() {
    # Cargo uses one file name for a package's library, regardless of features.
    rm -f "${CARGO_TARGET_DIR:-$build/cargo}"/debug/deps/lib{gst,nmsfilter}*.so
    # Warnings are found here and not with RUSTFLAGS, which would make cargo compile the
    # dependencies again.
    meson compile -C "$build" 2>&1 | tee "$folder/build.log"
    if grep '^warning' "$folder/build.log"; then exit 1; fi
}
meson setup "$build" --buildtype=debug --prefix="$own" -Donnxruntime=true -Ddemo=true \
    $([ ! -d "$build" ] || echo --reconfigure)
compile
# The sources are dependencies of the build. (Not grep -q, which would close ninja's pipe.)
ninja -C "$build" -t deps | grep '/core/src/lib.rs$'
ninja -C "$build" -t deps | grep '/src/lib.rs$'
ninja -C "$build" -t deps | grep '/inference/src/lib.rs$'
ninja -C "$build" -t deps | grep '/tracker/src/lib.rs$'
ninja -C "$build" -t deps | grep '/demo/src/lib.rs$'
meson test -C "$build" --print-errorlogs
meson install -C "$build" --quiet
for element in detectionjson nmsfilter objecttracker ortinference crowdtestsrc roioverlay tensorreplay; do
    GST_PLUGIN_PATH=$own${plugins#"$gstreamer"} GST_REGISTRY=$folder/registry.bin \
        gst-inspect-1.0 "$element" >/dev/null
done

# C programs are compiled with the flags from pkg-config, and find the installed plugin.
libdir=$(dirname "$(find "$own" -name libnmsfilter.so)")
export PKG_CONFIG_PATH=$libdir/pkgconfig
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
for package in nmsfilter nmsfilter-gst; do
    [ "$(pkg-config --modversion $package)" = "$version" ]
    [ "$(readlink "$libdir/lib$package.so")" = "lib$package.so.$version" ]
done
if readelf --dynamic "$libdir/libnmsfilter.so" | grep -E 'NEEDED.*(gst|glib|gobject)'; then
    echo "libnmsfilter.so needs GStreamer" >&2
    exit 1
fi
# shellcheck disable=SC2046 # several options
{
    cc -std=c99 c/examples/suppress.c -o "$folder/suppress" $(pkg-config --cflags --libs nmsfilter)
    cc -std=c99 c-gst/examples/attach.c -o "$folder/attach" $(pkg-config --cflags --libs nmsfilter-gst gstreamer-app-1.0)
}
[ "$(LD_LIBRARY_PATH=$libdir "$folder/suppress" | wc -l)" = 2 ]
LD_LIBRARY_PATH=$libdir GST_PLUGIN_PATH=$own${plugins#"$gstreamer"} GST_REGISTRY=$folder/registry.bin \
    "$folder/attach" | grep '^person at 100.0,50.0 80.0x80.0, score 0.90$'
unset PKG_CONFIG_PATH

meson setup "$build" --reconfigure --prefix="$gstreamer"
DESTDIR=$staged meson install -C "$build" --quiet
[ "$(ls "$staged$plugins")" = "$(ls "$own${plugins#"$gstreamer"}")" ]
echo "installed: $(ls "$staged$plugins"/*)"

# Without the demonstrations: each plugin has what it needs.
meson setup "$build" --reconfigure -Ddemo=false
compile
DESTDIR=$fewer meson install -C "$build" --quiet
[ "$(ls "$fewer$plugins")" = $'libgstnmsfilter.so\nlibgstobjecttracker.so\nlibgstonnxruntime.so' ]
echo "installed without the option demo: $(ls "$fewer$plugins"/*)"

[ -z "$root" ] || tests/packages/in_clean_root.sh "$root" "$fewer" '
    install gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    cp --recursive --no-target-directory /packages /
    /check/picture.sh'
