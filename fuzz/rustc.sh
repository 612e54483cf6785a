#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles the plugin, and no other crate, with counters on its edges (see src/coverage.rs).
case " $* " in
    *" --crate-name gstnmsfilter "*)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
        ;;
esac
exec "$@"
