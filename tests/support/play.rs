// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs `pipelines/play.sh`.

use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::project;
use super::scratch::Scratch;

/// Runs `play.sh` with these arguments, and with a `gst-launch-1.0` that prints its own arguments,
/// one per line.
pub fn play_sh(arguments: &[&str]) -> Output {
    play_sh_with("printf '%s\\n' \"$@\"", arguments, Some("/nonexistent"))
}

/// Runs `play.sh` with these arguments and this `GST_PLUGIN_PATH`, in a build folder without
/// plugins. `gst-launch-1.0` is a shell script with the commands `launch`, and `gst-inspect-1.0`
/// finds no element.
pub fn play_sh_with(launch: &str, arguments: &[&str], plugin_path: Option<&str>) -> Output {
    let folder = Scratch::new();
    for (program, commands) in [("gst-launch-1.0", launch), ("gst-inspect-1.0", "exit 1")] {
        let program = folder.join(program);
        std::fs::write(&program, format!("#!/bin/sh\n{commands}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::new("bash");
    command
        .arg(project::path("pipelines/play.sh"))
        .args(arguments)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env("CARGO_TARGET_DIR", &*folder)
        .env_remove("GST_PLUGIN_PATH");
    command.envs(plugin_path.map(|folder| ("GST_PLUGIN_PATH", folder)));
    command.output().unwrap()
}

/// Returns the words of the pipeline that `play.sh` plays with these arguments.
pub fn words(arguments: &[&str]) -> Vec<String> {
    let output = play_sh(&[&["-m"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut words = text.lines().map(ToOwned::to_owned);
    assert_eq!(words.next().as_deref(), Some("-m"));
    words.collect()
}
