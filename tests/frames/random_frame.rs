// SPDX-License-Identifier: MIT OR Apache-2.0
//! Frames with a random format, size, memory and `GstVideoMeta`.

use gst::glib::translate::IntoGlib;
use gst_video::{VideoFormat, VideoFormatFlags, VideoFormatInfo, VideoInfo, VideoInterlaceMode};
use gstnmsfilter::frame::raw_formats;

use crate::exact_memory::{Border, memory};

/// The fields of a `GstVideoMeta`.
#[derive(Clone, Debug, PartialEq)]
struct VideoMetaFields {
    flags: u32,
    format: VideoFormat,
    size: [u32; 2],
    planes: u32,
    offsets: [usize; 4],
    strides: [i32; 4],
}

/// Size of a plane: bytes per row, and number of rows.
#[derive(Clone, Copy, Debug)]
struct PlaneSize {
    row_bytes: usize,
    /// Bytes per row that GstVideoConverter reads, which can exceed the stride of GStreamer's own
    /// layout.
    read_row_bytes: usize,
    rows: usize,
    /// Number of rows in GStreamer's own layout, which has more rows for interlaced frames.
    own_rows: usize,
}

impl PlaneSize {
    /// Returns the bytes of a plane with this stride.
    fn bytes(&self, stride: usize, has_tiles: bool) -> usize {
        let between = if has_tiles { self.row_bytes } else { stride };
        // In GStreamer's own layout, the last row may be shorter than the part that is read.
        let last = if stride < self.read_row_bytes { self.row_bytes } else { self.read_row_bytes };
        (self.own_rows - 1) * between + last
    }
}

/// A frame with a random layout.
#[derive(Debug)]
pub struct RandomFrame {
    /// Description in the frame's caps.
    pub info: VideoInfo,
    layout: VideoMetaFields,
    /// The layout before fields were changed.
    original: VideoMetaFields,
    planes: Vec<PlaneSize>,
    border: Border,
    /// Size of each `GstMemory`.
    lens: Vec<usize>,
    seed: u64,
}

impl RandomFrame {
    pub fn new(seed: u64) -> Self {
        let random = &mut fastrand::Rng::with_seed(seed);
        let formats = raw_formats();
        let format = formats[random.usize(..formats.len())];
        let [width, height] = [random.u32(1..40), random.u32(1..30)];
        let mode = match random.u8(..8) {
            0 => VideoInterlaceMode::Interleaved,
            1 => VideoInterlaceMode::Mixed,
            _ => VideoInterlaceMode::Progressive,
        };
        let info = VideoInfo::builder(format, width, height).interlace_mode(mode).build().unwrap();
        let planes = planes(&info);
        let is_interlaced = mode == VideoInterlaceMode::Interleaved
            || (mode == VideoInterlaceMode::Mixed && random.bool());
        let (mut offsets, mut strides, mut size) = ([0; 4], [0; 4], 0);
        for (plane, samples) in planes.iter().enumerate() {
            let padding = [0, 0, 1, 4, 64, 200][random.usize(..6)];
            let has_tiles = info.format_info().is_tiled();
            let palette = info.format_info().has_palette() && plane == 1;
            let stride = if has_tiles || palette {
                info.stride()[plane] as usize
            } else if padding == 0 {
                samples.row_bytes
            } else {
                samples.read_row_bytes + padding
            };
            offsets[plane] = size + [0, 0, 3, 40][random.usize(..4)];
            strides[plane] = stride as i32;
            size = offsets[plane] + samples.bytes(stride, has_tiles);
        }
        let flags = if is_interlaced { gst_video::ffi::GST_VIDEO_FRAME_FLAG_INTERLACED } else { 0 };
        let (size, number) = ([width, height], info.n_planes());
        let original = VideoMetaFields { flags, format, size, planes: number, offsets, strides };
        let mut layout = original.clone();
        if random.u8(..8) < 5 {
            for _ in 0..random.usize(1..3) {
                change(&mut layout, random, &formats);
            }
        }
        let total = planes_end(&planes, &info, &original);
        let mut lens = vec![total];
        match random.u8(..8) {
            0 => lens = vec![total - random.usize(1..total.min(70) + 1)],
            1 | 2 => {
                // Some cuts are at the borders of planes.
                let cut = if random.bool() {
                    offsets[random.usize(..number as usize)]
                } else {
                    random.usize(..total)
                };
                lens = vec![cut, total - cut];
            }
            _ => (),
        }
        lens.retain(|&len| len > 0);
        let border = [Border::Block, Border::PageBefore, Border::PageBehind][random.usize(..3)];
        Self { info, layout, original, planes, border, lens, seed }
    }

    /// Returns a buffer of random bytes with the metadata. Its memory ends with the frame.
    pub fn buffer(&self) -> gst::Buffer {
        let mut random = fastrand::Rng::with_seed(self.seed);
        let mut buffer = gst::Buffer::new();
        let writable = buffer.get_mut().unwrap();
        for &len in &self.lens {
            let bytes: Vec<u8> = (0..len).map(|_| random.u8(..)).collect();
            writable.append_memory(memory(&bytes, self.border));
        }
        write(&self.layout, writable);
        buffer
    }

    /// Returns the bytes of all memories of `buffer`.
    pub fn bytes_of(&self, buffer: &gst::BufferRef) -> Vec<u8> {
        let maps = (0..buffer.n_memory()).map(|i| buffer.peek_memory(i).map_readable().unwrap());
        maps.flat_map(|map| map.to_vec()).collect()
    }

    /// Returns true if this file can compute the positions of the samples.
    fn is_regular(&self) -> bool {
        is_regular(&self.info.format_info())
    }

    /// Returns true if the memory contains the whole frame. Returns `None` if this file cannot
    /// compute the answer.
    pub fn fits(&self) -> Option<bool> {
        let VideoMetaFields { format, size, planes, .. } = self.layout;
        let is_for_caps = format == self.info.format()
            && (self.info.width()..1 << 31).contains(&size[0])
            && (self.info.height()..1 << 31).contains(&size[1])
            && planes == self.info.n_planes();
        if !is_for_caps {
            return Some(false);
        }
        // GstVideoConverter reads more rows from interlaced frames than GStreamer's own layout has.
        if self.has_converted_fields() {
            return None;
        }
        if self.is_regular() {
            return Some(self.rows().is_some());
        }
        let is_whole = self.lens.len() == 1 && self.lens[0] == self.end_of_original();
        (self.layout == self.original && is_whole).then_some(true)
    }

    /// Returns true if GstVideoConverter reads the frame by fields.
    fn has_converted_fields(&self) -> bool {
        let is_converted = !self.is_regular() || self.info.format_info().depth()[0] > 8;
        let is_progressive = self.info.interlace_mode() == VideoInterlaceMode::Progressive;
        is_converted && (self.layout.flags != 0 || !is_progressive)
    }

    fn end_of_original(&self) -> usize {
        planes_end(&self.planes, &self.info, &self.original)
    }

    /// Returns the rows of each plane, without padding. Returns `None` if the memory does not
    /// contain them.
    fn rows(&self) -> Option<Vec<Vec<Vec<u8>>>> {
        let buffer = self.buffer();
        let memories: Vec<Vec<u8>> = (0..buffer.n_memory())
            .map(|i| buffer.peek_memory(i).map_readable().unwrap().to_vec())
            .collect();
        let mut all = Vec::new();
        for (plane, &PlaneSize { row_bytes, rows, own_rows, .. }) in self.planes.iter().enumerate()
        {
            let (mut start, stride) = (self.layout.offsets[plane], self.layout.strides[plane]);
            // The memory with a row's first byte contains the whole row.
            let memory = memories.iter().find(|memory| {
                let has = start < memory.len();
                start -= if has { 0 } else { memory.len() };
                has
            })?;
            let stride = usize::try_from(stride).ok()?;
            if rows > 1 && stride < row_bytes {
                return None;
            }
            let row = |row: usize| {
                let start = start.checked_add(row.checked_mul(stride)?)?;
                memory.get(start..start.checked_add(row_bytes)?).map(<[u8]>::to_vec)
            };
            let needed = (0..rows).map(row).collect::<Option<Vec<_>>>()?;
            let further = (rows..own_rows).map(|at| row(at).unwrap_or_else(|| vec![0; row_bytes]));
            all.push(needed.into_iter().chain(further).collect());
        }
        Some(all)
    }

    /// Returns the frame in GStreamer's own layout. Returns `Some(None)` if this file cannot
    /// compute it, and `None` if the memory does not contain the frame.
    pub fn packed(&self) -> Option<Option<gst::Buffer>> {
        if !self.is_regular() {
            return Some(None);
        }
        let rows = self.rows()?;
        // If there are few rows, the result depends on more than the picture.
        if self.has_converted_fields() {
            return Some(None);
        }
        let mut bytes = vec![0; self.info.size()];
        for (plane, rows) in rows.into_iter().enumerate() {
            let (start, stride) = (self.info.offset()[plane], self.info.stride()[plane] as usize);
            for (at, row) in rows.into_iter().enumerate() {
                bytes[start + at * stride..][..row.len()].copy_from_slice(&row);
            }
        }
        let mut buffer = gst::Buffer::from_mut_slice(bytes);
        let (mut offsets, mut strides) = ([0; 4], [0; 4]);
        let planes = self.info.n_planes() as usize;
        offsets[..planes].copy_from_slice(&self.info.offset()[..planes]);
        strides[..planes].copy_from_slice(&self.info.stride()[..planes]);
        let layout =
            VideoMetaFields { flags: self.layout.flags, offsets, strides, ..self.original.clone() };
        write(&layout, buffer.get_mut().unwrap());
        Some(Some(buffer))
    }
}

/// Returns true if the samples of a format are equidistant.
fn is_regular(format: &VideoFormatInfo) -> bool {
    let irregular = VideoFormatFlags::COMPLEX | VideoFormatFlags::PALETTE | VideoFormatFlags::TILED;
    // IYU1 is irregular, too, but has none of these flags.
    !format.flags().intersects(irregular) && format.pixel_stride()[0] > 0
}

/// Returns the planes of GStreamer's own layout. For regular formats, they are without padding.
fn planes(info: &VideoInfo) -> Vec<PlaneSize> {
    let format = info.format_info();
    let number = info.n_planes() as usize;
    let plane = |plane: usize| {
        let end = if plane + 1 < number { info.offset()[plane + 1] } else { info.size() };
        let bytes = end - info.offset()[plane];
        let stride = info.stride()[plane] as usize;
        if format.is_tiled() {
            let rows = stride >> 16;
            let row_bytes = bytes / rows;
            return PlaneSize { row_bytes, read_row_bytes: row_bytes, rows, own_rows: rows };
        }
        let own_rows = bytes / stride;
        if !is_regular(&format) {
            // For odd widths, GStreamer's strides can be smaller than the part that its conversions
            // read.
            let pairs = info.width().div_ceil(2) as usize;
            let words = match (format.name().as_str(), plane) {
                ("UYVP", _) => pairs * 5,
                ("NV12_10LE32" | "NV16_10LE32", 1) => (pairs * 2).div_ceil(3) * 4,
                _ => 0,
            };
            let read_row_bytes = stride.max(words);
            return PlaneSize { row_bytes: stride, read_row_bytes, rows: own_rows, own_rows };
        }
        let components =
            (0..format.n_components() as usize).filter(|&c| format.plane()[c] as usize == plane);
        // A pixel, or a group of pixels with shared samples, is complete.
        let sizes = components.map(|c| {
            let columns = format.scale_width(c as u8, info.width()) as usize;
            let rows = format.scale_height(c as u8, info.height()) as usize;
            [columns * format.pixel_stride()[c] as usize, rows]
        });
        let [row_bytes, rows] = sizes.reduce(|a, b| [a[0].max(b[0]), a[1].max(b[1])]).unwrap();
        PlaneSize { row_bytes, read_row_bytes: row_bytes, rows, own_rows: own_rows.max(rows) }
    };
    (0..number).map(plane).collect()
}

/// Returns the end of the last plane.
fn planes_end(planes: &[PlaneSize], info: &VideoInfo, layout: &VideoMetaFields) -> usize {
    let has_tiles = info.format_info().is_tiled();
    let end = |(plane, size): (usize, &PlaneSize)| {
        layout.offsets[plane] + size.bytes(layout.strides[plane] as usize, has_tiles)
    };
    planes.iter().enumerate().map(end).max().unwrap()
}

/// Changes a random field.
fn change(layout: &mut VideoMetaFields, random: &mut fastrand::Rng, formats: &[VideoFormat]) {
    let plane = random.usize(..layout.planes.clamp(1, 4) as usize);
    match random.u8(..16) {
        0..5 => {
            let stride = layout.strides[plane];
            layout.strides[plane] = match random.u8(..9) {
                0 => 0,
                1 => stride.wrapping_neg(),
                2 => stride.wrapping_sub(1),
                3 => stride.wrapping_add(1),
                4 => stride.wrapping_add(200),
                5 => 4096,
                6 => [i32::MAX, i32::MIN][random.usize(..2)],
                7 => random.i32(..),
                _ => random.i32(0..256),
            };
        }
        5..10 => {
            let offset = layout.offsets[plane];
            layout.offsets[plane] = match random.u8(..7) {
                0 => 0,
                1 => offset.wrapping_add(1),
                2 => offset.wrapping_sub(1),
                3 => usize::MAX - random.usize(..64),
                4 => random.usize(..),
                5 => layout.offsets[random.usize(..4)],
                _ => random.usize(..4096),
            };
        }
        10 | 11 => {
            layout.planes = [0, 1, 2, 3, 4, 5, 255, u32::MAX][random.usize(..8)];
        }
        12 => layout.format = formats[random.usize(..formats.len())],
        13 | 14 => {
            let side = &mut layout.size[random.usize(..2)];
            *side = match random.u8(..5) {
                0 => 0,
                1 => side.wrapping_sub(1),
                2 => side.wrapping_add(1),
                3 => side.wrapping_mul(2),
                _ => u32::MAX,
            };
        }
        _ => layout.flags ^= gst_video::ffi::GST_VIDEO_FRAME_FLAG_INTERLACED,
    }
}

/// Adds metadata with these fields without checks, as an element written in C can.
fn write(layout: &VideoMetaFields, buffer: &mut gst::BufferRef) {
    let (offsets, strides) = ([0; 4], [0; 4]);
    // SAFETY: the buffer is writable, and the arrays have an entry for each plane. The call returns
    // metadata of the buffer. Some values exceed the memory on purpose: readers must detect them.
    unsafe {
        let meta = gst_video::ffi::gst_buffer_add_video_meta_full(
            buffer.as_mut_ptr(),
            layout.flags,
            VideoFormat::Rgb.into_glib(),
            1,
            1,
            1,
            &offsets,
            &strides,
        );
        (*meta).format = layout.format.into_glib();
        ((*meta).width, (*meta).height) = (layout.size[0], layout.size[1]);
        (*meta).n_planes = layout.planes;
        (*meta).offset = layout.offsets;
        (*meta).stride = layout.strides;
    }
}
