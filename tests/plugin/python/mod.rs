// SPDX-License-Identifier: MIT OR Apache-2.0
//! Expected results that Python computes: with NumPy, and with ONNX Runtime if GStreamer has no
//! inference element.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use crate::greedy::{Candidate, Kept};
use crate::support::scratch::Scratch;
use crate::support::skip::skip;

/// Returns the path of a script in this folder.
fn script(name: &str) -> PathBuf {
    crate::support::project::path("tests/plugin/python").join(name)
}

/// Returns a Python interpreter that has this module: the system's, or one in a virtual environment
/// in the user's cache, which is created if possible. If there is none, returns `None` and reports
/// a skip.
pub fn with(module: &str) -> Option<PathBuf> {
    let has = |python: &Path| {
        let import = ["-c", &format!("import {module}")];
        let mut python = Command::new(python);
        python.args(import).stderr(Stdio::null());
        python.status().is_ok_and(|status| status.success())
    };
    let system = PathBuf::from("python3");
    if has(&system) {
        return Some(system);
    }
    static MADE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    match MADE.get_or_init(environment) {
        Ok(python) if has(python) => Some(python.clone()),
        Ok(python) => {
            skip(&format!("{module} in {}; remove that environment", python.display()));
            None
        }
        Err(cause) => {
            skip(&format!("Python with {module} ({cause}); install python3-venv, or {module}"));
            None
        }
    }
}

/// Returns the interpreter of the virtual environment in the cache. Creates it if necessary.
fn environment() -> Result<PathBuf, String> {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let cache = folder("NMSFILTER_CACHE")
        .or_else(|| Some(folder("XDG_CACHE_HOME")?.join("nmsfilter")))
        .or_else(|| Some(folder("HOME")?.join(".cache/nmsfilter")))
        .ok_or("neither NMSFILTER_CACHE nor HOME is set")?;
    let venv = cache.join("venv");
    let python = venv.join("bin/python");
    if python.exists() {
        return Ok(python);
    }
    // The environment is created under another name, and renamed when it is complete.
    let unfinished = cache.join(format!("venv-{}", std::process::id()));
    let made = make_environment(&unfinished);
    if made.is_ok() {
        // If another test program has completed it first, its environment is used.
        let _ = std::fs::rename(&unfinished, &venv);
    }
    let _ = std::fs::remove_dir_all(&unfinished);
    made.map(|()| python)
}

fn make_environment(folder: &Path) -> Result<(), String> {
    let parent = folder.parent().expect("it is in the cache");
    std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    finish(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--retries=1", "--requirement"];
    let mut python = Command::new(folder.join("bin/python"));
    finish(python.args(pip).arg(script("requirements.txt")))?;
    Ok(())
}

/// Runs a command to its end. An error contains the last line of its output.
fn finish(command: &mut Command) -> Result<Output, String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(output);
    }
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rfind(|line| !line.trim().is_empty());
    Err(format!("{command:?}: {}", last.unwrap_or("failed")))
}

/// Returns the survivors that NumPy finds in the tensors of these `.npy` files. If there is no
/// NumPy, returns `None` and reports a skip.
pub fn greedy(
    decoder: &str,
    files: &[PathBuf],
    size: [u32; 2],
    thresholds: [f32; 2],
) -> Option<Kept> {
    let python = with("numpy")?;
    let mut command = Command::new(python);
    command.arg(script("greedy.py")).arg(decoder);
    command.args(thresholds.map(|threshold| threshold.to_string()));
    command.args(size.map(|side| side.to_string())).args(files);
    let output = finish(&mut command).unwrap_or_else(|error| panic!("{error}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut lines = text.lines();
    let candidates = lines.next().unwrap().parse().unwrap();
    let survivors = lines.map(|line| {
        let fields: Vec<&str> = line.split(' ').collect();
        let number = |i: usize| fields[i].parse::<f32>().unwrap();
        Candidate {
            anchor: fields[0].parse().unwrap(),
            class: fields[1].parse().unwrap(),
            score: number(2),
            corners: [3, 4, 5, 6].map(number),
        }
    });
    Some(Kept { candidates, survivors: survivors.collect() })
}

/// A picture for the function [`record`].
pub struct Picture {
    /// Four bytes per pixel.
    pub rgba: Vec<u8>,
    /// Width and height.
    pub size: [u32; 2],
}

/// Runs a model on a picture, which is letterboxed if necessary. `range` has the values of black
/// and white. Returns a folder with one `.npy` file per output. If there is no ONNX Runtime,
/// returns `None` and reports a skip.
pub fn record(model: &Path, picture: &Picture, range: [f32; 2]) -> Option<Scratch> {
    let python = with("onnxruntime")?;
    let folder = Scratch::new();
    let file = folder.join("picture.rgba");
    std::fs::write(&file, &picture.rgba).unwrap();
    let mut command = Command::new(python);
    command.arg(script("record.py")).arg(model).arg(&file);
    command.args(picture.size.map(|side| side.to_string()));
    command.args(range.map(|end| end.to_string())).arg(&*folder);
    finish(&mut command).unwrap_or_else(|error| panic!("{error}"));
    std::fs::remove_file(file).unwrap();
    Some(folder)
}
