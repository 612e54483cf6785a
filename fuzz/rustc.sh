#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles the plugins with counters on their edges (see src/coverage.rs), and all other crates
# without.
case " $* " in
    *" --crate-name gstnmsfilter "* | *" --crate-name gstnmsfilterdemo "*)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
        ;;
esac
exec "$@"
