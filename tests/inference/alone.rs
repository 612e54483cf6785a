// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that need a process of their own, because they measure the memory of the process or load a
//! different ONNX Runtime library.

use std::ffi::OsStr;
use std::process::Command;

const VARIABLE: &str = "NMSFILTER_TEST_ALONE";

/// The output of a process.
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
}

/// Returns true if [`run`] started this process.
pub fn is_alone() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Runs the test `name` (`module::test`) in a new process, in which [`is_alone`] is true. Variables
/// without a value are removed from its environment. If the process fails or panics, the calling
/// test fails.
pub fn run<V: AsRef<OsStr>>(name: &str, variables: &[(&str, Option<V>)]) -> Printed {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture"]).env(VARIABLE, "yes");
    for (variable, value) in variables {
        match value {
            Some(value) => command.env(variable, value),
            None => command.env_remove(variable),
        };
    }
    let output = command.output().unwrap();
    let [stdout, stderr] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{name}: {}\n{stdout}{stderr}", output.status);
    assert!(stdout.contains("1 passed"), "no test has the name {name}: {stdout}");
    assert!(!stderr.contains("panicked"), "{name}: {stderr}");
    Printed { stdout, stderr }
}
