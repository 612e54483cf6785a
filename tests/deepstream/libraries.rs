// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries of the stand-in: built for a version, and a process in which they are DeepStream's.
//!
//! A process loads one version, so each version is tested in a process of its own: this program again, with the tests of the
//! module `inside`.

use std::path::{Path, PathBuf};
use std::process::Command;

use gstnmsfilter::deepstream::layout::Version;

use crate::standin;
use crate::support::scratch::Scratch;
use crate::support::skip::skip;
use crate::support::{data, engines, project};

/// The variable with the version of the process.
const VERSION: &str = "NMSFILTER_TEST_DEEPSTREAM";

/// All versions of which the layout is known, as the C macro `DEEPSTREAM` has them.
pub const VERSIONS: [u32; 10] = [60, 61, 62, 63, 64, 70, 71, 80, 90, 91];

/// The folder of NVIDIA's headers, those of 9.1; `None`, which is reported as a skip, if they are missing.
pub fn nvidia_headers() -> Option<PathBuf> {
    data::path("deepstream-9.1/includes")
}

/// A folder with NVIDIA's own libraries of DeepStream 9.1, `libnvds_meta.so`, `libnvdsgst_meta.so` and
/// `libnvds_utils.so`: `NMSFILTER_DEEPSTREAM_LIBRARIES`; `None`, which is reported as a skip, if it is not set.
pub fn nvidia_libraries() -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_DEEPSTREAM_LIBRARIES").map(PathBuf::from);
    if folder.is_none() {
        skip("NVIDIA's libraries of DeepStream in the folder NMSFILTER_DEEPSTREAM_LIBRARIES");
    }
    folder
}

/// Whether this process was started by [`Libraries::run`].
pub fn is_inside() -> bool {
    std::env::var_os(VERSION).is_some()
}

/// The version whose libraries this process has.
pub fn version() -> Version {
    std::env::var(VERSION).expect("this process was started with a version").parse().unwrap()
}

/// A folder of stand-ins that `standin/all.sh` has built: `NMSFILTER_TEST_STANDINS`, for an environment without a
/// compiler.
fn built() -> Option<PathBuf> {
    std::env::var_os("NMSFILTER_TEST_STANDINS").map(PathBuf::from)
}

/// The stand-in, built for a version.
pub struct Libraries {
    folder: PathBuf,
    version: u32,
    prefix: &'static str,
    /// Removes what was built.
    _scratch: Option<Scratch>,
}

/// What differs from the stand-in of a version.
#[derive(Default)]
struct Variant<'a> {
    headers: Option<&'a Path>,
    libraries: Option<&'a Path>,
    prefix: &'static str,
    without: Option<&'a str>,
}

impl Libraries {
    /// From the transcription of the structures.
    pub fn of(version: u32) -> Self {
        Self::get(version, &version.to_string(), Variant::default())
    }

    /// From NVIDIA's headers.
    pub fn of_nvidia(headers: &Path) -> Self {
        Self::get(91, "91-headers", Variant { headers: Some(headers), ..Variant::default() })
    }

    /// NVIDIA's own, in the folder `libraries`.
    pub fn nvidias(headers: &Path, libraries: &Path) -> Self {
        let (headers, libraries) = (Some(headers), Some(libraries));
        Self::build(91, Variant { headers, libraries, ..Variant::default() })
    }

    /// With names other than DeepStream's, so that they are found by this program only.
    pub fn with_other_names(version: u32) -> Self {
        let variant = Variant { prefix: "other-", ..Variant::default() };
        Self::get(version, &format!("{version}-other-names"), variant)
    }

    /// Without this function of DeepStream.
    pub fn without(version: u32, function: &str) -> Self {
        let variant = Variant { without: Some(function), ..Variant::default() };
        Self::get(version, &format!("{version}-without-{function}"), variant)
    }

    /// The one that was built under this name, or a new one.
    fn get(version: u32, name: &str, variant: Variant<'_>) -> Self {
        let Some(built) = built() else { return Self::build(version, variant) };
        let folder = built.join(name);
        assert!(folder.is_dir(), "standin/all.sh builds {}", folder.display());
        Self { folder, version, prefix: variant.prefix, _scratch: None }
    }

    fn build(version: u32, variant: Variant<'_>) -> Self {
        let Variant { headers, libraries, prefix, without } = variant;
        let scratch = Scratch::new();
        let others = std::env::var("CFLAGS").unwrap_or_default();
        let without = without.map(|function| format!("-D{function}=other_{function}"));
        let mut command = Command::new(project::path("tests/deepstream/standin/build.sh"));
        command.arg(&*scratch).arg(version.to_string()).args(headers);
        command.envs(libraries.map(|libraries| ("LIBRARIES", libraries)));
        command.env("CFLAGS", format!("{others} {}", without.unwrap_or_default()));
        let output = command.env("PREFIX", prefix).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the stand-in for {version} does not build: {messages}");
        Self { folder: scratch.to_owned(), version, prefix, _scratch: Some(scratch) }
    }

    /// Runs the tests of `inside` whose names contain `filter` in a process with these libraries and
    /// variables. Its failure is one of the calling test. Returns the number of tests.
    pub fn run(&self, filter: &str, variables: &[(&str, &str)]) -> usize {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // One after the other: they look at the counts of the process.
        command.args([filter, "--include-ignored", "--nocapture", "--test-threads=1"]);
        command.args(["--skip", "inside::alone::"].iter().filter(|_| !filter.contains("alone")));
        if !engines::on_gpu() {
            command.args(["--skip", "inside::device::"]);
        }
        let mut path = self.folder.as_os_str().to_owned();
        if let Some(others) = std::env::var_os("LD_LIBRARY_PATH") {
            path.push(":");
            path.push(others);
        }
        command
            .env("LD_LIBRARY_PATH", path)
            .env(standin::FOLDER, &self.folder)
            .env(standin::PREFIX, self.prefix)
            .env(VERSION, format!("{}.{}", self.version / 10, self.version % 10))
            .envs(variables.iter().copied());
        let output = command.output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let about = format!("DeepStream {}, {filter}, {variables:?}", self.version);
        assert!(output.status.success(), "{about}: {}\n{stdout}{stderr}", output.status);
        assert!(!stderr.contains("panicked"), "{about}: {stderr}");
        // What was not run in that process was not run by the calling test.
        for skipped in stdout.lines().filter_map(|line| line.split_once("SKIPPED: ")) {
            skip(skipped.1.rsplit_once(": ").map_or(skipped.1, |(_, what)| what));
        }
        let passed = stdout.lines().find_map(|line| {
            line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse().ok()
        });
        let passed: usize = passed.unwrap_or_else(|| panic!("{about}: {stdout}"));
        assert!(passed > 0, "{about}: no such test: {stdout}");
        passed
    }
}
