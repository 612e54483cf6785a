// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compares Rust's constants, layouts and functions with the headers of the kernels, in tests.
//!
//! In: a C++ program that includes headers from `kernels/`. Out: the output of the program. A test fails if the
//! host's compiler rejects the program, and is skipped if there is no compiler.

use std::path::Path;
use std::process::Command;

/// Fails with the compiler's messages if the compiler rejects `program`.
pub fn compile(program: &str) {
    in_folder(|folder| {
        let file = folder.join("layout.cpp");
        std::fs::write(&file, program).unwrap();
        compiler(Command::new(name()).arg("-fsyntax-only").arg(&file));
    });
}

/// Compiles `file`, a path in this repository, and returns the output of the program; `None` if there is no
/// compiler. Fails with the compiler's messages if the compiler rejects the file.
pub fn run(file: &str, arguments: &[&str]) -> Option<String> {
    in_folder(|folder| {
        let program = folder.join("program");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let mut command = Command::new(name());
        // Multiplications and additions are not contracted in the kernels, either.
        command.args(["-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"]);
        command.args(["-Wno-unknown-pragmas", "-o"]).arg(&program).args(["-x", "c++"]).arg(source);
        compiler(&mut command).then(|| {
            let output = Command::new(&program).args(arguments).output().unwrap();
            assert!(output.status.success(), "{file}: {output:?}");
            String::from_utf8(output.stdout).unwrap()
        })
    })
}

/// Returns the name of the compiler.
fn name() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// Calls `work` with a temporary folder that only this test uses.
fn in_folder<T>(work: impl FnOnce(&Path) -> T) -> T {
    let test = test_name().replace("::", "-");
    let folder = std::env::temp_dir().join(format!("nmsfilter-{}-{test}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let result = work(&folder);
    std::fs::remove_dir_all(&folder).unwrap();
    result
}

fn test_name() -> String {
    std::thread::current().name().unwrap_or("main").to_owned()
}

/// Runs the compiler. Returns false if it is missing.
fn compiler(command: &mut Command) -> bool {
    let kernels = concat!(env!("CARGO_MANIFEST_DIR"), "/../kernels");
    match command.args(["-std=c++17", "-I", kernels]).output() {
        Ok(output) => {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            true
        }
        // The script tests/run.sh reads lines of this form.
        Err(error) => {
            let (program, test) = (env!("CARGO_CRATE_NAME"), test_name());
            println!("SKIPPED: {program}::{test}: the C++ compiler {}: {error}", name());
            false
        }
    }
}
