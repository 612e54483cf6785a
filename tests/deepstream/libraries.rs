// SPDX-License-Identifier: MIT OR Apache-2.0
//! The libraries of the stand-in: building them for a version, and starting a process that loads
//! them as DeepStream's. They are kept, and built again if what they are built from has changed.
//!
//! A process loads only one version. To test a version, this program starts itself again, and runs
//! the tests of the module `inside` there.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use gstnmsfilter::deepstream::layout::Version;

use crate::kit::{Kit, hash_files};
use crate::standin;
use crate::support::skip::skip;
use crate::support::{data, engines, project};

/// Variable with the DeepStream version of the process.
const VERSION: &str = "NMSFILTER_TEST_DEEPSTREAM";

/// All versions with a known layout, as numbers of the C macro `DEEPSTREAM`.
pub const VERSIONS: [u32; 10] = [60, 61, 62, 63, 64, 70, 71, 80, 90, 91];

/// Returns the folder of NVIDIA's headers for 9.1. If they are missing, returns `None` and reports
/// a skip.
pub fn nvidia_headers() -> Option<PathBuf> {
    data::path("deepstream-9.1/includes")
}

/// Returns a folder with NVIDIA's own libraries of DeepStream 9.1: `libnvds_meta.so`,
/// `libnvdsgst_meta.so` and `libnvds_utils.so`. The folder is `NMSFILTER_DEEPSTREAM_LIBRARIES` if
/// that is set, otherwise the kit's. If there are no libraries, returns `None` and reports a skip.
pub fn nvidia_libraries() -> Option<PathBuf> {
    let folder = std::env::var_os("NMSFILTER_DEEPSTREAM_LIBRARIES").map(PathBuf::from);
    folder.or_else(|| Kit::get().map(|kit| kit.libraries()))
}

/// Returns true if [`Libraries::run`] started this process.
pub fn is_inside() -> bool {
    std::env::var_os(VERSION).is_some()
}

/// Returns the version of this process's libraries.
pub fn version() -> Version {
    std::env::var(VERSION).expect("this process was started with a version").parse().unwrap()
}

/// The stand-in, built for one version.
pub struct Libraries {
    folder: PathBuf,
    version: u32,
    prefix: &'static str,
}

impl Libraries {
    /// Builds the stand-in from the transcription of the structures.
    pub fn for_version(version: u32) -> Self {
        Self::build(version, None, "", &[], None)
    }

    /// Builds the stand-in with NVIDIA's headers.
    pub fn with_nvidias_headers(headers: &Path) -> Self {
        Self::build(91, Some(headers), "", &[], None)
    }

    /// Builds only the producers, for NVIDIA's own libraries in the folder `libraries`.
    pub fn with_nvidias_libraries(headers: &Path, libraries: &Path) -> Self {
        Self::build(91, Some(headers), "", &[], Some(libraries))
    }

    /// Builds libraries whose file names differ from DeepStream's, so that only this program finds
    /// them.
    pub fn with_other_names(version: u32) -> Self {
        Self::build(version, None, "other-", &[], None)
    }

    /// Builds libraries that lack this function of DeepStream.
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
        let mut flags = flags.join(" ");
        if let Ok(others) = std::env::var("CFLAGS") {
            flags = format!("{others} {flags}");
        }
        let mut hasher = DefaultHasher::new();
        (version, headers, prefix, &flags, libraries, std::env::var_os("CC")).hash(&mut hasher);
        let folder = format!("standin-{version}-{:016x}", hasher.finish());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(folder);
        let sources = project::path("tests/deepstream/standin");
        for files in [Some(&*sources), headers].into_iter().flatten() {
            hash_files(files, &mut hasher).unwrap();
        }
        let built_from = hasher.finish().to_string();

        fs::create_dir_all(&folder).unwrap();
        let complete = folder.join("built-from");
        // Other tests and processes wait. Dropping the file unlocks it.
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        if fs::read_to_string(&complete).is_ok_and(|text| text == built_from) {
            return Self { folder, version, prefix };
        }
        let mut command = Command::new(sources.join("build.sh"));
        command.arg(&folder).arg(version.to_string()).args(headers);
        command.envs(libraries.map(|libraries| ("LIBRARIES", libraries)));
        let output = command.env("CFLAGS", flags).env("PREFIX", prefix).output().unwrap();
        let messages = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "the stand-in for {version} does not build: {messages}");
        fs::write(complete, built_from).unwrap();
        Self { folder, version, prefix }
    }

    /// Runs tests of `inside` in a process with these libraries and variables. `filter` has words,
    /// of which a test's name must contain one. The folder of these libraries comes first in
    /// `LD_LIBRARY_PATH`. If the process fails, the calling test fails, too. Returns the number of
    /// tests.
    pub fn run(&self, filter: &str, variables: &[(&str, &str)]) -> usize {
        let mut command = Command::new(std::env::current_exe().unwrap());
        // Tests run one after the other, because they read counts of the process.
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
            .env(standin::FOLDER, &self.folder)
            .env(standin::PREFIX, self.prefix)
            .env(VERSION, format!("{}.{}", self.version / 10, self.version % 10));
        let output = command.output().unwrap();
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let about = format!("DeepStream {}, {filter}, {variables:?}", self.version);
        assert!(output.status.success(), "{about}: {}\n{stdout}{stderr}", output.status);
        assert!(!stderr.contains("panicked"), "{about}: {stderr}");
        // A test that was skipped in that process counts as a skip of the calling test.
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
