// SPDX-License-Identifier: MIT OR Apache-2.0
//! The header in C99 and C++17, and programs in C.

#[allow(dead_code, reason = "other programs use the rest")]
mod support;

use support::{Check, Compiler, Library, finish, has};

const LIBRARY: Library =
    Library { package: "c", file: "libnmsfilter.so", name: "nmsfilter", pkg_config: &[] };

const HEADER: &str =
    "#include <nmsfilter/nmsfilter.h>\nint main(void) { return NMSFILTER_STATUS_OK; }\n";

#[test]
fn the_header_has_no_warning_in_c99_and_in_cpp17() {
    LIBRARY.check_header(Compiler::C99, HEADER);
    // Twice, and initialized as programs do.
    let initialized = "#include <nmsfilter/nmsfilter.h>\n#include <nmsfilter/nmsfilter.h>\n\
                       int main() {\n    NmsfilterTensor tensor = {};\n    tensor.size = sizeof tensor;\n    \
                       tensor.element_type = NMSFILTER_ELEMENT_TYPE_F16;\n    return nmsfilter_run(nullptr, &tensor, 1, \
                       nullptr) == NMSFILTER_STATUS_OK;\n}\n";
    LIBRARY.check_header(Compiler::Cpp17, initialized);
}

/// The output of the example for its built-in numbers.
const DETECTIONS: &str = "class 0 at 70.0,120.0 to 130.0,280.0, score 0.90\n\
                          class 1 at 355.0,265.0 to 445.0,335.0, score 0.70\n";

#[test]
fn the_example_prints_the_detections_that_remain() {
    let program = LIBRARY.compile("examples/suppress.c", Check::None, &[]);
    assert_eq!(program.run(), DETECTIONS);

    let file = program.folder().join("output");
    std::fs::write(&file, vec![0; 84 * 8400 * 4]).unwrap();
    assert_eq!(finish(program.command().arg(&file)), "");
    std::fs::write(&file, [0; 8]).unwrap();
    let output = program.command().arg(&file).output().unwrap();
    let expected = format!("{}: expected 705600 numbers, got 2\n", file.display());
    assert_eq!(String::from_utf8_lossy(&output.stderr), expected);
    assert!(!output.status.success());
}

#[test]
fn the_example_has_no_error_under_address_sanitizer() {
    let program = LIBRARY.compile("examples/suppress.c", Check::AddressSanitizer, &[]);
    assert_eq!(program.run(), DETECTIONS);
}

#[test]
fn the_example_has_no_error_under_valgrind() {
    if has("valgrind") {
        let program = LIBRARY.compile("examples/suppress.c", Check::Valgrind, &[]);
        assert_eq!(program.run(), DETECTIONS);
    }
}

#[test]
fn the_example_of_a_signature_needs_no_setting() {
    let program = LIBRARY.compile("examples/signature.c", Check::AddressSanitizer, &[]);
    let expected = "rt-detr: 640x640 pixels from 0 to 1\ninput orig_target_sizes is 640,640\n\
                    class 16 at 100,120 to 300,420\n";
    assert_eq!(program.run(), expected);
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
fn the_library_has_its_name_and_exports_its_functions_only() {
    let header = std::fs::read_to_string(LIBRARY.path("include/nmsfilter/nmsfilter.h")).unwrap();
    LIBRARY.check_symbols(&header);
}
