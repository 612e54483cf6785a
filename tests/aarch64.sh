#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds for 64-bit Arm, checks that JetPack's GStreamer and glibc have what the plugins need, and
# runs the core's tests and a pipeline: tests/aarch64.sh
#
#   JetPack 5 (Ubuntu 20.04, GStreamer 1.16): the plugins, linked to the libraries of Debian 11
#   JetPack 6 (Ubuntu 22.04, GStreamer 1.20): the plugins, linked to the libraries of Debian 12, by meson with
#       packaging/aarch64.cross
#
# Ubuntu's mirror for arm64 is often unreachable. Therefore the plugins are linked with Debian's
# libraries, and the symbols that they need are compared with the symbols in Ubuntu's packages for
# amd64. Then the plugins are loaded under QEMU with Debian's GStreamer (1.18 and 1.22). Programs of
# Ubuntu are never run, so its packages are not authenticated. Without these packages, the
# comparison is left out.
#
# The script needs mmdebstrap, debian-archive-keyring, gcc-aarch64-linux-gnu, qemu-user-static,
# meson, root for mmdebstrap, 3 GB, and `rustup target add aarch64-unknown-linux-gnu`. If something
# is missing, it is skipped with the exit status 77. tests/roots/mirror.sh determines the source of
# Debian's packages. They are unpacked in NMSFILTER_CACHE (default: ~/.cache/nmsfilter). The script
# takes more than 15 minutes, mostly for release builds and for running the core's tests in QEMU, so
# CI does not run it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checkout=$PWD
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}/aarch64
target=aarch64-unknown-linux-gnu
prefix=aarch64-linux-gnu
target_folder=$(realpath -m "${CARGO_TARGET_DIR:-target}")

skip() {
    echo "SKIPPED: aarch64: $*" >&2
    exit 77
}
fail() {
    echo "FAILED: aarch64: $*" >&2
    exit 1
}
for tool in mmdebstrap $prefix-gcc $prefix-nm $prefix-readelf qemu-aarch64-static meson; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
done
[ -d "$(rustc --print sysroot)/lib/rustlib/$target" ] || skip "rustc has no target $target"
source tests/roots/mirror.sh

# unpacked NAME ARCHITECTURE PACKAGES SUITE SOURCE...: unpacks the packages and their dependencies.
# Fails if they are unavailable.
unpacked() {
    local folder=$cache/$1
    [ ! -d "$folder" ] || return 0
    mkdir -p "$cache"
    rm -rf --one-file-system "$folder.tmp"
    mmdebstrap --quiet --variant=extract --architectures="$2" --include="$3" "$4" "$folder.tmp" "${@:5}" || return 1
    # Links to absolute paths become links within the folder.
    find "$folder.tmp" -lname '/*' -name '*.so*' -printf '%p %l\n' | while read -r link to; do
        ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" "$folder.tmp$to")" "$link"
    done
    mv "$folder.tmp" "$folder"
}

# debian SUITE GCC: makes the folder `root` with the libraries that the plugins are linked with, and
# with GStreamer for loading them.
debian() {
    root=$cache/$1
    unpacked "$1" arm64 "libc6-dev,libgcc-$2-dev,libgstreamer1.0-dev,libgstreamer-plugins-base1.0-dev,gstreamer1.0-tools,gstreamer1.0-plugins-base" \
        "$1" --keyring="$keyring" ${mirror:+"$mirror"} || skip "the packages of Debian's $1 for arm64 cannot be had"
}

# in_qemu PROGRAM ARGUMENT...: runs a program of the root, with its GStreamer and the plugins in the
# folder `plugins`.
in_qemu() {
    GST_PLUGIN_PATH=$plugins GST_PLUGIN_SYSTEM_PATH=$root/usr/lib/$prefix/gstreamer-1.0 GST_REGISTRY_FORK=no \
        GST_REGISTRY=$plugins/registry.bin qemu-aarch64-static -L "$root" "$root/usr/bin/$1" "${@:2}"
}

# Print the symbols, or the versions of symbols, that libraries define or need.
defined() { nm -D --defined-only "$@" | awk 'NF == 3 { sub(/@.*/, "", $3); print $3 }' | sort -u; }
needed() { $prefix-nm -D --undefined-only "$1" | awk '{ sub(/@.*/, "", $2); print $2 }' | sort -u; }
glibc() { grep -oE 'GLIBC_[0-9.]+' | sort -Vu; }

# jetpack NUMBER UBUNTU: compares the plugins in the folder `plugins` with this Ubuntu release, and
# loads them.
jetpack() {
    local number=$1 ubuntu=$2 reference=$cache/$2 plugin name
    for plugin in "$plugins"/libgst*.so; do
        name=${plugin##*/libgst}
        in_qemu gst-inspect-1.0 "${name%.so}" | grep '^  Filename' || fail "${plugin##*/} does not load under QEMU"
    done
    local source="[trusted=yes] http://archive.ubuntu.com/ubuntu"
    unpacked "$ubuntu" amd64 libgstreamer1.0-0,libgstreamer-plugins-base1.0-0,libglib2.0-0,libc6 "$ubuntu" \
        "deb $source $ubuntu main" "deb $source $ubuntu-updates main" || {
        echo "NOT COMPARED with JetPack $number: the packages of Ubuntu's $ubuntu cannot be had" >&2
        return 0
    }
    local lib=$reference/usr/lib/x86_64-linux-gnu libc
    libc=$(find "$reference/" -path '*x86_64-linux-gnu/libc.so.6' | head -n 1)
    local symbols versions
    symbols=$(defined "$lib"/libgst{reamer,base,video,allocators,app,audio,pbutils,tag}-1.0.so.0 \
        "$lib"/lib{glib,gobject,gio,gmodule}-2.0.so.0)
    versions=$(readelf -VW "$libc" | glibc)
    for plugin in "$plugins"/libgst*.so; do
        local gst missing newer name=${plugin##*/}
        gst=$(needed "$plugin" | grep -E '^_?g(st)?_')
        [ "$(wc -l <<<"$gst")" -gt 50 ] || fail "$name needs $(wc -l <<<"$gst") symbols of GStreamer and GLib"
        missing=$(comm -23 <(cat <<<"$gst") <(cat <<<"$symbols"))
        [ -z "$missing" ] || fail "Ubuntu's $ubuntu does not have these symbols that $name needs:" $missing
        newer=$($prefix-readelf -VW "$plugin" | glibc | grep -vxF "$versions" || true)
        [ -z "$newer" ] || fail "the glibc of Ubuntu's $ubuntu does not have these versions that $name needs:" $newer
        echo "JetPack $number, $name: $(wc -l <<<"$gst") symbols of GStreamer and GLib, all in Ubuntu's $ubuntu;" \
            "glibc up to $($prefix-readelf -VW "$plugin" | glibc | tail -n 1)"
    done
}

# for_root COMMAND...: runs cargo so that it links with the libraries of the root.
for_root() {
    PKG_CONFIG_ALLOW_CROSS=1 PKG_CONFIG_SYSROOT_DIR=$root \
        PKG_CONFIG_LIBDIR=$root/usr/lib/$prefix/pkgconfig:$root/usr/share/pkgconfig \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$prefix-gcc \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64-static -L $root" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-Clink-arg=--sysroot=$root" \
        CARGO_BUILD_TARGET=$target "$@"
}

debian bookworm 12
build=$target_folder/aarch64-bookworm
mkdir -p "$build"
printf '[constants]\nroot = %s\n' "'$root'" >"$build/root.cross"
# The pipeline needs a source from the plugin nmsfilterdemo.
meson setup "$build/meson" --buildtype=release --prefix=/usr -Ddemo=true --cross-file "$build/root.cross" \
    --cross-file packaging/aarch64.cross $([ ! -d "$build/meson" ] || echo --reconfigure)
CARGO_TARGET_DIR=$build meson compile -C "$build/meson"
DESTDIR=$build/installed meson install -C "$build/meson" --quiet
plugins=$build/installed/usr/lib/$prefix/gstreamer-1.0
jetpack 6 jammy

# The bits equal those on x86, where this pipeline has these counts.
counts=$(in_qemu gst-launch-1.0 -m crowdtestsrc num-buffers=5 ! nmsfilter ! fakesink |
    sed -n 's/.*nmsfilter-stats.* candidates=(guint64)\([0-9]*\), survivors=(guint64)\([0-9]*\).*/\1 \2/p')
[ "$counts" = "3097 370" ] || fail "expected 3097 candidates and 370 survivors of the pipeline, got: $counts"
echo "the pipeline: $counts candidates and survivors in 5 frames, as on x86"

# QEMU is slow, so there are few random scenes. Tests that compile and load a library are left out,
# because they compile it for this machine.
export NMSFILTER_TEST_DATA=${NMSFILTER_TEST_DATA:-$checkout/../shared}
for_root env NMSFILTER_TEST_FEWER=20 cargo test --locked --package nmsfilter-core --lib --test decoder --test engine \
    --target-dir "$build" -- --skip nvinfer::

debian bullseye 10
plugins=$target_folder/aarch64-bullseye/$target/release
for_root cargo build --locked --release --package gst-plugin-nmsfilter --package gst-plugin-onnxruntime --target-dir "${plugins%/*/*}"
jetpack 5 focal
