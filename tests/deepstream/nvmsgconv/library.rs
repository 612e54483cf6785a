// SPDX-License-Identifier: MIT OR Apache-2.0
//! Builds and loads DeepStream's payload generator (`nvmsgconv_json.h`).

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

use crate::support::data;
use crate::support::library::{self, LoadedLibrary};
use crate::support::skip::skip;

/// Variable with the folder of the library, for a process that has the libraries of the stand-in.
pub const FOLDER: &str = "NMSFILTER_TEST_NVMSGCONV";

/// Packages that build.sh needs, by their names in pkg-config.
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

/// The fields of an object that a detector writes.
#[derive(Clone, Copy, Debug)]
pub struct SampleObject<'a> {
    pub object_id: u64,
    pub class_id: i32,
    pub confidence: f32,
    /// Left edge, upper edge, width and height.
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
    /// Builds the library and returns its folder. If its source, a C++ compiler or a package is
    /// missing, returns `None` and reports a skip.
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

    /// Loads the library from this folder.
    pub fn load(folder: &Path) -> Self {
        // SAFETY: the initializers belong to protobuf and to the C++ library's streams. The types
        // of the fields of `Self` match the declarations in nvmsgconv_json.h.
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

    /// Builds and loads the library. Returns `None` if [`build`](Self::build) does.
    pub fn get() -> Option<Self> {
        Some(Self::load(&Self::build()?))
    }

    /// Makes a frame with objects.
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
        // SAFETY: the number of objects is correct, and labels are copied.
        let frame = unsafe { (self.sample_frame)(&frame, objects.as_ptr(), objects.len() as u32) };
        Sample { library: self, frame }
    }

    /// Returns a message for each object of a frame.
    ///
    /// # Safety
    /// `frame` is an `NvDsFrameMeta` of DeepStream 9.1 and does not change during the call.
    pub unsafe fn messages(self, frame: Meta) -> Vec<Value> {
        // SAFETY: required of the caller.
        let objects = (0..).map(|i| unsafe { (self.frame_object)(frame, i) });
        let objects = objects.take_while(|object| !object.is_null());
        // SAFETY: the objects belong to the frame.
        objects.map(|object| self.parse(unsafe { (self.json)(frame, object) })).collect()
    }

    /// Returns one message for a frame and all of its objects.
    ///
    /// # Safety
    /// `frame` is an `NvDsFrameMeta` of DeepStream 9.1 and does not change during the call.
    pub unsafe fn minimal_message(self, frame: Meta) -> Value {
        // SAFETY: required of the caller.
        self.parse(unsafe { (self.json_minimal)(frame) })
    }

    fn parse(self, text: *mut c_char) -> Value {
        assert!(!text.is_null(), "nvmsgconv generates a message");
        // SAFETY: the text is a C string, and is freed once.
        let value = unsafe {
            let value = serde_json::from_slice(CStr::from_ptr(text).to_bytes());
            (self.free)(text);
            value
        };
        value.expect("the message is JSON")
    }
}

/// A frame that does not come from a pipeline.
pub struct Sample {
    library: Nvmsgconv,
    frame: Meta,
}

impl Sample {
    pub fn messages(&self) -> Vec<Value> {
        // SAFETY: the frame was made with the headers of the library.
        unsafe { self.library.messages(self.frame) }
    }

    pub fn minimal_message(&self) -> Value {
        // SAFETY: the frame was made with the headers of the library.
        unsafe { self.library.minimal_message(self.frame) }
    }
}

impl Drop for Sample {
    fn drop(&mut self) {
        // SAFETY: nothing else refers to the frame.
        unsafe { (self.library.sample_frame_free)(self.frame) }
    }
}
