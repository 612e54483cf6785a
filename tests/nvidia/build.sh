#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# Builds a part of NVIDIA DeepStream's runtime for tests on Debian 12 or Ubuntu 24.04 (x86_64).
#
#   tests/nvidia/build.sh SOURCES OUT [--no-gpu]
#
#   SOURCES   includes and src of the public repository NVIDIA/DeepStream at version 9.1
#   OUT       gets lib/, plugins/ (gst-inspect-1.0 lists the elements), include/, and env.sh for sourcing from bash.
#             An earlier kit there is replaced only if everything worked.
#   --no-gpu  adds a driver without devices (libcuda.so.1), so that the libraries load without an NVIDIA driver, and
#             host/, with which nvinfer runs in host memory: CUDA's runtime, surfaces, and a function that does not
#             scale any pixels. A kit for a machine with a GPU must be built without this option.
#
# NVIDIA's libraries for metadata and surfaces, nvvideoconvert and nvv4l2decoder come from Python packages. The new
# nvstreammux, nvinfer and nvmsgconv with their libraries, and nvdspreprocess are compiled from source. An engine that
# returns recorded outputs replaces TensorRT (tensorrt/recorded.cpp). The Python packages are kept in NVIDIA_KIT_CACHE
# (default: ~/.cache/deepstream-kit).
set -Eeuo pipefail
say() { printf 'build.sh: %s\n' "$*"; }
die() {
    printf 'build.sh: ERROR: %s\n' "$*" >&2
    exit 1
}
trap 'die "line $LINENO failed: $BASH_COMMAND"' ERR

[[ $# = 2 || $# = 3 && $3 = --no-gpu ]] || { sed -n '3,18s/^# \?//p' "$0" >&2; exit 2; }
source=$(realpath -m "$1") out=$(realpath -m "$2") no_gpu=${3-}
here=$(dirname "$(realpath "$0")")
cache=$(realpath -m "${NVIDIA_KIT_CACHE:-$HOME/.cache/deepstream-kit}")
elements=$source/src/gst-plugins libraries=$source/src/utils
mux=$elements/gst-nvmultistream2 batch=$libraries/nvstreammux infer=$libraries/nvdsinfer
events=$source/src/gst-utils/gstnvdscustomhelper
for folder in "$source/includes" "$mux" "$batch/include" "$elements/gst-nvinfer" "$infer" "$events"; do
    [ -d "$folder" ] || die "$folder is missing: SOURCES must have the files of NVIDIA/DeepStream 9.1"
done
[ "$(uname -m)" = x86_64 ] || die "NVIDIA's Python packages are for x86_64"
grep -qE '^NVDS_VERSION *[:?]?= *9\.1 *$' "$mux/Makefile" || die "$mux/Makefile is not of version 9.1"
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
kit=$build/kit lib=$build/kit/lib plugins=$build/kit/plugins
mkdir -p "$lib" "$plugins" "$kit/include" "$build/driver" "$cache"

# 1. Install Debian packages that are not installed yet.
missing=()
for package in g++ binutils pkg-config unzip gstreamer1.0-tools libgstreamer1.0-dev libyaml-cpp-dev \
    libgstreamer-plugins-base1.0-dev libegl-dev libv4lconvert0 libjson-glib-dev uuid-dev libprotobuf-dev; do
    dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
python3 -m pip --version >/dev/null 2>&1 || missing+=(python3-pip)
say "1. Debian packages to install: ${missing[*]:-none}"
if [ ${#missing[@]} -gt 0 ]; then
    [ "$(id -u)" = 0 ] || die "only root can install ${missing[*]}"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        "${missing[@]}"; } >"$build/log" 2>&1 || die "apt-get failed: $(tail -3 "$build/log")"
fi

# 2. Take the required headers and libraries from each Python package. The exit status 11 of unzip
#    means that a package has none of one kind. If a file is in no package, linking or loading fails
#    later.
say "2. Python packages, kept in $cache"
for package in nvidia-deepstream-videodecode-cu13==9.0.2 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 \
    nvidia-nvtx==13.5.25 nvidia-npp==13.0.3.3; do
    name=${package%%=*} file="$cache/${name//-/_}-${package##*=}-*.whl"
    compgen -G "$file" >/dev/null ||
        python3 -m pip download -q --no-deps --only-binary :all: --dest "$cache" "$package" || true
    file=$(compgen -G "$file") || die "pip could not download $package"
    unzip -qo "$file" '*/include/*' '*/_libs/*.so*' '*/libcudart.so.13' '*/libnppc.so.13' '*/libnppidei.so.13' \
        '*/libnppig.so.13' -d "$build" 2>/dev/null || [ $? = 11 ] || die "cannot unzip $file; delete it, run again"
    say "   ${file##*/}"
done
cp "$build"/nvidia/{deepstream_videodecode/_libs,cu13/lib}/*.so* "$lib"
cp -r "$build/nvidia/deepstream_videodecode/_libs/v4l_plugins" "$lib"
mv "$lib"/libgstnv{videoconvert,video4linux2}.so "$plugins"

# 3. Compile objects. -w suppresses warnings, because the sources are NVIDIA's.
say "3. compiles"
cp "$source"/includes/*.h "$kit/include"
gst="gstreamer-base-1.0 gstreamer-video-1.0 gstreamer-audio-1.0"
flags=(-fPIC -DNDEBUG -DDS_VERSION='"9.1.0"' -isystem "$kit/include" -isystem "$batch/include" -isystem "$infer"
    -isystem "$libraries/nvmsgconv" -isystem "$elements/gst-nvdspreprocess/include" -isystem "$here/tensorrt"
    -isystem "$build/nvidia/cu13/include" -isystem "$libraries/nvmsgconv/deepstream_schema"
    # Stubs for DeepStream's 3D components.
    -isystem "$here/../deepstream/nvmsgconv/stubs")
json="json-glib-1.0 uuid protobuf"
# shellcheck disable=SC2207  # a list of options
flags+=($(pkg-config --cflags $gst $json))
# compile FOLDER FILE...: compiles FILEs to objects in FOLDER.
compile() {
    mkdir -p "$build/$1"
    (cd "$build/$1" && g++ -c -w -std=c++17 "${flags[@]}" "${@:2}") || die "$1 was not compiled"
}
compile mux "$mux"/*.cpp "$batch"/*.cpp &
jobs=($!)
compile nvinfer "$elements"/gst-nvinfer/*.cpp &
jobs+=($!)
compile preprocess "$elements"/gst-nvdspreprocess/*.cpp "$elements/gst-nvmsgconv/gstnvmsgconv.cpp" &
jobs+=($!)
(cd "$libraries/nvmsgconv" && compile msgconv "$PWD"/nvmsgconv.cpp "$PWD"/deepstream_schema/*.{cpp,cc}) &
jobs+=($!)
# nvinfer is optimized, because its time is measured.
compile infer -O2 "$infer"/nvdsinfer_{context_impl,context_impl_output_parsing,context_impl_capi,backend,func_utils}.cpp \
    "$infer/nvdsinfer_dynamic_properties.cpp"
for job in "${jobs[@]}"; do wait "$job" || exit 1; done
mkdir "$build/recorded"
(cd "$build/recorded" && g++ -c -Wall -Wextra -Werror -std=c++17 "${flags[@]}" "$here/tensorrt/recorded.cpp")

# 4. Link. Libraries that no package contains are replaced. DeepStream's old nvstreammux is left
#    out.
say "4. links"
shared() { "$1" -shared "${flags[@]}" -o "$2" "${@:3}"; }
shared gcc "$lib/libnvdsgst_customhelper.so" -w "$events/gst-nvdscustomevent.c"
shared gcc "$lib/libnvds_utils.so" -x c - <<<'void nvds_version(unsigned *a, unsigned *b) { *a = 9; *b = 1; }'
shared gcc "$lib/libnvds_nvtxhelper.so" -x c - <<<'void nvtx_helper_push_pop(void) {} void nvtx_helper_start_end(void) {}'
# Make a driver in which each function reports that there is no device (100). Everything is linked
# with it in any case.
{ nm -D -u "$lib"/*.so; cat "$build/nvidia/cu13/include/cuda.h"; } | grep -oE '\bcu[A-Z]\w+' | sort -u |
    sed 's/.*/int &(void) { return 100; }/' |
    shared gcc "$build/driver/libcuda.so.1" -Wl,-soname,libcuda.so.1 -x c -
[ -z "$no_gpu" ] || cp "$build/driver/libcuda.so.1" "$lib"
# link FILE OBJECT...
link() {
    # shellcheck disable=SC2046
    shared g++ "$@" -Wl,--no-undefined,--as-needed -Wl,-rpath,'$ORIGIN/../lib' -L"$lib" -L"$build/driver" \
        -lnvds{gst_helper,gst_meta,_meta,gst_customhelper,_nvtxhelper,bufferpool} -lgstnvdsseimeta \
        -lnvbufsurface -lnvbufsurftransform -l:libcudart.so.13 -l:libcuda.so.1 -lyaml-cpp -ldl $(pkg-config --libs $gst)
}
link "$lib/libnvds_infer.so" "$build"/infer/*.o "$build"/recorded/*.o
g++ -c -fPIC -x c++ -o "$build/mux/old.o" - <<<'struct _GstPlugin; int plugin_init(_GstPlugin *) { return 0; }'
link "$plugins/libnvdsgst_multistream.so" "$build"/mux/*.o
link "$plugins/libnvdsgst_infer.so" "$build"/nvinfer/*.o -lnvds_infer
link "$plugins/libnvdsgst_preprocess.so" "$build"/preprocess/{gstnvdspreprocess,nvdspreprocess}*.o
# shellcheck disable=SC2046
link "$lib/libnvds_msgconv.so" "$build"/msgconv/*.o $(pkg-config --libs $json)
link "$plugins/libnvdsgst_msgconv.so" "$build/preprocess/gstnvmsgconv.o" -lnvds_msgconv
shared g++ "$lib/libyolov8.so" -O2 -Wall -Wextra -Werror -std=c++17 "$here/yolov8.cpp"
shared gcc "$lib/libno_objects.so" -Wall -Wextra -Werror "$here/../../pipelines/deepstream/no_objects.c"

if [ -n "$no_gpu" ]; then
    mkdir "$kit/host"
    for library in nvbufsurface nvbufsurftransform; do
        shared gcc "$kit/host/lib$library.so" -Wl,-soname,lib$library.so -Wall -Wextra -Werror "$here/host/$library.c"
    done
    gcc -c -Wall -Wextra -Werror "${flags[@]}" -o "$build/cudart.o" "$here/host/cudart.c"
    nm --defined-only "$build/cudart.o" | awk '$2 == "T" { print $3 }' | sort >"$build/defined"
    # Functions of the driver are included, in case another libcuda.so.1, such as the one that runs
    # kernels on the host, comes first.
    nm -D -u "$lib"/*.so* "$plugins"/*.so | grep -oE '\bcu(da)?[A-Z]\w+' | sort -u | comm -23 - "$build/defined" |
        sed 's/.*/int &(void) { return 801; }/' >"$build/others.c"
    echo 'libcudart.so.13 { global: *; };' >"$build/version"
    shared gcc "$kit/host/libcudart.so.13" -Wl,-soname,libcudart.so.13 -Wl,--version-script="$build/version" \
        "$build/cudart.o" -w "$build/others.c"
fi
cat >"$kit/env.sh" <<'C'
# Source this file from bash. It finds its own folder, which may be moved.
NVIDIA_KIT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export LD_LIBRARY_PATH=$NVIDIA_KIT/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# Without a GPU, nvinfer needs $NVIDIA_KIT/host in front of this path, with which nvvideoconvert
# does not load.
export GST_PLUGIN_PATH=$NVIDIA_KIT/plugins${GST_PLUGIN_PATH:+:$GST_PLUGIN_PATH} USE_NEW_NVSTREAMMUX=yes
export LIBV4L2_PLUGIN_DIR=$NVIDIA_KIT/lib/v4l_plugins
C

# 5. Check that everything loads from another folder. Then install it, without the libraries that
#    GStreamer does not need.
say "5. checks libraries and elements"
mv "$kit" "$build/moved"
export LD_LIBRARY_PATH=$build/driver GST_PLUGIN_PATH= GST_REGISTRY=$build/registry.bin
# shellcheck disable=SC1091  # it was written above
. "$build/moved/env.sh"
ldd "$build"/moved/*/*.so* >"$build/ldd" 2>&1 || true
! grep 'not found' "$build/ldd" >"$build/log" || die "missing libraries: $(cat "$build/log")"
check() {
    gst-inspect-1.0 "$1" >"$build/log" 2>&1 || die "$1 does not load: $(tail -3 "$build/log")"
}
for element in nvstreammux nvvideoconvert nvinfer nvdspreprocess nvmsgconv; do check $element; done
[ -z "$no_gpu" ] || LD_LIBRARY_PATH=$build/moved/host:$LD_LIBRARY_PATH GST_REGISTRY=$build/host.bin check nvinfer
cp -L $(awk '/lib(yaml-cpp|v4lconvert|json-glib|protobuf|uuid)/ { print $3 }' "$build/ldd" | sort -u) "$build/moved/lib"
mkdir -p "$out"
rm -rf "$out/host" "$out/lib/libcuda.so.1"
cp -r --remove-destination "$build/moved/." "$out"
say "done in $SECONDS s: $out, $(du -sh "$out" | cut -f1)"
