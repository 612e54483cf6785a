// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in C and C++: compiled against a library and its header as they are in this tree, and run.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A library and the headers that programs are compiled with.
pub struct Library {
    /// The folder of the package in the project.
    pub package: &'static str,
    /// The file that cargo makes.
    pub file: &'static str,
    /// The name that programs link with.
    pub name: &'static str,
    /// Other libraries that programs need, for `pkg-config`.
    pub pkg_config: &'static [&'static str],
}

/// A compiler, with the flags that make it strict.
#[derive(Clone, Copy)]
pub enum Compiler {
    C99,
    Cpp17,
}

/// How a program is compiled and run.
#[derive(Clone, Copy, PartialEq)]
pub enum Check {
    None,
    AddressSanitizer,
    Valgrind,
}

impl Compiler {
    fn command(self) -> Command {
        let (variable, default, standard) = match self {
            Self::C99 => ("CC", "cc", "-std=c99"),
            Self::Cpp17 => ("CXX", "c++", "-std=c++17"),
        };
        let name = std::env::var(variable).unwrap_or_else(|_| default.to_owned());
        let mut command = Command::new(name);
        command.args([standard, "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow"]);
        if let Self::Cpp17 = self {
            command.arg("-Wold-style-cast");
        }
        command
    }
}

/// A compiled program in a folder that is removed when this is dropped.
pub struct Program {
    folder: Folder,
    check: Check,
}

impl Library {
    pub fn path(&self, relative: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(self.package).join(relative)
    }

    /// The library, where cargo builds it for this program.
    pub fn built(&self) -> PathBuf {
        std::env::current_exe().unwrap().parent().unwrap().join(self.file)
    }

    /// Returns the compiler's flags. GStreamer's own headers allow fewer warnings.
    fn compile_flags(&self) -> Vec<String> {
        let mut flags = vec!["-I".to_owned(), self.path("include").to_str().unwrap().to_owned()];
        flags.extend(self.pkg_config("--cflags").into_iter().map(|flag| {
            flag.strip_prefix("-I").map_or(flag.clone(), |folder| format!("-isystem{folder}"))
        }));
        flags
    }

    /// The name by which programs load the library.
    fn soname(&self) -> String {
        format!("lib{}.so.{}", self.name, env!("CARGO_PKG_VERSION_MAJOR"))
    }

    fn pkg_config(&self, what: &str) -> Vec<String> {
        if self.pkg_config.is_empty() {
            return Vec::new();
        }
        let output = finish(Command::new("pkg-config").arg(what).args(self.pkg_config));
        output.split_whitespace().map(str::to_owned).collect()
    }

    /// Compiles the text with all warnings as errors; no program is linked.
    pub fn check_header(&self, compiler: Compiler, text: &str) {
        let folder = Folder::new();
        let extension = if let Compiler::C99 = compiler { "c" } else { "cpp" };
        let file = folder.0.join(format!("header.{extension}"));
        std::fs::write(&file, text).unwrap();
        finish(compiler.command().args(self.compile_flags()).arg("-fsyntax-only").arg(file));
    }

    /// Checks that programs load the library by its name and major version, and that it exports what the header declares
    /// and nothing else.
    pub fn check_symbols(&self, header: &str) {
        let dynamic = finish(Command::new("readelf").arg("--dynamic").arg(self.built()));
        assert!(dynamic.contains(&format!("soname: [{}]", self.soname())), "{dynamic}");
        let symbols = finish(Command::new("nm").args(["-D", "--defined-only"]).arg(self.built()));
        let mut exported: Vec<&str> =
            symbols.lines().filter_map(|line| line.split_whitespace().last()).collect();
        // The functions are declared after everything else.
        let (_, functions) = header.split_once("extern \"C\" {").unwrap();
        let mut declared: Vec<&str> = functions
            .lines()
            .filter(|line| !line.trim_start().starts_with('*'))
            .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
            .filter(|name| name.starts_with("nmsfilter_"))
            .collect();
        exported.sort();
        declared.sort();
        assert_eq!(exported, declared);
    }

    /// Compiles and links the program of a source file in C.
    pub fn compile(&self, source: &str, check: Check, arguments: &[&str]) -> Program {
        let folder = Folder::new();
        // By the name that programs load, too (soname).
        for name in [format!("lib{}.so", self.name), self.soname()] {
            std::os::unix::fs::symlink(self.built(), folder.0.join(name)).unwrap();
        }
        let mut command = Compiler::C99.command();
        if check == Check::AddressSanitizer {
            command.args(["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]);
        }
        command
            .args(self.compile_flags())
            .arg(self.path(source))
            .arg("-o")
            .arg(folder.0.join("program"));
        command.arg("-L").arg(&folder.0).arg(format!("-l{}", self.name));
        command.args(self.pkg_config("--libs")).args(arguments);
        finish(&mut command);
        Program { folder, check }
    }
}

impl Program {
    /// The folder of the program, where it can write.
    pub fn folder(&self) -> &Path {
        &self.folder.0
    }

    /// The command that runs the program.
    pub fn command(&self) -> Command {
        let program = self.folder.0.join("program");
        let mut command = match self.check {
            Check::None => Command::new(program),
            Check::AddressSanitizer => {
                let mut command = Command::new(program);
                // GLib never frees type names and quarks; valgrind reports leaks.
                command.env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1");
                command
            }
            Check::Valgrind => {
                let mut command = Command::new("valgrind");
                command.args(["--quiet", "--error-exitcode=99", "--leak-check=full"]);
                command.arg("--errors-for-leak-kinds=definite").arg("--show-leak-kinds=definite");
                command.arg(program);
                command
            }
        };
        let known = std::env::var("LD_LIBRARY_PATH").unwrap_or_default();
        command.env("LD_LIBRARY_PATH", format!("{}:{known}", self.folder.0.display()));
        command
    }

    /// Runs the program and returns what it prints.
    pub fn run(&self) -> String {
        finish(&mut self.command())
    }
}

/// Runs a command that must succeed, and returns what it prints.
pub fn finish(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [stdout, stderr] = [stdout, stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(status.success(), "{command:?}: {status}\n{stdout}{stderr}");
    stdout
}

/// Returns true if a program can be run; if not, this is reported as a skip.
pub fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok();
    if !found {
        let thread = std::thread::current();
        let test = thread.name().unwrap_or("main");
        println!("SKIPPED: {}::{test}: {program} is not installed", env!("CARGO_CRATE_NAME"));
    }
    found
}

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{}-{number}", env!("CARGO_CRATE_NAME"), std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
