#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Compiles the core and the plugins, and no other crate, with counters on their edges (see src/coverage.rs).
case " $* " in
    *" --crate-name nmsfilter_core "* | *" --crate-name gstnmsfilter "* | *" --crate-name gstnmsfilterdemo "*)
        set -- "$@" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=3 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters
        ;;
esac
exec "$@"
