// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Rust's constants and layouts with the headers of the kernels, in tests.
//!
//! In: a C++ program of assertions that includes headers of `kernels/`. Out: the test fails if the host's
//! compiler refuses it.

use std::process::Command;

/// Fails with the compiler's messages where it refuses `program`.
pub fn compile(program: &str) {
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main");
    let name = test.replace("::", "-");
    let folder = std::env::temp_dir().join(format!("nmsfilter-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("layout.cpp");
    std::fs::write(&file, program).unwrap();
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned());
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/kernels");
    let compiled = Command::new(&compiler)
        .args(["-std=c++17", "-fsyntax-only", "-I", kernels])
        .arg(&file)
        .output();
    std::fs::remove_dir_all(&folder).unwrap();
    match compiled {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
        // In the form that tests/run.sh reads.
        Err(error) => {
            let program = env!("CARGO_CRATE_NAME");
            println!("SKIPPED: {program}::{test}: the C++ compiler {compiler}: {error}");
        }
    }
}
