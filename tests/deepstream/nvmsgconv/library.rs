// SPDX-License-Identifier: MIT OR Apache-2.0
//! DeepStream's payload generator (`nvmsgconv_json.h`), built and loaded.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::data;
use crate::support::library::{self, LoadedLibrary};
use crate::support::skip::skip;

/// The variable with the folder of the library, for a process that has the libraries of the stand-in.
pub const FOLDER: &str = "NMSFILTER_TEST_NVMSGCONV";

/// What build.sh needs of Debian's packages, as pkg-config names it.
const PACKAGES: [&str; 4] = ["json-glib-1.0", "uuid", "yaml-cpp", "protobuf"];

type Meta = *mut c_void;

/// `SampleFrame` of nvmsgconv_json.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SampleFrame {
    pub frame_num: i32,
    pub source_id: u32,
    pub source: [u32; 2],
    pub pipeline: [u32; 2],
}

/// What a detector writes of an object.
#[derive(Clone, Copy, Debug)]
pub struct SampleObject<'a> {
    pub object_id: u64,
    pub class_id: i32,
    pub confidence: f32,
    /// Left, upper edge, width, height.
    pub rectangle: [f32; 4],
    pub label: &'a str,
}

/// `SampleObject` of nvmsgconv_json.h.
#[repr(C)]
struct RawObject {
    object_id: u64,
    class_id: i32,
    confidence: f32,
    rectangle: [f32; 4],
    label: *const c_char,
}

#[derive(Clone, Copy)]
pub struct Nvmsgconv {
    json: unsafe extern "C" fn(Meta, Meta) -> *mut c_char,
    json_minimal: unsafe extern "C" fn(Meta) -> *mut c_char,
    free: unsafe extern "C" fn(*mut c_char),
    sample_frame: unsafe extern "C" fn(*const SampleFrame, *const RawObject, u32) -> Meta,
    frame_object: unsafe extern "C" fn(Meta, u32) -> Meta,
    sample_frame_free: unsafe extern "C" fn(Meta),
}

impl Nvmsgconv {
    /// Builds the library and returns its folder. `None`, which is reported as a skip, without its source, a
    /// C++ compiler or the packages it needs.
    pub fn build() -> Option<PathBuf> {
        static FOLDER: OnceLock<PathBuf> = OnceLock::new();
        let deepstream = data::path("deepstream-9.1").filter(|_| library::has_compiler())?;
        let found = Command::new("pkg-config").arg("--exists").args(PACKAGES).status();
        if !found.is_ok_and(|status| status.success()) {
            skip(&format!("packages of {}", PACKAGES.join(", ")));
            return None;
        }
        let script = "tests/deepstream/nvmsgconv/build.sh";
        let build = || library::build(script, &deepstream, "nvmsgconv");
        Some(FOLDER.get_or_init(build).clone())
    }

    /// Loads the library in this folder.
    pub fn load(folder: &Path) -> Self {
        // SAFETY: its initializers are those of protobuf and of the C++ library's streams, and
        // nvmsgconv_json.h declares its functions as the fields of `Self` are.
        unsafe {
            let library = LoadedLibrary::open(&folder.join("libnvmsgconv_json.so"));
            Self {
                json: library.function(c"nvmsgconv_json"),
                json_minimal: library.function(c"nvmsgconv_json_minimal"),
                free: library.function(c"nvmsgconv_free"),
                sample_frame: library.function(c"sample_frame"),
                frame_object: library.function(c"frame_object"),
                sample_frame_free: library.function(c"sample_frame_free"),
            }
        }
    }

    /// Builds and loads it; `None` as for [`build`](Self::build).
    pub fn get() -> Option<Self> {
        Some(Self::load(&Self::build()?))
    }

    /// A frame with objects.
    pub fn sample(self, frame: SampleFrame, objects: &[SampleObject<'_>]) -> Sample {
        let labels: Vec<_> = objects.iter().map(|o| CString::new(o.label).unwrap()).collect();
        let object = |(o, label): (&SampleObject<'_>, &CString)| RawObject {
            object_id: o.object_id,
            class_id: o.class_id,
            confidence: o.confidence,
            rectangle: o.rectangle,
            label: label.as_ptr(),
        };
        let objects: Vec<_> = objects.iter().zip(&labels).map(object).collect();
        // SAFETY: there are as many objects as stated; labels are copied.
        let frame = unsafe { (self.sample_frame)(&frame, objects.as_ptr(), objects.len() as u32) };
        Sample { library: self, frame }
    }

    /// The message of each object of a frame.
    ///
    /// # Safety
    /// `frame` is an `NvDsFrameMeta` of DeepStream 9.1 that does not change meanwhile.
    pub unsafe fn messages(self, frame: Meta) -> Vec<Value> {
        // SAFETY: the caller answers for the frame.
        let objects = (0..).map(|i| unsafe { (self.frame_object)(frame, i) });
        let objects = objects.take_while(|object| !object.is_null());
        // SAFETY: the objects are those of the frame.
        objects.map(|object| self.parse(unsafe { (self.json)(frame, object) })).collect()
    }

    /// The message of a frame with all its objects.
    ///
    /// # Safety
    /// As [`messages`](Self::messages).
    pub unsafe fn minimal_message(self, frame: Meta) -> Value {
        // SAFETY: the caller answers for the frame.
        self.parse(unsafe { (self.json_minimal)(frame) })
    }

    fn parse(self, text: *mut c_char) -> Value {
        assert!(!text.is_null(), "nvmsgconv generates a message");
        // SAFETY: it is a C string, and freed once.
        let value = unsafe {
            let value = serde_json::from_slice(CStr::from_ptr(text).to_bytes());
            (self.free)(text);
            value
        };
        value.expect("the message is JSON")
    }
}

/// A frame without a pipeline.
pub struct Sample {
    library: Nvmsgconv,
    frame: Meta,
}

impl Sample {
    pub fn messages(&self) -> Vec<Value> {
        // SAFETY: the frame was made with the same headers.
        unsafe { self.library.messages(self.frame) }
    }

    pub fn minimal_message(&self) -> Value {
        // SAFETY: as above.
        unsafe { self.library.minimal_message(self.frame) }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // SAFETY: nothing else has it.
        unsafe { (self.library.sample_frame_free)(self.frame) }
    }
}
