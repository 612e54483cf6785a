// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds and loads ONNX Runtime's library.
//!
//! In: the path that the user has set, if any. Out: ONNX Runtime's environment, in which sessions are created. The
//! library is loaded at run time, once per process, from the first of these places that has it:
//!
//! 1. the path that the user has set: the library itself, or a folder that contains it (for example a Python
//!    package);
//! 2. the path in the environment variable `ORT_DYLIB_PATH`;
//! 3. the dynamic loader's search path, for `libonnxruntime.so` or `libonnxruntime.so.1`;
//! 4. the system's library folders, with any version in the file name, because Debian's packages only install a
//!    name such as `libonnxruntime.so.1.23`;
//! 5. the Python package `onnxruntime` or `onnxruntime-gpu` in the active virtual environment, the user's folder,
//!    or the system's folders.

use std::env;
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ort::LoadDynamicError;
use ort::environment::{Environment, EnvironmentBuilder};
use ort::logging::LogLevel;

use super::CAT;
use super::error::InferenceError;
use gstnmsfilter::elements::lock;

/// The environment variable that names the library. Other programs that use the crate `ort` read this variable,
/// too.
pub const LIBRARY_VARIABLE: &str = "ORT_DYLIB_PATH";

/// The library that this process has loaded.
#[derive(Clone)]
pub struct OnnxRuntime {
    /// The library's path, or its name if the dynamic loader found it.
    pub path: PathBuf,
    /// ONNX Runtime's environment; there is one per process.
    pub environment: Environment,
}

impl OnnxRuntime {
    /// Returns the library that this process has loaded, or loads it.
    ///
    /// # Errors
    /// If no library is found, if it is too old or not a library, or if `wanted` names another library than the
    /// loaded one.
    pub fn load(wanted: Option<&Path>) -> Result<Self, InferenceError> {
        static LOADED: Mutex<Option<OnnxRuntime>> = Mutex::new(None);
        let mut loaded = lock(&LOADED);
        let wanted = wanted.map(library_at).transpose()?;
        if let Some(library) = &*loaded {
            return match wanted {
                Some(wanted) if !is_same_file(&wanted, &library.path) => {
                    Err(InferenceError::Library(format!(
                        "the process uses ONNX Runtime from {:?}, so {wanted:?} cannot be loaded: \
                         a process can load only one; leave the property library unset",
                        library.path
                    )))
                }
                _ => Ok(library.clone()),
            };
        }
        let library = match wanted.map_or_else(from_variable, |path| Ok(Some(path)))? {
            Some(path) => {
                let builder = ort::init_from(&path).map_err(|error| unusable(&path, error))?;
                Self::open(path, builder)?
            }
            None => Self::search()?,
        };
        gst::info!(CAT, "ONNX Runtime from {:?}: {}", library.path, ort::info());
        Ok(loaded.insert(library).clone())
    }

    /// Loads the first usable library from the default places.
    fn search() -> Result<Self, InferenceError> {
        let names = ["libonnxruntime.so", "libonnxruntime.so.1"].map(PathBuf::from);
        let folders = site_packages();
        let in_packages =
            folders.iter().filter_map(|folder| library_in(&folder.join("onnxruntime/capi")));
        let mut damaged = None;
        let in_system = SYSTEM_FOLDERS.iter().filter_map(|folder| library_in(Path::new(folder)));
        for path in names.into_iter().chain(in_system).chain(in_packages) {
            match ort::init_from(&path) {
                Ok(builder) => return Self::open(path, builder),
                // It is normal that the dynamic loader does not know a name. But a library that exists and is too
                // old or damaged is the error to report, if no other library is found.
                Err(LoadDynamicError::Dlopen { .. }) if !path.is_absolute() => {}
                Err(error) => damaged = Some(unusable(&path, error)),
            }
        }
        Err(damaged.unwrap_or_else(|| {
            let folders = folders.iter().map(|folder| folder.display().to_string());
            let loader = "the dynamic loader's path, /usr/lib".to_owned();
            let searched: Vec<_> = [loader].into_iter().chain(folders).collect();
            InferenceError::Library(format!(
                "ONNX Runtime's library is not found; install it in a Python virtual environment \
                 (python3 -m venv onnx && . onnx/bin/activate && pip install onnxruntime, or \
                 onnxruntime-gpu for an NVIDIA GPU), or set library or ORT_DYLIB_PATH to \
                 libonnxruntime.so; these places were searched: {}",
                searched.join(", ")
            ))
        }))
    }

    fn open(path: PathBuf, builder: EnvironmentBuilder) -> Result<Self, InferenceError> {
        let environment = builder
            .with_name("nmsfilter")
            .with_telemetry(false)
            .with_logger(std::sync::Arc::new(log))
            .build()
            .map_err(|error| {
                let problem = format!("ONNX Runtime cannot be initialized: {error}");
                InferenceError::Library(problem)
            })?;
        // GStreamer's debug levels decide what is logged. Verbose messages are excluded here, because each run
        // writes many of them.
        environment.set_log_level(LogLevel::Info);
        Ok(Self { path, environment })
    }

    /// Loads the libraries of CUDA and cuDNN from Python packages (`nvidia-*`), where the dynamic loader does not
    /// search. Without such packages, the dynamic loader finds the libraries itself.
    pub fn preload_cuda(&self) {
        let beside = self.path.ancestors().nth(3).map(Path::to_path_buf);
        let Some(nvidia) = beside
            .into_iter()
            .chain(site_packages())
            .map(|folder| folder.join("nvidia"))
            .find(|folder| folder.is_dir())
        else {
            return;
        };
        let folders = entries(&nvidia).into_iter().map(|package| package.join("lib"));
        let files: Vec<_> = folders.flat_map(|folder| entries(&folder)).collect();
        for prefix in CUDA_LIBRARIES {
            let is_library = |file: &&PathBuf| {
                name_after(file, prefix).is_some_and(|rest| rest.starts_with(".so"))
            };
            for file in files.iter().filter(is_library) {
                if let Err(error) = ort::util::preload_dylib(file) {
                    gst::debug!(CAT, "{file:?} is not loaded: {error}");
                }
            }
        }
    }
}

/// The folders in which systems install libraries.
const SYSTEM_FOLDERS: [&str; 4] = [
    "/usr/local/lib",
    #[cfg(target_arch = "aarch64")]
    "/usr/lib/aarch64-linux-gnu",
    #[cfg(not(target_arch = "aarch64"))]
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
];

/// The libraries that ONNX Runtime's CUDA provider needs. Each one comes after the libraries that it depends on.
const CUDA_LIBRARIES: [&str; 15] = [
    "libcudart",
    "libnvJitLink",
    "libnvrtc",
    "libcublasLt",
    "libcublas",
    "libcurand",
    "libcufft",
    "libcudnn_graph",
    "libcudnn_ops",
    "libcudnn_heuristic",
    "libcudnn_cnn",
    "libcudnn_adv",
    "libcudnn_engines_precompiled",
    "libcudnn_engines_runtime_compiled",
    "libcudnn",
];

/// Creates the error for a file that is not a usable library.
fn unusable(path: &Path, error: LoadDynamicError) -> InferenceError {
    let minor = ort::MINOR_VERSION;
    let problem = match error {
        LoadDynamicError::BadVersion { version_str, .. } => {
            return InferenceError::Library(format!(
                "ONNX Runtime's library {path:?} has version {version_str}; install 1.{minor} or \
                 later"
            ));
        }
        // The dynamic loader's message is the source of the error.
        LoadDynamicError::Dlopen { error, .. } => {
            error.source().map_or_else(|| error.to_string(), ToString::to_string)
        }
        LoadDynamicError::MissingApi { .. } => "it has no function OrtGetApiBase".to_owned(),
        LoadDynamicError::InvalidVersionString => "its version is not text".to_owned(),
    };
    InferenceError::Library(format!(
        "ONNX Runtime's library {path:?} cannot be loaded: {problem}; set library or \
         ORT_DYLIB_PATH to libonnxruntime.so of version 1.{minor} or later"
    ))
}

/// Returns the library that `ORT_DYLIB_PATH` names.
fn from_variable() -> Result<Option<PathBuf>, InferenceError> {
    let path = env::var_os(LIBRARY_VARIABLE).filter(|path| !path.is_empty());
    path.map(|path| library_at(Path::new(&path))).transpose()
}

/// Returns `path`, or the library in it if `path` is a folder.
fn library_at(path: &Path) -> Result<PathBuf, InferenceError> {
    if !path.is_dir() {
        return Ok(path.to_owned());
    }
    let inner = ["", "capi", "onnxruntime/capi"].map(|inner| path.join(inner));
    inner.iter().find_map(|folder| library_in(folder)).ok_or_else(|| {
        InferenceError::Library(format!(
            "{path:?} has no libonnxruntime.so, and neither have its subfolders capi and \
                 onnxruntime/capi; set library or ORT_DYLIB_PATH to that file or its folder"
        ))
    })
}

/// Returns the file `libonnxruntime.so` in `folder`. A version may follow the name.
fn library_in(folder: &Path) -> Option<PathBuf> {
    let is_version = |rest: &str| rest.is_empty() || rest.starts_with('.');
    let is_library = |path: &PathBuf| name_after(path, "libonnxruntime.so").is_some_and(is_version);
    entries(folder).into_iter().find(is_library)
}

/// Returns the name of a file without `prefix`; `None` if it does not begin with it.
fn name_after<'p>(path: &'p Path, prefix: &str) -> Option<&'p str> {
    path.file_name()?.to_str()?.strip_prefix(prefix)
}

/// Returns the folders in which Python packages are installed. The active environment comes first.
fn site_packages() -> Vec<PathBuf> {
    let variable = |name: &str| env::var_os(name).map(PathBuf::from);
    let home = variable("HOME").map(|home| home.join(".local"));
    let prefixes = [variable("VIRTUAL_ENV"), variable("CONDA_PREFIX"), home]
        .into_iter()
        .flatten()
        .chain(["/usr/local", "/usr"].map(PathBuf::from));
    let package_folders = |prefix: PathBuf| {
        let versions = entries(&prefix.join("lib")).into_iter();
        let versions = versions.filter(|folder| name_after(folder, "python3").is_some());
        versions.flat_map(|folder| ["site-packages", "dist-packages"].map(|name| folder.join(name)))
    };
    prefixes.flat_map(package_folders).filter(|folder| folder.is_dir()).collect()
}

/// Returns the paths in `folder`, sorted by name; none if the folder cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    let mut paths: Vec<_> = read.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

fn is_same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}

/// Writes a message of ONNX Runtime to GStreamer's debug log. ONNX Runtime warns about single nodes of a model, so
/// its warnings do not become warnings of the element.
fn log(level: LogLevel, _category: &str, _id: &str, location: &str, message: &str) {
    let level = match level {
        LogLevel::Fatal | LogLevel::Error | LogLevel::Warning => gst::DebugLevel::Info,
        LogLevel::Info => gst::DebugLevel::Debug,
        LogLevel::Verbose => gst::DebugLevel::Trace,
    };
    gst::log_with_level!(CAT, level, "ONNX Runtime, {location}: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str, files: &[&str]) -> PathBuf {
        let folder = env::temp_dir().join(format!("nmsfilter-{}-{name}", std::process::id()));
        for file in files {
            let file = folder.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, b"").unwrap();
        }
        folder
    }

    #[test]
    fn a_folder_names_the_library_in_it() {
        let files = ["capi/libonnxruntime.so.1.31.1", "capi/libonnxruntime_providers_shared.so"];
        let folder = folder("library", &files);
        let library = folder.join("capi/libonnxruntime.so.1.31.1");
        assert_eq!(library_at(&folder).unwrap(), library);
        assert_eq!(library_at(&folder.join("capi")).unwrap(), library);
        assert_eq!(library_at(&library).unwrap(), library);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_folder_without_the_library_is_an_error_that_names_it() {
        let folder = folder("no-library", &["capi/libonnxruntime_providers_shared.so"]);
        let message = library_at(&folder).unwrap_err().to_string();
        assert!(message.contains("has no libonnxruntime.so"), "{message}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
