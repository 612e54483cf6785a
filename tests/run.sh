#!/bin/bash
# SPDX-License-Identifier: MIT OR Apache-2.0
# run.sh [--all]: runs lints and tests with this machine's GStreamer, in less than 10 minutes on two
# cores. Run it as root, or as a user with sudo, on Debian 12, Debian 13 or Ubuntu 24.04. It
# installs what is missing.
#
# With --all, the following is added. It takes 19 minutes, or 40 if nothing is kept from earlier
# runs.
#
# - Documentation, the other configurations of the build, benchmarks, the fuzzer and DeepStream's
#   metadata under AddressSanitizer, and meson.
# - The CUDA engine, as far as it can be tested without a GPU: the kernels that are checked in match
#   their sources, they compile for every GPU, and all tests pass with backend=cuda on a driver that
#   emulates a GPU on the host (kernels/emulate).
# - The tests that need GStreamer, with 1.26 and 1.28 in small Debian roots. The roots are kept in
#   the user's cache folder (NMSFILTER_CACHE), and builds for them below target/. They are made from
#   the Debian mirror NMSFILTER_DEBIAN_MIRROR. If that is unset, apt's mirror on this machine or
#   Debian's own is used.
#
# NMSFILTER_TEST_DATA names the folder of inputs that are not part of the project (default:
# ../shared beside the checkout). Without it, all tests run that need no picture, video or model.
# ONNX Runtime comes from the Python Package Index. Tests find it with ORT_DYLIB_PATH, and its
# Python with NMSFILTER_TEST_PYTHON.
#
# Steps and tests that cannot run here are reported as SKIPPED, and again at the end. The exit
# status is 0 if nothing failed. With CI=true, a skipped step counts as failed, and the tests that
# skip themselves must be exactly those that tests/skips lists for their environment.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

case $* in
    '') all= ;;
    --all) all=yes ;;
    *) echo "run.sh: expected no argument, or --all; got: $*" >&2; exit 2 ;;
esac

checkout=$PWD
cache=${NMSFILTER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nmsfilter}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# Version of ONNX Runtime that the tests load. In the roots, it is mounted at this folder.
onnxruntime=1.31.1 root_onnxruntime=/onnxruntime
# Version of Ray with which examples/archive is tested.
ray=2.60.0
NMSFILTER_TEST_DATA=$(realpath -m "${NMSFILTER_TEST_DATA:-../shared}")
export NMSFILTER_TEST_DATA

log=$(mktemp)
trap 'rm -f "$log" ${roots_log:+"$roots_log"} ${built:+"$built"}' EXIT
failures=() skips=() summary=() totals=(0 0 0)
# Shows the output of passed tests, which say if they skipped themselves. Many tests wait for other programs or for time
# to pass, so there are more threads than two cores; a single one would not have the names of tests.
harness=(--show-output --test-threads=$(($(nproc) > 6 ? $(nproc) : 6)))

announce() {
    printf '\n=== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$1"
}

# step NAME COMMAND...: runs the command, shows its name and its time, and notes if it failed.
step() {
    local name=$1 began=$SECONDS
    shift
    announce "$name"
    if "$@" </dev/null 2>&1 | tee -a "$log"; then
        echo "=== $name: done in $((SECONDS - began)) s"
    else
        echo "=== $name: FAILED after $((SECONDS - began)) s"
        failures+=("$name")
        return 1
    fi
}

skip() {
    echo
    echo "SKIPPED: $1"
    skips+=("$1")
}

# tests WHERE ENVIRONMENT COMMAND...: runs `cargo test` for the packages through the given command.
# Adds the result to the summary, and compares the skips with tests/skips/ENVIRONMENT.
tests() {
    local where=$1 environment=$2 complete=yes
    shift 2
    : >"$log"
    step "$where: cargo test" "$@" cargo test --locked "${packages[@]}" --no-fail-fast -- \
        "${harness[@]}" || complete=
    count "$where"
    [ "${CI-}" != true ] || compare_skips "$where" "tests/skips/$environment" "$complete"
}

# Prints the sorted names of tests in lines `TEST: why` on standard input.
test_names() {
    sed -n 's/^\([a-z0-9_]*::[a-z0-9_:]*\): .*/\1/p' | LC_ALL=C sort -u
}

skipped_tests() {
    sed -n 's/^SKIPPED: //p' "$log" | test_names
}

# Adds the results in the log to the summary. The harness counts a skipped test as passed.
count() {
    local passed failed ignored skipped
    skipped=$(skipped_tests | wc -l)
    read -r passed failed ignored < <(awk '/^test result:/ { passed += $4; failed += $6; ignored += $8 }
        END { print passed + 0, failed + 0, ignored + 0 }' "$log")
    passed=$((passed - skipped))
    summary+=("$1: $passed passed, $failed failed, $skipped skipped, $ignored ignored")
    mapfile -t -O ${#summary[@]} summary < <(sed -n 's/^SKIPPED: [a-z0-9_]*::/    &/p' "$log" | LC_ALL=C sort -u)
    totals=($((totals[0] + passed)) $((totals[1] + failed)) $((totals[2] + skipped + ignored)))
}

# compare_skips WHERE LIST COMPLETE: fails if a test skipped itself that LIST does not name. If the
# run is complete, it also fails if LIST names a test that did not skip itself.
compare_skips() {
    local where=$1 list=$2 complete=$3 name listed allowed
    listed=$([ ! -e "$list" ] || test_names <"$list")
    allowed=$listed
    [ -d "$NMSFILTER_TEST_DATA" ] ||
        allowed=$(printf '%s\n' "$listed" "$(test_names <tests/skips/without-data)" | LC_ALL=C sort -u)
    while read -r name; do
        failures+=("$where: not in the form that tests/support/skip.rs prints: $name")
    done < <(grep -iE '^skip(ped|ping)\b' "$log" | grep -vE '^SKIPPED: [a-z0-9_]+::[a-z0-9_:]+: ')
    while read -r name; do
        failures+=("$where: $name was skipped, and $list does not name it")
    done < <(LC_ALL=C comm -23 <(skipped_tests) <(echo "$allowed"))
    [ -n "$complete" ] || return 0
    while read -r name; do
        [ -z "$name" ] || failures+=("$where: $name was not skipped, though $list names it: remove the line")
    done < <(LC_ALL=C comm -13 <(skipped_tests) <(echo "$listed"))
}

# Tests the kernels, and the CUDA engine on an emulated GPU.
on_emulated_gpu() {
    local clang name="kernels: PTX, machine code, AddressSanitizer" folder=$target/emulated-cuda
    clang=$(clang-19 -dumpversion 2>/dev/null || true)
    if [ "$clang" = "$(sed -n 's/^wanted=//p' kernels/build.sh)" ]; then
        step "$name" env NMSFILTER_CUDA_TOOLS="$cache/cuda-tools" kernels/check.sh || true
    else
        skip "$name, because this system's clang-19 is ${clang:-missing}"
    fi
    step "a driver that emulates a GPU" kernels/emulate/libcuda.sh "$folder" || return 0
    # Tests that are ignored without a GPU run, too, except those that other tests run in a process of their own
    # (tests/deepstream) and those over all f32, which need no GPU (core/src/functions). The emulated GPU is slow,
    # so there are fewer random scenes, and one version of DeepStream; with a real one nothing is left out (tests/gpu).
    local harness=("${harness[@]}" --include-ignored --skip inside:: --skip all_numbers)
    local version
    for version in 6 7 8 9_0; do harness+=(--skip "versions::deepstream_$version"); done
    # Programs that use a GPU are taken from the common build.
    local program packages=(--workspace --lib)
    for program in allocations c_device c_gst_interface cuda cuda_absent cuda_context cuda_faults cuda_streams deepstream engine inference nmsfilter pipelines; do
        packages+=(--test "$program")
    done
    tests "emulated GPU" "emulated-gpu-1.$host_minor" env LD_LIBRARY_PATH="$folder" NMSFILTER_EMULATED_CUDA="$folder" \
        NMSFILTER_EMULATED_DEVICES=2 NMSFILTER_TEST_BACKEND=cuda NMSFILTER_TEST_FEWER=20
}

# Prints the sources without a license header.
license_headers() {
    local missing
    missing=$(grep -rL --include='*.rs' --include='*.cuh' --include='*.cu' --include='*.cpp' --include='*.c' --include='*.h' \
        --include='*.sh' --include='*.py' 'SPDX-License-Identifier: MIT OR Apache-2.0' \
        build.rs src core c c-gst kernels demo tests benches fuzz examples gstreamer inference pipelines python tracker || true)
    [ -z "$missing" ] || { echo "no SPDX-License-Identifier in:" $missing; return 1; }
}

# What is published; --workspace would add benchmarks, fuzzer and tests.
plugins=(--package nmsfilter-core --package nmsfilter-gstreamer --package gst-plugin-nmsfilter --package gst-plugin-objecttracker --package gst-plugin-onnxruntime)

on_host() {
    step "cargo fmt" cargo fmt --all --check || true
    step "license headers" license_headers || true
    step "cargo clippy" cargo clippy --locked --workspace --all-targets -- -D warnings || true
    tests "$host" "host-1.$host_minor"
}

# Runs everything else that this machine's GStreamer allows.
more_on_host() {
    step "$host: cargo doc" env RUSTDOCFLAGS='-D warnings' cargo doc --locked --no-deps \
        "${plugins[@]}" || true
    # Not for its figures: a test machine is busy, and this is not a release build. --workspace --tests: with the features
    # of the tests' dependencies, so that what was compiled for them is used.
    step "nmsbench: cargo build" cargo build --locked --workspace --bins --tests || true
    step "plugins: linked to GStreamer 1.14 only" tests/packages/linked.sh "$target"/debug/deps/libgst{nmsfilter,objecttracker,onnxruntime}.so || true
    step "$host: nmsbench --once" "$target/debug/nmsbench" --once --out "$target/nmsbench" || true
    step "$host: fuzz" fuzz || true
    step "$host: DeepStream's metadata under AddressSanitizer" tests/deepstream/asan.sh || true
    step "$host: the commands of the documents" documents || true
    installations
    with_python
    archives
}

# Each run has new seeds, which are printed. Cases that find a defect are kept in fuzz/seeds. A fuzzer needs little more than
# one core.
fuzz() {
    local seed status=0
    seed=$(date +%s)
    fuzz/run.sh --asan --seconds 23 --seed "$seed" &
    fuzz/run.sh --asan --seconds 23 --seed "$((seed + 1))" || status=$?
    wait $! || status=$?
    return $status
}

# Tests the Python package, which is a separate workspace. Its wheel is built without optimization,
# and is tested after it is installed.
with_python() {
    local in_python=(env CARGO_PROFILE_DEV_OPT_LEVEL=0 CARGO_TARGET_DIR="$target")
    rm -rf "$target/wheels"
    step "Python: cargo fmt" cargo fmt --manifest-path python/Cargo.toml --check || true
    step "Python: cargo clippy" "${in_python[@]}" cargo clippy --locked --manifest-path python/Cargo.toml -- -D warnings || true
    step "Python: wheel, tests" "${in_python[@]}" NMSFILTER_EMULATED_CUDA="$target/emulated-cuda" \
        NMSFILTER_EMULATED_DEVICES=2 NMSFILTER_WHEELS="$target/wheels" python/tests/run.sh || true
}

# Runs the commands that the documents tell users to type.
documents() {
    cargo build --locked --workspace --lib --bins --tests && tests/documents.py "$target/debug"
}

# Tests the ways to install in README. The installation is used in a Debian root that contains
# nothing of this tree.
installations() {
    local root=
    if [ -z "$clean_root" ]; then
        skip "what is installed in a clean root, because this machine's system is not Debian"
    elif [ -n "$no_roots" ] || [ -z "${ORT_DYLIB_PATH-}" ]; then
        skip "what is installed in a clean root, because ${no_roots:-there is no ONNX Runtime}"
    else
        wait "$roots_job" || true
        if [ -d "$clean_root" ]; then
            root=$clean_root
        else
            cat "$roots_log"
            skip "what is installed in a clean root, because the root could not be made: see above"
        fi
    fi
    step "meson: build, test, install" env CARGO_TARGET_DIR="$target" tests/meson.sh "$target/meson" "$root" || true
    [ -n "$root" ] || return 0
    step "Debian package: build, install" env CARGO_TARGET_DIR="$target" CARGO_PROFILE_DEV_OPT_LEVEL=0 \
        DEB_BUILD_OPTIONS=noopt tests/packages/debian.sh "$root" "$target/debian" || true
}

# Tests the crates as they are published, in the Debian root with GStreamer 1.26. Its build of the
# dependencies is reused.
crates() {
    local root
    root=$(root_folder trixie)
    if [ ! -d "$root" ] || [ -z "${ORT_DYLIB_PATH-}" ]; then
        skip "the crates, because there is no Debian root or no ONNX Runtime"
        return
    fi
    step "crates: package, build, use" tests/packages/crate.sh "$root" "$target/crates" "$target/trixie" || true
}

# Tests examples/archive on two workers, with Ray from the Python Package Index and the Python
# package that was just built.
archives() {
    local venv=$cache/ray-$ray package=$target/archive/python works=(-c 'import gi, pyarrow, ray.data') data=$NMSFILTER_TEST_DATA/data
    [ -d "$data" ] || return 0
    if [ -z "${ORT_DYLIB_PATH-}" ]; then
        skip "archives on a Ray cluster, because there is no ONNX Runtime"
        return
    fi
    if ! "$venv/bin/python" "${works[@]}" 2>/dev/null; then
        announce "Ray $ray: making $venv"
        rm -rf "$venv"
        # Only the distribution's Python has PyGObject.
        if ! { /usr/bin/python3 -m venv --system-site-packages "$venv" &&
            "$venv/bin/pip" install --quiet "ray[data]==$ray" && "$venv/bin/python" "${works[@]}"; } </dev/null; then
            rm -rf "$venv"
            skip "archives on a Ray cluster, because Ray cannot be installed from the Python Package Index"
            return
        fi
    fi
    rm -rf "$package"
    mkdir -p "$package"
    cp -r python/nmsfilter "$package" && cp "$target/debug/lib_core.so" "$package/nmsfilter/_core.abi3.so" || true
    step "archives on a Ray cluster" env GST_PLUGIN_PATH="$target/debug" PYTHONPATH="$package" "$venv/bin/python" \
        tests/archive/cluster.py "$target/archive/files" "$data" \
        "ortinference model=$data/models/version-RFB-320.onnx provider=cpu ! nmsfilter score-threshold=0.2" 24 || true
}

# Provides ONNX Runtime for the CPU with Python and NumPy, from the Python Package Index. Exports
# the variables with which tests find both. Without them, tests skip themselves.
provide_onnxruntime() {
    local venv=$cache/onnxruntime-$onnxruntime libraries works=(-c 'import numpy, onnxruntime')
    unset ORT_DYLIB_PATH NMSFILTER_TEST_PYTHON
    if ! "$venv/bin/python" "${works[@]}" 2>/dev/null; then
        announce "ONNX Runtime $onnxruntime: making $venv"
        rm -rf "$venv"
        if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "onnxruntime==$onnxruntime" numpy &&
            "$venv/bin/python" "${works[@]}"; } </dev/null; then
            rm -rf "$venv"
            skip "ONNX Runtime, because it cannot be installed from the Python Package Index"
            return
        fi
    fi
    libraries=("$venv"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*)
    if [ ! -e "${libraries[0]}" ]; then
        skip "ONNX Runtime, because there is no ${libraries[0]}"
        return
    fi
    export ORT_DYLIB_PATH=${libraries[0]} NMSFILTER_TEST_PYTHON=$venv/bin/python
}

# Prints the folder of the root for a Debian suite. The name depends on the recipe.
root_folder() {
    echo "$cache/roots/$1-$(sha256sum tests/roots/make.sh | cut -c 1-8)"
}

# Prints the folder of the root for testing installations, which has this machine's Debian release.
# Prints nothing on another system.
clean_root_folder() {
    local ID VERSION_CODENAME
    source /etc/os-release
    [ "$ID" != debian ] ||
        echo "$cache/roots/$VERSION_CODENAME-clean-$(sha256sum tests/roots/clean.sh | cut -c 1-8)"
}

# Makes the missing roots in the background, since this mostly waits for packages.
make_roots() {
    local suite
    roots_job='' roots_log=$(mktemp)
    {
        for suite in "$@"; do
            [ -d "$(root_folder "$suite")" ] || as_root env NMSFILTER_DEBIAN_MIRROR="${NMSFILTER_DEBIAN_MIRROR-}" \
                tests/roots/make.sh "$suite" "$(root_folder "$suite")" </dev/null
        done
        [ -z "$clean_root" ] || [ -d "$clean_root" ] || as_root \
            env NMSFILTER_DEBIAN_MIRROR="${NMSFILTER_DEBIAN_MIRROR-}" \
            tests/roots/clean.sh "$(basename "${clean_root%-clean-*}")" "$clean_root" </dev/null
    } >"$roots_log" 2>&1 &
    roots_job=$!
}

# Builds the plugin with analyticscombiner and analyticssplitter, for which no Debian release has a package, in a root with
# GStreamer 1.28: build_combiner COMMAND... enters the root. Its sources are those that tests/Cargo.toml names.
build_combiner() {
    local source
    source=$(cargo metadata --locked --format-version 1 --all-features |
        python3 -c 'import json, sys; print(*(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "gst-plugin-analytics"))')
    rm -rf "$target/combiner/source"
    mkdir -p "$target/combiner"
    cp -r "$(dirname "$source")" "$target/combiner/source"
    # The versions of other packages are those of this workspace, which are there.
    cp Cargo.lock "$target/combiner/source/"
    printf '\n[workspace]\n' >>"$target/combiner/source/Cargo.toml"
    "$@" CARGO_PROFILE_DEV_OPT_LEVEL=0 cargo build --manifest-path "$target/combiner/source/Cargo.toml" --features v1_28 --lib \
        --target-dir "$target/combiner"
}

# in_root SUITE MINOR PROGRAM...: runs these test programs, as they were built for this machine, in a Debian root with
# GStreamer 1.MINOR.
in_root() {
    local suite=$1 minor=$2 programs=("${@:3}") root program where="GStreamer 1.$2 (Debian $1)"
    root=$(root_folder "$suite")
    if [ -n "$no_roots" ]; then
        skip "$where, because $no_roots"
        return
    fi
    wait "$roots_job" || true
    if [ ! -d "$root" ]; then
        cat "$roots_log"
        skip "$where, because its root could not be made: see above"
        return
    fi

    # Programs and plugins find their files at the paths that they have here.
    local enter=(as_root tests/roots/enter.sh "$root" "$(id -u):$(id -g)" ro "$checkout" "$checkout" rw "$target" "$target")
    local combiner=("${enter[@]}" ro "$toolchain" /rust rw "${CARGO_HOME:-$HOME/.cargo}" /cargo -- env -C "$target"
        RUSTUP_TOOLCHAIN=/rust PATH=/rust/bin:/usr/bin:/bin CARGO_HOME=/cargo CARGO_NET_OFFLINE=true)
    [ ! -d "$NMSFILTER_TEST_DATA" ] || enter+=(ro "$NMSFILTER_TEST_DATA" /data)
    [ -z "${ORT_DYLIB_PATH-}" ] || enter+=(ro "$(dirname "$ORT_DYLIB_PATH")" "$root_onnxruntime")
    enter+=(-- env -C "$checkout/tests" PATH=/usr/local/bin:/usr/bin:/bin GST_REGISTRY="$target/gst-registry-$suite.bin"
        NMSFILTER_TEST_DATA=/data CI="${CI-}")
    # NMSFILTER_TEST_PYTHON is not passed on, because its interpreter is not in the root.
    [ -z "${ORT_DYLIB_PATH-}" ] || enter+=(ORT_DYLIB_PATH="$root_onnxruntime/${ORT_DYLIB_PATH##*/}")
    if [ "$minor" -ge 28 ]; then
        step "$where: analyticscombiner" build_combiner "${combiner[@]}" || true
        enter+=(GST_PLUGIN_PATH="$target/combiner/debug")
    fi
    local complete=yes
    : >"$log"
    for program in "${programs[@]}"; do
        step "$where: $program" "${enter[@]}" "$(sed -n "s/.*\"kind\":\[\"test\"\],[^}]*\"name\":\"$program\".*\"executable\":\"\([^\"]*\)\".*/\1/p" "$built")" \
            "${harness[@]}" || complete=
    done
    count "$where"
    [ "${CI-}" != true ] || compare_skips "$where" "tests/skips/root-1.$minor" "$complete"
    [ "$minor" -ge 28 ] || return 0
    ! grep '^BY VERSION' "$log" || failures+=("$where: tests that need its version did not run")
    step "$where: the commands of the documents that need it" "${enter[@]}" \
        python3 "$checkout/tests/documents.py" "$target/debug" --versioned || true
    rm -rf "$target/$suite/python"
    python3 -m zipfile -e "$target"/wheels/*.whl "$target/$suite/python" || true
    step "$where: Python" "${enter[@]}" PYTHONPATH="$target/$suite/python" \
        python3 -m unittest discover --start-directory "$checkout/python/tests" || true
}

# Prints why no root can be entered here. Prints nothing if it is possible.
why_no_roots() {
    if ! can_be_root; then
        echo "only root can make and enter it, and there is no usable sudo"
    elif ! as_root unshare --mount true 2>/dev/null; then
        echo "this machine does not let root unshare its mounts (an unprivileged container?)"
    elif [ ! -x "$toolchain/bin/cargo" ] || [ "$toolchain" = /usr ]; then
        echo "Rust is not a rustup toolchain that could be lent to it ($toolchain)"
    fi
}

packages_to_install=(gstreamer1.0-libav python3-venv python3-gi gir1.2-gst-plugins-base-1.0 g++
    libjson-glib-dev libprotobuf-dev libyaml-cpp-dev uuid-dev
    binutils libegl-dev libv4lconvert0 mosquitto mosquitto-clients python3-pip unzip valgrind)
[ -z "$all" ] || packages_to_install+=(build-essential clang-19 debhelper mmdebstrap debian-archive-keyring meson)
setup "${packages_to_install[@]}"
if ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1; then
    rustup component add rustfmt clippy
fi
host_minor=$(pkg-config --modversion gstreamer-1.0 | cut -d . -f 2)
host="GStreamer 1.$host_minor (this machine)"
# A build that runs only once does not need the files that cargo keeps for the next build.
[ "${CI-}" != true ] || export CARGO_INCREMENTAL=0

if [ -n "$all" ]; then
    toolchain=$(rustc --print sysroot)
    no_roots=$(why_no_roots)
    clean_root=$(clean_root_folder)
    [ -n "$no_roots" ] || make_roots trixie forky
fi
provide_onnxruntime
packages=(--workspace)
[ -n "$all" ] || packages+=(--exclude nmsbench --exclude nmsfuzz)
on_host
if [ -n "$all" ]; then
    # The emulated GPU uses the build from before.
    on_emulated_gpu
    # Programs for the roots, before other steps build the plugins with other features, after which cargo would build all again.
    built=$(mktemp)
    cargo test --locked --workspace --no-run --message-format=json >"$built"
    more_on_host
    # In the roots, cargo works offline with the packages that are fetched here.
    cargo fetch --locked --target "$(rustc -vV | sed -n 's/^host: //p')"
    # With both versions, the tests that read or write metadata, which differ between versions. With
    # the newer version, also the tests for elements that only this version of GStreamer has.
    in_root trixie 26 allocations input nmsfilter tracker
    crates
    in_root forky 28 allocations c_gst_interface input nmsfilter inference plugin tracker smart_camera
fi

announce Summary
printf '%s\n' "${summary[@]}"
[ ${#skips[@]} = 0 ] || printf 'SKIPPED: %s\n' "${skips[@]}"
[ ${#failures[@]} = 0 ] || printf 'FAILED: %s\n' "${failures[@]}"
[ -n "$all" ] || echo "tests/run.sh --all runs the rest: other versions of GStreamer, the CUDA engine without a GPU, the fuzzer"
# The harness's number of ignored tests includes the tests that skipped themselves.
echo "${totals[0]} passed, ${totals[1]} failed, ${totals[2]} ignored"
if [ "${CI-}" = true ] && [ ${#skips[@]} -gt 0 ]; then exit 1; fi
[ ${#failures[@]} = 0 ]
