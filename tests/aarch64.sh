#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the plugins for the Jetson and checks that JetPack's GStreamer and glibc have what they need: tests/aarch64.sh
#
#   JetPack 5 (Ubuntu 20.04, GStreamer 1.16): the plugin without v1_20, linked to the libraries of Debian 11
#   JetPack 6 (Ubuntu 22.04, GStreamer 1.20): both plugins, linked to the libraries of Debian 12
#
# Ubuntu's mirror for arm64 is often out of reach, so Debian's libraries are linked, and the symbols that the plugins
# need are compared with those that Ubuntu's packages for amd64 define. The plugins are then loaded under QEMU, with
# Debian's GStreamer (1.18 and 1.22). Nothing of Ubuntu's is run, so its packages are not authenticated.
#
# Needs mmdebstrap, gcc-aarch64-linux-gnu, qemu-user-static, root for mmdebstrap, 2 GB, and
# `rustup target add aarch64-unknown-linux-gnu`; without them it is skipped, with exit status 77. Packages are
# unpacked in NMSFILTER_CACHE (default: ~/.cache/nmsfilter).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}/aarch64
target=aarch64-unknown-linux-gnu
prefix=aarch64-linux-gnu

skip() {
    echo "SKIPPED: aarch64: $*" >&2
    exit 77
}
fail() {
    echo "FAILED: aarch64: $*" >&2
    exit 1
}
for tool in mmdebstrap $prefix-gcc $prefix-nm $prefix-readelf qemu-aarch64-static; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || skip "rustc has no target $target"

# unpacked NAME ARCHITECTURE PACKAGES SUITE SOURCE...: the packages, with those that they depend on.
unpacked() {
    local folder=$cache/$1
    [ ! -d "$folder" ] || return 0
    mkdir -p "$cache"
    rm -rf --one-file-system "$folder.tmp"
    mmdebstrap --quiet --variant=extract --architectures="$2" --include="$3" "$4" "$folder.tmp" "${@:5}" ||
        skip "the packages of $4 for $2 cannot be had"
    # Links to absolute paths are links within the folder.
    find "$folder.tmp" -lname '/*' -name '*.so*' -printf '%p %l\n' | while read -r link to; do
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder.tmp$to")" "$link"
    done
    mv "$folder.tmp" "$folder"
}

# The symbols, or the versions of symbols, that libraries define or need.
defined() { nm -D --defined-only "$@" | awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }' | sort -u; }
needed() { $prefix-nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u; }
glibc() { grep -oE 'GLIBC_[0-9.]+' | sort -Vu; }

# jetpack NUMBER DEBIAN UBUNTU GCC CARGO-ARGUMENT...
jetpack() {
    local number=$1 debian=$2 ubuntu=$3 root=$cache/$2 reference=$cache/$3 plugin
    unpacked "$debian" arm64 "libc6-dev,libgcc-$4-dev,libgstreamer1.0-dev,libgstreamer-plugins-base1.0-dev,gstreamer1.0-tools,gstreamer1.0-plugins-base" \
        "$debian" http://deb.debian.org/debian
    local mirror="[trusted=yes] http://archive.ubuntu.com/ubuntu"
    unpacked "$ubuntu" amd64 libgstreamer1.0-0,libgstreamer-plugins-base1.0-0,libglib2.0-0,libc6 "$ubuntu" \
        "deb $mirror $ubuntu main" "deb $mirror $ubuntu-updates main"

    local built=${CARGO_TARGET_DIR:-target}/aarch64-$debian
    PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$root \
        PKG_CONFIG_LIBDIR=$root/usr/lib/$prefix/pkgconfig:$root/usr/share/pkgconfig \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$prefix-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=--sysroot=$root" \
        cargo build --locked --release --target $target --target-dir "$built" "${@:5}"

    local lib=$reference/usr/lib/x86_64-linux-gnu libc
    libc=$(find "$reference/" -path '*x86_64-linux-gnu/libc.so.6' | head -n 1)
    local symbols versions
    symbols=$(defined "$lib"/libgst{reamer,base,video,allocators,app,audio,pbutils,tag}-1.0.so.0 \
        "$lib"/lib{glib,gobject,gio,gmodule}-2.0.so.0)
    versions=$(readelf -VW "$libc" | glibc)
    for plugin in "$built/$target/release"/libgst*.so; do
        local gst missing newer name=${plugin##*/}
        gst=$(needed "$plugin" | grep -E '^_?g(st)?_')
        [ "$(wc -l <<<"$gst")" -gt 50 ] || fail "$name needs $(wc -l <<<"$gst") symbols of GStreamer and GLib"
        missing=$(comm -23 <(cat <<<"$gst") <(cat <<<"$symbols"))
        [ -z "$missing" ] || fail "Ubuntu's $ubuntu does not have these symbols that $name needs:" $missing
        newer=$($prefix-readelf -VW "$plugin" | glibc | grep -vxF "$versions" || true)
        [ -z "$newer" ] || fail "the glibc of Ubuntu's $ubuntu does not have these versions that $name needs:" $newer
        echo "JetPack $number, $name: $(wc -l <<<"$gst") symbols of GStreamer and GLib, all in Ubuntu's $ubuntu;" \
            "glibc up to $($prefix-readelf -VW "$plugin" | glibc | tail -n 1)"
        name=${name#libgst}
        GST_PLUGIN_PATH=${plugin%/*} GST_PLUGIN_SYSTEM_PATH=$root/usr/lib/$prefix/gstreamer-1.0 GST_REGISTRY_FORK=no \
            GST_REGISTRY=$built/registry.bin \
            qemu-aarch64-static -L "$root" "$root/usr/bin/gst-inspect-1.0" "${name%.so}" |
            grep '^  Filename' || fail "$name does not load under QEMU"
    done
}

jetpack 5 bullseye focal 10 --no-default-features --features gstreamer
jetpack 6 bookworm jammy 12 --package gst-plugin-nmsfilter --package gst-plugin-onnxruntime
