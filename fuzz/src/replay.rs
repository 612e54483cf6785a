// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzes `tensorreplay` with files of any content. It must attach the content of valid files, and
//! reject all other files with an error.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use gst::prelude::*;
use gstnmsfilter::input::Tensors;
use nmsfilter_core::tensor::Elements;

use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::harness::Harness;
use crate::{Failure, caps, properties, tensors, watch};

/// A folder for this process. Its files are small, and each case overwrites them.
static SCRATCH: OnceLock<PathBuf> = OnceLock::new();

/// Makes the scratch folder inside of `folder`.
pub fn init(folder: &Path) {
    let folder = folder.join(format!("nmsfuzz-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the scratch folder can be made");
    SCRATCH.set(folder).expect("it is made once");
}

/// Returns the path of a file in the scratch folder.
pub fn scratch(name: &str) -> PathBuf {
    SCRATCH.get().expect("it has been made").join(name)
}

/// Removes the scratch folder.
pub fn clean() {
    let _ = std::fs::remove_dir_all(SCRATCH.get().expect("it has been made"));
}

/// A file. If it is valid, also the shape and bytes of its tensor.
struct File {
    name: &'static str,
    content: Vec<u8>,
    shape: Option<String>,
    element: &'static str,
    tensor: Option<(String, Vec<u8>)>,
}

pub fn drive(bytes: &mut Bytes<'_>, counts: &mut Counts) -> Result<(), Failure> {
    let mut file = match bytes.below(4) {
        0 | 1 => npy(bytes),
        2 => csv(bytes),
        _ => raw(bytes),
    };
    if bytes.bool() {
        mutate(bytes, &mut file);
    }
    let path = scratch(file.name);
    std::fs::write(&path, &file.content).expect("the scratch folder can be written to");
    let harness = Harness::new("tensorreplay");
    let element = &harness.element;
    element.set_property("location", path.to_str());
    element.set_property("shape", file.shape.as_deref());
    element.set_property_from_str("element-type", file.element);
    if bytes.one_in(8) && file.name == "frame00.npy" {
        element.set_property("location", scratch("frame%02d.npy").to_str());
    }
    for _ in 0..bytes.byte() % 8 / 6 {
        watch::EXPECT_WARNINGS.store(true, Ordering::SeqCst);
        properties::set_one(bytes, element);
        watch::EXPECT_WARNINGS.store(false, Ordering::SeqCst);
        file.tensor = None;
    }
    let started = harness.start();
    let errors = harness.errors();
    counts.one(if started { "replay: starts" } else { "replay: refuses to start" });
    if started != errors.is_empty() {
        return Err(Failure(format!("replay: started {started}, errors {errors:?}")));
    }
    if !started {
        return match file.tensor {
            Some(_)
                if element.property::<Option<String>>("location").as_deref() == path.to_str() =>
            {
                Err(Failure(format!("replay: a valid file is refused: {errors:?}")))
            }
            _ => Ok(()),
        };
    }
    harness.caps(&caps::video(bytes, &[64]));
    for _ in 0..1 + bytes.below(4) {
        let result = harness.push(gst::Buffer::new());
        counts.one("replay: frames");
        for buffer in harness.take() {
            check(&buffer, &file)?;
        }
        if result.is_err() {
            break;
        }
    }
    Ok(())
}

/// Checks that the attached tensor can be read, and that it equals the tensor of a valid file.
fn check(buffer: &gst::BufferRef, file: &File) -> Result<(), Failure> {
    let failure = |what: String| Failure(format!("replay of {}: {what}", file.name));
    let tensors = Tensors::of(buffer).map_err(|error| failure(error.to_string()))?;
    let views = tensors.views();
    let [tensor] = &views[..] else {
        return Err(failure(format!("{} tensors", views.len())));
    };
    let bytes: &[u8] = match tensor.elements().map_err(|error| failure(error.to_string()))? {
        Elements::F32(elements) => bytemuck::cast_slice(elements),
        Elements::F16(elements) => bytemuck::cast_slice(elements),
        Elements::I8(elements) => bytemuck::cast_slice(elements),
        Elements::U8(elements) => elements,
        Elements::I32(elements) => bytemuck::cast_slice(elements),
        Elements::I64(elements) => bytemuck::cast_slice(elements),
        other => return Err(failure(format!("the elements are {other:?}"))),
    };
    match &file.tensor {
        Some((shape, data)) if tensor.shape.to_string() != *shape || bytes != data => {
            Err(failure(format!("expected {shape}, got {tensor}")))
        }
        _ => Ok(()),
    }
}

fn npy(bytes: &mut Bytes<'_>) -> File {
    let spec = tensors::model(bytes).swap_remove(0);
    let dims: Vec<String> = spec.dims.iter().map(u64::to_string).collect();
    let descr = if spec.element == "f16" { "<f2" } else { "<f4" };
    let header = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({},), }}\n",
        dims.join(", ")
    );
    let version = 1 + bytes.byte() % 3;
    let mut content = b"\x93NUMPY".to_vec();
    content.extend([version, 0]);
    match version {
        1 => content.extend((header.len() as u16).to_le_bytes()),
        _ => content.extend((header.len() as u32).to_le_bytes()),
    }
    content.extend(header.bytes());
    content.extend(&spec.data);
    let tensor = Some((dims.join("x"), spec.data));
    File { name: "frame00.npy", content, shape: None, element: "f32", tensor }
}

fn csv(bytes: &mut Bytes<'_>) -> File {
    let mut content = String::new();
    let mut numbers: Vec<f32> = Vec::new();
    for _ in 0..bytes.below(20) {
        let row = [0.0; 4].map(|_: f32| bytes.f32());
        numbers.extend(row);
        content.push_str(&row.map(|number| format!("{number}")).join(bytes.pick(&[",", ", "])));
        content.push_str(bytes.pick(&["\n", "\r\n", "\n\n"]));
    }
    // The text NaN does not determine the bits of the number.
    let has_no_nan = numbers.iter().all(|number| !number.is_nan());
    let shape = format!("{}x4", numbers.len() / 4);
    let tensor = has_no_nan.then(|| (shape, bytemuck::cast_slice(&numbers).to_vec()));
    File { name: "windows.csv", content: content.into_bytes(), shape: None, element: "f32", tensor }
}

fn raw(bytes: &mut Bytes<'_>) -> File {
    let spec = tensors::model(bytes).swap_remove(0);
    let dims: Vec<String> = spec.dims.iter().map(u64::to_string).collect();
    let shape = dims.join("x");
    let tensor = Some((shape.clone(), spec.data.clone()));
    File {
        name: "output.raw",
        content: spec.data,
        shape: Some(shape),
        element: spec.element,
        tensor,
    }
}

/// Changes a file, so that it is probably invalid.
fn mutate(bytes: &mut Bytes<'_>, file: &mut File) {
    file.tensor = None;
    // The header is within these bytes.
    let end = file.content.len().min(128);
    for _ in 0..1 + bytes.below(3) {
        match bytes.below(5) {
            0 => file.content.truncate(bytes.below(end + 1)),
            1 if end > 0 => {
                let at = bytes.below(end);
                if let Some(byte) = file.content.get_mut(at) {
                    *byte = bytes.byte();
                }
            }
            2 => {
                let at = bytes.below(end + 1).min(file.content.len());
                let digit = bytes.pick(b"0919,'()\n");
                file.content.splice(at..at, vec![digit; 1 + bytes.below(24)]);
            }
            3 => {
                file.shape = Some(
                    bytes
                        .pick(&[
                            "4x4",
                            "",
                            "1x0",
                            "0",
                            "18446744073709551615x4",
                            "1x1x1x1x1x1x1x1x1",
                        ])
                        .into(),
                );
            }
            _ => file.content.extend(vec![b'7'; bytes.below(16)]),
        }
    }
}
