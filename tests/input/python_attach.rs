// SPDX-License-Identifier: MIT OR Apache-2.0
//! `examples/attach.py`, a Python program that attaches tensors without a library of the plugin:
//! `nmsfilter` reads them, and the program prints the text in `docs/usage.md`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::support::scratch::Scratch;
use crate::support::skip;

const PRINTED: &str = "\
person at 100,50 80x80, confidence 0.90
person at 300,60 90x90, confidence 0.70
";

/// An interpreter with PyGObject and GStreamer's introspection data.
fn python() -> Option<&'static str> {
    let needs = "import gi
for name in 'Gst', 'GstApp', 'GstVideo':
    gi.require_version(name, '1.0')";
    // Debian's PyGObject is installed for Debian's interpreter, which may not be the first in PATH.
    ["python3", "/usr/bin/python3"].into_iter().find(|python| {
        let mut command = Command::new(python);
        command.args(["-c", needs]).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

/// The plugin that cargo built with this test.
fn plugin() -> PathBuf {
    let folder = std::env::current_exe().unwrap();
    let name =
        format!("{}gstnmsfilter{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let plugin = folder.with_file_name(name);
    assert!(plugin.is_file(), "{} is missing", plugin.display());
    plugin
}

#[test]
fn the_python_program_attaches_tensors_and_prints_the_regions() {
    let Some(python) = python() else {
        skip::skip("Python with PyGObject, and gir1.2-gst-plugins-base-1.0");
        return;
    };
    let folder = Scratch::new();
    std::fs::copy(plugin(), folder.join(plugin().file_name().unwrap())).unwrap();
    let program = crate::support::project::path("examples/attach.py");
    let run = |arguments: &[&str]| {
        let output = Command::new(python)
            .args(arguments)
            .current_dir(program.parent().unwrap())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("GST_PLUGIN_PATH", &*folder)
            .env("GST_REGISTRY", folder.join("registry.bin"))
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(run(&["attach.py"]), PRINTED);
    // Its functions can be used by another program, which then decides when the pipeline runs.
    assert_eq!(run(&["-c", "import attach; print(attach.attach.__name__)"]), "attach\n");
}

#[test]
fn the_document_shows_what_the_python_program_prints() {
    let document = crate::support::project::path("docs/usage.md");
    assert!(std::fs::read_to_string(document).unwrap().contains(PRINTED));
}
