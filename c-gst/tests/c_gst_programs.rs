// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header in C99 and C++17, and programs in C.

#[allow(dead_code, reason = "other programs use the rest")]
#[path = "../../c/tests/support/mod.rs"]
mod support;

use std::process::Command;

use support::{Check, Compiler, Library, Program, finish, has};

const LIBRARY: Library = Library {
    package: "c-gst",
    file: "libnmsfilter_gst.so",
    name: "nmsfilter-gst",
    pkg_config: &["gstreamer-app-1.0", "gstreamer-video-1.0"],
};

#[test]
fn the_header_has_no_warning_in_c99_and_in_cpp17() {
    let c = "#include <nmsfilter/gst.h>\nint main(void) { return nmsfilter_gst_init() != NMSFILTER_GST_STATUS_OK; }\n";
    LIBRARY.check_header(Compiler::C99, c);
    let cpp = "#include <nmsfilter/gst.h>\n#include <nmsfilter/gst.h>\nint main() {\n    NmsfilterGstTensor tensor = {};\n    \
               tensor.size = sizeof tensor;\n    tensor.memory = NMSFILTER_GST_MEMORY_HOST;\n    return \
               nmsfilter_gst_attach_tensor(nullptr, &tensor) == NMSFILTER_GST_STATUS_OK;\n}\n";
    LIBRARY.check_header(Compiler::Cpp17, cpp);
}

/// The command of a program that finds the plugin of this tree, and GStreamer's own.
fn with_plugin(program: &Program) -> Command {
    let plugins = program.folder().join("plugins");
    if !plugins.exists() {
        std::fs::create_dir(&plugins).unwrap();
        let plugin = LIBRARY.built().with_file_name("libgstnmsfilter.so");
        std::os::unix::fs::symlink(plugin, plugins.join("libgstnmsfilter.so")).unwrap();
    }
    let mut command = program.command();
    command.env("GST_PLUGIN_PATH", &plugins);
    command.env("GST_REGISTRY", program.folder().join("registry.bin"));
    command
}

const REGIONS: &str = "person at 100.0,50.0 80.0x80.0, score 0.90\n\
                       person at 300.0,60.0 90.0x90.0, score 0.70\n";

fn compile_example(check: Check) -> Program {
    LIBRARY.compile("examples/attach.c", check, &[])
}

#[test]
fn the_example_prints_the_regions_of_its_tensor() {
    assert_eq!(finish(&mut with_plugin(&compile_example(Check::None))), REGIONS);
}

#[test]
fn the_example_has_no_error_under_address_sanitizer() {
    assert_eq!(finish(&mut with_plugin(&compile_example(Check::AddressSanitizer))), REGIONS);
}

#[test]
fn the_example_has_no_error_under_valgrind() {
    if has("valgrind") {
        let program = compile_example(Check::Valgrind);
        assert_eq!(finish(&mut with_plugin(&program)), REGIONS);
    }
}

#[test]
fn calls_of_all_kinds_have_no_error_under_address_sanitizer() {
    LIBRARY.compile("tests/programs/calls.c", Check::AddressSanitizer, &[]).run();
}

#[test]
fn calls_of_all_kinds_have_no_error_under_valgrind() {
    if has("valgrind") {
        LIBRARY.compile("tests/programs/calls.c", Check::Valgrind, &[]).run();
    }
}

#[test]
fn gstreamer_before_1_20_is_refused() {
    let program = LIBRARY.compile("tests/programs/old_gstreamer.c", Check::None, &["-rdynamic"]);
    let expected = "expected GStreamer 1.20 or later, which has metadata of custom types, got 1.18.6; install a newer one\n";
    assert_eq!(program.run(), expected);
}

#[test]
fn the_library_has_its_name_and_exports_its_functions_only() {
    let header = std::fs::read_to_string(LIBRARY.path("include/nmsfilter/gst.h")).unwrap();
    LIBRARY.check_symbols(&header);
}
