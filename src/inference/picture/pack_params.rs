// SPDX-License-Identifier: MIT OR Apache-2.0
//! The parameters of the kernels of `kernels/pack.cu`. `kernels/pack.cuh` documents them; a test compares
//! both.

/// Threads per block.
pub const PACK_THREADS: u32 = 128;

/// `PackParams` of pack.cuh.
#[allow(missing_docs, reason = "pack.cuh documents the fields")]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct PackParams {
    pub pixels: u64,
    pub table: u64,
    pub output: u64,
    pub channel_offsets: [u64; 3],
    pub width: u32,
    pub height: u32,
    pub row_stride: u32,
    pub pixel_stride: u32,
    pub channels: u32,
    pub output_pixel_stride: u32,
    pub output_row_stride: u32,
    pub output_channel_stride: u32,
}

impl PackParams {
    /// The blocks of a launch; each has [`PACK_THREADS`] threads.
    pub fn grid(&self) -> [u32; 3] {
        [self.width.div_ceil(PACK_THREADS), self.height, 1]
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;
    use std::mem::offset_of;

    use super::*;
    use crate::device::kernel_headers;

    /// Compiles Rust's values as assertions in C++.
    #[test]
    fn offsets_and_constants_are_those_of_pack_cuh() {
        let mut program = String::from("#include \"pack.cuh\"\n#include <stddef.h>\n");
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
                // With equal offsets and sizes there is no further field.
                equal(concat!("sizeof(", stringify!($type), ")"), size_of::<$type>());
                let $type { $($field: _),+ } = $type::default();
            };
        }
        fields!(
            PackParams: pixels, table, output, channel_offsets, width, height, row_stride,
            pixel_stride, channels, output_pixel_stride, output_row_stride, output_channel_stride,
        );
        equal("PACK_THREADS", PACK_THREADS as usize);
        equal("PACK_VALUES", 256);
        equal("PACK_CHANNELS", PackParams::default().channel_offsets.len());
        kernel_headers::compile(&program);
    }
}
