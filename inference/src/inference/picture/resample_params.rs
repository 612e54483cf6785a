// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels in `kernels/resample.cu`. `kernels/resample.cuh` documents them, and a test
//! compares the two.

use super::frame_format::CHANNELS;

/// The number of threads per block.
pub const RESAMPLE_THREADS: u32 = 128;

/// `ResampleComponent` in resample.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleComponent {
    pub samples: u64,
    pub columns: u64,
    pub rows: u64,
    pub row_stride: u32,
    pub pixel_stride: u32,
}

/// `ResampleParams` in resample.cuh.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct ResampleParams {
    pub components: [ResampleComponent; CHANNELS],
    pub table: u64,
    pub output: u64,
    pub matrix: [[i32; CHANNELS]; CHANNELS],
    pub bias: [i32; CHANNELS],
    pub component_count: u32,
    pub channels: u32,
    pub width: u32,
    pub height: u32,
    pub left: u32,
    pub top: u32,
    pub right: u32,
    pub bottom: u32,
    pub border: u32,
    pub output_pixel_stride: u32,
    pub output_row_stride: u32,
    pub output_channel_stride: u32,
}

impl ResampleParams {
    /// Returns the number of blocks of a launch; each has [`RESAMPLE_THREADS`] threads.
    pub fn grid(&self) -> [u32; 3] {
        [self.width.div_ceil(RESAMPLE_THREADS), self.height, 1]
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::mem::offset_of;

    use super::*;
    use crate::inference::picture::frame_format::MATRIX_BITS;
    use crate::inference::picture::positions::POSITION_BITS;
    use crate::kernel_headers;

    /// Compiles a C++ program that asserts that its values equal Rust's values.
    #[test]
    fn offsets_and_constants_are_those_of_resample_cuh() {
        let mut program = String::from("#include \"resample.cuh\"\n#include <stddef.h>\n");
        let mut equal = |theirs: &str, ours: usize| {
            writeln!(program, "static_assert({theirs} == {ours}, \"{theirs}: Rust has {ours}\");")
                .unwrap();
        };
        macro_rules! fields {
            ($type:ident: $($field:ident),+ $(,)?) => {
                $(equal(
                    concat!("offsetof(", stringify!($type), ", ", stringify!($field), ")"),
                    offset_of!($type, $field),
                );)+
                // If all offsets and the size are equal, C++ has no further field.
                equal(concat!("sizeof(", stringify!($type), ")"), size_of::<$type>());
                let $type { $($field: _),+ } = $type::default();
            };
        }
        fields!(ResampleComponent: samples, columns, rows, row_stride, pixel_stride);
        fields!(
            ResampleParams: components, table, output, matrix, bias, component_count, channels, width,
            height, left, top, right, bottom, border, output_pixel_stride, output_row_stride,
            output_channel_stride,
        );
        equal("RESAMPLE_THREADS", RESAMPLE_THREADS as usize);
        equal("RESAMPLE_VALUES", 256);
        equal("RESAMPLE_CHANNELS", CHANNELS);
        equal("RESAMPLE_POSITION_BITS", POSITION_BITS as usize);
        equal("RESAMPLE_MATRIX_BITS", MATRIX_BITS as usize);
        kernel_headers::compile(&program);
    }
}
