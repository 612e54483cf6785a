# SPDX-License-Identifier: MIT OR Apache-2.0
# Scripts that run programs with AddressSanitizer source this file. build_asan builds all of these
# programs at once, so that the plugins are compiled only once. asan_program NAME prints the path of
# a program.

# AddressSanitizer and the counters need unstable options, but no nightly compiler. Libraries that a
# program of tests/deepstream loads call the sanitizer runtime that is linked into the program.
build_asan() {
    local host
    host=$(rustc -vV | sed -n 's/^host: //p')
    # Less optimization, and checks that are calls: inline checks take twice as long to compile, and
    # are only a fifth faster.
    CARGO_PROFILE_DEV_OPT_LEVEL=1 RUSTC_BOOTSTRAP=1 RUSTC_WORKSPACE_WRAPPER=$PWD/fuzz/rustc.sh \
        RUSTFLAGS="${RUSTFLAGS-} -Zsanitizer=address -Cllvm-args=-asan-instrumentation-with-call-threshold=0 -Clink-arg=-Wl,--export-dynamic" \
        cargo build --locked --package nmsfuzz --package nmsfilter-tests --bin nmsfuzz --test deepstream --test frames \
        --target "$host" --message-format=json-render-diagnostics >"$asan_messages"
}

asan_messages=$(mktemp)
trap 'rm -f "$asan_messages"' EXIT

asan_program() {
    sed -n "s/.*\"name\":\"$1\".*\"executable\":\"\([^\"]*\)\".*/\1/p" "$asan_messages" | tail -1
}
