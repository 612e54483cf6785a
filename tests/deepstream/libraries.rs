// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries of the stand-in: built for a version, and a process in which they are DeepStream's.
//!
//! A process loads one version, so each version is tested in a process of its own: this program again, with the tests of the
//! module `inside`.

use std::path::{Path, PathBuf};
use std::process::Command;

use gstnmsfilter::deepstream::layout::Version;

use crate::kit::Kit;
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
/// `libnvds_utils.so`: `NMSFILTER_DEEPSTREAM_LIBRARIES`, or that of the kit if it is not set; `None`, which is
/// reported as a skip, if there is none.
pub fn nvidia_libraries() -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_DEEPSTREAM_LIBRARIES").map(PathBuf::from);
    folder.or_else(|| Kit::get().map(|kit| kit.libraries()))
}

/// Whether this process was started by [`Libraries::run`].
pub fn is_inside() -> bool {
    std::env::var_os(VERSION).is_some()
}

/// The version whose libraries this process has.
pub fn version() -> Version {
    std::env::var(VERSION).expect("this process was started with a version").parse().unwrap()
}

/// The stand-in, built for a version.
pub struct Libraries {
    folder: Scratch,
    version: u32,
    prefix: &'static str,
}

impl Libraries {
    /// From the transcription of the structures.
    pub fn of(version: u32) -> Self {
        Self::build(version, None, "", &[], None)
    }

    /// From NVIDIA's headers.
    pub fn of_nvidia(headers: &Path) -> Self {
        Self::build(91, Some(headers), "", &[], None)
    }

    /// NVIDIA's own, in the folder `libraries`.
    pub fn nvidias(headers: &Path, libraries: &Path) -> Self {
        Self::build(91, Some(headers), "", &[], Some(libraries))
    }

    /// With names other than DeepStream's, so that they are found by this program only.
    pub fn with_other_names(version: u32) -> Self {
        Self::build(version, None, "other-", &[], None)
    }

    /// Without this function of DeepStream.
    pub fn without(version: u32, function: &str) -> Self {
        Self::build(version, None, "", &[format!("-D{function}=other_{function}")], None)
    }

    fn build(
        version: u32,
        headers: Option<&Path>,
        prefix: &'static str,
        flags: &[String],
        libraries: Option<&Path>,
    ) -> Self {
        let folder = Scratch::new();
        let mut flags = flags.join(" ");
        if let Ok(others) = std::env::var("CFLAGS") {
            flags = format!("{others} {flags}");
        }
        let mut command = Command::new(project::path("tests/deepstream/standin/build.sh"));
        command.arg(&*folder).arg(version.to_string()).args(headers);
        command.envs(libraries.map(|libraries| ("LIBRARIES", libraries)));
        let output = command.env("CFLAGS", flags).env("PREFIX", prefix).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the stand-in for {version} does not build: {messages}");
        Self { folder, version, prefix }
    }

    /// Runs the tests of `inside` whose names contain a word of `filter` in a process with these libraries and
    /// variables; folders in `LD_LIBRARY_PATH` come after that of these libraries. Its failure is one of the calling
    /// test. Returns the number of tests.
    pub fn run(&self, filter: &str, variables: &[(&str, &str)]) -> usize {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // One after the other: they look at the counts of the process.
        command.args(filter.split_whitespace());
        command.args(["--include-ignored", "--nocapture", "--test-threads=1"]);
        command.args(["--skip", "inside::alone::"].iter().filter(|_| !filter.contains("alone")));
        if !engines::on_gpu() {
            command.args(["--skip", "inside::device::"]);
        }
        let mut path = self.folder.as_os_str().to_owned();
        const PATH: &str = "LD_LIBRARY_PATH";
        let given =
            variables.iter().find(|(name, _)| *name == PATH).map(|(_, value)| (*value).into());
        for others in [given, std::env::var_os(PATH)].into_iter().flatten() {
            path.push(":");
            path.push(others);
        }
        command
            .envs(variables.iter().copied())
            .env(PATH, path)
            .env(standin::FOLDER, &*self.folder)
            .env(standin::PREFIX, self.prefix)
            .env(VERSION, format!("{}.{}", self.version / 10, self.version % 10));
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
