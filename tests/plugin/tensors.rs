// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the tensors on a buffer.

use std::io::Write;
use std::path::Path;

use gstnmsfilter::input::Tensors;
use nmsfilter_core::tensor::Elements;

/// A tensor in single precision. Half precision is converted, which is exact.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Id of the tensor.
    pub id: String,
    /// Dimensions, the slowest first.
    pub shape: Vec<usize>,
    /// Elements of the tensor.
    pub elements: Vec<f32>,
}

/// Returns all tensors on `buffer`.
pub fn read(buffer: &gst::BufferRef) -> Vec<Recorded> {
    let attached = Tensors::of(buffer).unwrap();
    let tensors = attached.views();
    let recorded = tensors.iter().map(|tensor| Recorded {
        id: tensor.id.to_owned(),
        shape: tensor.shape.to_vec(),
        elements: match tensor.elements().unwrap() {
            Elements::F32(elements) => elements.to_vec(),
            Elements::F16(elements) => elements.iter().map(|element| element.to_f32()).collect(),
            other => panic!("f32 and f16 are read, got {other:?}"),
        },
    });
    recorded.collect()
}

impl Recorded {
    /// Writes the tensor as an `.npy` file of version 1.0.
    pub fn write_npy(&self, file: &Path) {
        let shape: String = self.shape.iter().map(|dim| format!("{dim}, ")).collect();
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}");
        // Ten bytes precede the header. The total length, including the newline, is a multiple of
        // 64.
        let width = (header.len() + 11).next_multiple_of(64) - 11;
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(((width + 1) as u16).to_le_bytes());
        writeln!(bytes, "{header:width$}").unwrap();
        bytes.extend(self.elements.iter().flat_map(|element| element.to_le_bytes()));
        std::fs::write(file, bytes).unwrap();
    }
}
