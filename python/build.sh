#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds the wheel: python/build.sh OUT
#
# OUT gets nmsfilter-VERSION-cp310-abi3-manylinux_*.whl, with the plugins inside, for GStreamer 1.14 and later. Needs what
# the plugins need (README), and Python 3.10 or later with venv. maturin and zig, which links for an old glibc, come from the
# Python Package Index, to NMSFILTER_CACHE (default: the user's cache folder).
#
# NMSFILTER_WHEEL_PROFILE=dev builds quickly, without zig and without optimization, for tests: the wheel is for this machine
# only then.
set -euo pipefail
out=$(realpath -m "$1")
cd "$(dirname "${BASH_SOURCE[0]}")"
profile=${NMSFILTER_WHEEL_PROFILE:-release}
target=$(realpath -m "${CARGO_TARGET_DIR:-../target}")
export CARGO_TARGET_DIR=$target
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}
maturin=1.16.0 zig=0.17.1
tools=$cache/python-tools-$maturin-$zig
wanted=(maturin=="$maturin")
[ "$profile" = dev ] || wanted+=(ziglang=="$zig")
if ! "$tools/bin/python" -c 'import importlib.metadata, sys; [importlib.metadata.version(n.split("==")[0]) for n in sys.argv[1:]]' \
    "${wanted[@]}" 2>/dev/null; then
    [ -x "$tools/bin/pip" ] || python3 -m venv "$tools"
    "$tools/bin/pip" install --quiet "${wanted[@]}"
fi

folder=debug for_target=() linker=(env)
if [ "$profile" != dev ]; then
    # zig links the plugins, too: with this machine's linker they would need its glibc.
    host=$(rustc -vV | sed -n 's/^host: //p')
    folder=$host/$profile for_target=(--target "$host")
    # It does not look where the system's libraries are; of these it gets GStreamer's and GLib's only.
    rm -rf "$target/zig"
    mkdir -p "$target/zig"
    libdir=$(pkg-config --variable=libdir gstreamer-1.0)
    ln -s "$libdir"/libgst{reamer,base,video}-1.0.so "$libdir"/lib{gio,glib,gmodule,gobject}-2.0.so "$target/zig"
    cat >"$target/zig/cc" <<CC
#!/bin/sh
# zig does not know --exclude-libs, by which a library does not export the entry points of the plugin nmsfilter.
for argument; do
    shift
    case \$argument in
        -Wl,--version-script=*) exports=\${argument#*=} ;;
        -Wl,--exclude-libs,ALL) sed -i '/gst_plugin_nmsfilter_/d' "\$exports"; continue ;;
    esac
    set -- "\$@" "\$argument"
done
PATH="$tools/bin:\$PATH" exec maturin zig cc -- -target ${host%%-*}-linux-gnu.2.27 "\$@" -L"$target/zig"
CC
    chmod +x "$target/zig/cc"
    linker+=("CARGO_TARGET_$(tr a-z- A-Z_ <<<"$host")_LINKER=$target/zig/cc")
fi
# With these packages alone, so that the plugins have no feature of the tests.
(cd .. && "${linker[@]}" cargo build --locked --profile "$profile" "${for_target[@]}" --package gst-plugin-nmsfilter \
    --package gst-plugin-onnxruntime --package nmsfilter-gst-c)
rm -rf nmsfilter/_libs
# Each plugin has a folder, so that GStreamer can be shown those that are not installed.
for plugin in nmsfilter onnxruntime; do
    install -D "$target/$folder/libgst$plugin.so" -t "nmsfilter/_libs/plugins/$plugin"
done
cp "$target/$folder/libnmsfilter_gst.so" nmsfilter/_libs
[ "$profile" = dev ] || ../tests/packages/linked.sh --glibc 2.27 nmsfilter/_libs/plugins/*/*.so nmsfilter/_libs/*.so
cp ../LICENSE-APACHE ../LICENSE-MIT .

options=(--zig --compatibility manylinux_2_28)
[ "$profile" = release ] || options=(--compatibility linux)
PATH=$tools/bin:$PATH "$tools/bin/maturin" build --locked --profile "$profile" "${options[@]}" --out "$out"
