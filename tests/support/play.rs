// SPDX-License-Identifier: MIT OR Apache-2.0
//! What `pipelines/play.sh` plays.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::project;
use super::scratch::Scratch;

/// What `play.sh` does with these arguments, with a `gst-launch-1.0` that prints its own, one per line.
pub fn play_sh(arguments: &[&str]) -> Output {
    let folder = Scratch::new();
    let program = folder.join("gst-launch-1.0");
    std::fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    Command::new("bash")
        .arg(project::path("pipelines/play.sh"))
        .args(arguments)
        .env("PATH", format!("{}:{path}", folder.display()))
        .output()
        .unwrap()
}

/// The words of the pipeline that `play.sh` plays with these arguments.
pub fn words(arguments: &[&str]) -> Vec<String> {
    let output = play_sh(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.lines().map(ToOwned::to_owned);
    assert_eq!(words.next().as_deref(), Some("-m"));
    words.collect()
}
