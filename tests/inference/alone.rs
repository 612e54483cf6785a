// SPDX-License-Identifier: MIT OR Apache-2.0
//! Tests that run in a process of their own, because they measure the memory of the process, or load
//! another library of ONNX Runtime.

use std::ffi::OsStr;
use std::process::Command;

const VARIABLE: &str = "NMSFILTER_TEST_ALONE";

/// What a process of its own printed.
pub struct Printed {
    pub stdout: String,
    pub stderr: String,
}

/// Whether this process was started by [`run`].
pub fn is_alone() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Runs the test `name` (`module::test`) in a new process, in which [`is_alone`] is true. Variables
/// without a value are removed from its environment. A failure or a panic of the process is one of the
/// calling test.
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
