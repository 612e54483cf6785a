// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packing on the CPU: from the pixels of a picture to the model's input tensor.

use super::{Pixels, Table};
use crate::inference::model::InputLayout;

/// Writes the elements of `pixels` to `tensor`, the bytes of a tensor of this layout.
///
/// # Panics
/// If `tensor` has another size than the picture requires.
pub fn pack(pixels: &Pixels<'_>, table: &Table, layout: InputLayout, tensor: &mut [u8]) {
    match table {
        Table::F32(table) => elements(pixels, table, layout, bytemuck::cast_slice_mut(tensor)),
        Table::F16(table) => elements(pixels, table, layout, bytemuck::cast_slice_mut(tensor)),
        Table::U8(table) => elements(pixels, table, layout, tensor),
    }
}

fn elements<T: Copy>(
    pixels: &Pixels<'_>,
    table: &[[T; 256]],
    layout: InputLayout,
    tensor: &mut [T],
) {
    let [width, height] = pixels.size;
    let channels = table.len();
    assert_eq!(tensor.len(), width * height * channels, "the tensor has the picture's size");
    for y in 0..height {
        let row = &pixels.row(y);
        match layout {
            InputLayout::Nchw => {
                for (channel, table) in table.iter().enumerate() {
                    let start = (channel * height + y) * width;
                    let values = row[pixels.offsets[channel]..].iter().step_by(pixels.pixel_stride);
                    for (element, &value) in tensor[start..start + width].iter_mut().zip(values) {
                        *element = table[usize::from(value)];
                    }
                }
            }
            InputLayout::Nhwc => {
                let start = y * width * channels;
                let row_elements = tensor[start..].chunks_exact_mut(channels).take(width);
                for (pixel, elements) in row.chunks(pixels.pixel_stride).zip(row_elements) {
                    for (channel, element) in elements.iter_mut().enumerate() {
                        *element = table[channel][usize::from(pixel[pixels.offsets[channel]])];
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 2x2 pixels in BGRx with two bytes after each row.
    const DATA: [u8; 20] = [3, 2, 1, 0, 6, 5, 4, 0, 99, 99, 9, 8, 7, 0, 12, 11, 10, 0, 99, 99];

    fn packed(layout: InputLayout) -> Vec<u8> {
        let pixels =
            Pixels { data: &DATA, stride: 10, pixel_stride: 4, offsets: [2, 1, 0], size: [2, 2] };
        let identity: [u8; 256] = std::array::from_fn(|value| value as u8);
        let mut tensor = [0; 12];
        pack(&pixels, &Table::U8(vec![identity; 3]), layout, &mut tensor);
        tensor.to_vec()
    }

    #[test]
    fn planes_of_channels() {
        let expected = [1, 4, 7, 10, 2, 5, 8, 11, 3, 6, 9, 12];
        assert_eq!(packed(InputLayout::Nchw), expected);
    }

    #[test]
    fn channels_of_pixels() {
        assert_eq!(packed(InputLayout::Nhwc), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    }
}
