// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes how many bytes each plane of a frame must have.
//!
//! In: the `GstVideoInfo` of the caps; then, for each frame, its `GstVideoMeta` and the number of mapped bytes.
//! Out: the bytes of a plane that readers may access, or a [`FrameError`].

use arrayvec::ArrayVec;
use gst::glib::translate::{IntoGlib, from_glib};
use gst_video::{VideoFormat, VideoFormatFlags, VideoInfo};

/// The maximum number of planes of any format.
pub(super) const PLANES: usize = gst_video::ffi::GST_VIDEO_MAX_PLANES as usize;

/// Stands for an unknown number of bytes: some elements use memory whose size only they know.
pub(super) const UNKNOWN: usize = usize::MAX;

/// The memory or the metadata of a frame does not match its caps.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct FrameError(pub(super) String);

/// The size of a plane, for frames with given caps.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PlaneSize {
    /// The stride in GStreamer's default layout.
    stride: i32,
    /// The length of a row in bytes, up to the last sample and the other bytes of the last pixel.
    row_bytes: usize,
    rows: usize,
    /// The number of bytes that GstVideoConverter reads per row. More than `row_bytes` in the formats for which
    /// GStreamer's default layout is too small.
    converted_row_bytes: usize,
    /// The number of rows that GstVideoConverter reads of an interlaced frame, where it reads chroma field by
    /// field.
    interlaced_rows: usize,
    tiles: Option<TileSize>,
}

/// The tiles of a plane, in formats that store pixels in tiles.
#[derive(Clone, Copy, Debug)]
struct TileSize {
    columns: usize,
    rows: usize,
    /// The size of a tile in bytes.
    bytes: usize,
    /// The number of columns of tiles that GstVideoConverter reads.
    converted_columns: usize,
}

/// The memory layout that frames with given caps need.
#[derive(Clone, Debug)]
pub struct FrameLayout {
    info: VideoInfo,
    pub(super) planes: ArrayVec<PlaneSize, PLANES>,
}

/// The bytes of a plane that readers access, and the distance between its rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extent {
    /// The number of bytes of the plane in the frame's memory.
    pub len: usize,
    /// The bytes behind them that GstVideoConverter reads, and that the memory may not have: for some formats and sizes,
    /// GStreamer's own layout is too small.
    pub missing: usize,
    /// The distance between two rows, in bytes.
    pub stride: usize,
    /// Bytes from row to row, or from tile to tile.
    pub period: usize,
}

impl FrameLayout {
    /// The layout of frames whose caps are described by `info`.
    pub fn new(info: &VideoInfo) -> Self {
        let planes = (0..info.n_planes() as usize).map(|plane| PlaneSize::new(info, plane));
        Self { info: info.clone(), planes: planes.collect() }
    }

    /// Returns the description of the caps.
    pub fn info(&self) -> &VideoInfo {
        &self.info
    }

    /// Returns the buffer's `GstVideoMeta`, which `gst_video_frame_map` uses for the layout if it is present.
    ///
    /// # Errors
    /// If the metadata does not describe a frame with these caps. Mapping a frame with more planes than GStreamer
    /// allows would write past the end of GStreamer's arrays.
    pub fn meta<'a>(
        &self,
        buffer: &'a gst::BufferRef,
    ) -> Result<Option<&'a gst_video::ffi::GstVideoMeta>, FrameError> {
        // SAFETY: the result is NULL or points to metadata of the buffer, which is not changed while it is borrowed.
        let meta = unsafe {
            gst_video::ffi::gst_buffer_get_video_meta(buffer.as_ptr().cast_mut()).as_ref()
        };
        let Some(meta) = meta else { return Ok(None) };
        let (format, size) = (self.info.format(), [self.info.width(), self.info.height()]);
        let found_size = [meta.width, meta.height];
        // GStreamer stores sides as signed numbers.
        let holds = (0..2).all(|axis| (size[axis]..=i32::MAX as u32).contains(&found_size[axis]));
        if meta.format != format.into_glib() || !holds {
            // SAFETY: the conversion is defined for every number.
            let found: VideoFormat = unsafe { from_glib(meta.format) };
            return Err(FrameError(format!(
                "the GstVideoMeta of the frame is for {found} of {}x{}; the caps have {format} of {}x{}: put videoconvert \
                 before this element, or correct the element upstream",
                found_size[0], found_size[1], size[0], size[1]
            )));
        }
        let expected = self.info.n_planes();
        if meta.n_planes != expected {
            return Err(FrameError(format!(
                "the GstVideoMeta of the frame has {} planes; {format} has {expected}: correct the element upstream",
                meta.n_planes
            )));
        }
        Ok(Some(meta))
    }

    /// Computes the bytes of `plane` that readers access. The memory has `available` bytes from the plane's first
    /// row on.
    ///
    /// # Errors
    /// If the memory has too few bytes.
    pub(super) fn extent(
        &self,
        plane: usize,
        stride: i32,
        available: usize,
        interlaced: bool,
    ) -> Result<Extent, FrameError> {
        let size = &self.planes[plane];
        let PlaneSize { row_bytes, rows, .. } = *size;
        let converted_rows = if interlaced { size.interlaced_rows } else { rows };
        let Ok(unsigned) = usize::try_from(stride) else {
            return Err(FrameError(format!(
                "plane {plane} of the frame has a stride of {stride}, so its rows are in reverse order; expected a positive \
                 stride: put videoconvert with another format before this element"
            )));
        };
        let (lens, period) = match size.tiles {
            None => {
                let len = |rows: usize, row_bytes: usize| {
                    // A plane with a single row does not use its stride.
                    let stride = if rows == 1 { unsigned.max(row_bytes) } else { unsigned };
                    let before = (rows - 1).checked_mul(stride)?;
                    before.checked_add(row_bytes)
                };
                let is_wide = rows == 1 || unsigned >= row_bytes;
                let lens = [(rows, row_bytes), (converted_rows, size.converted_row_bytes)]
                    .map(|(rows, row_bytes)| len(rows, row_bytes).filter(|_| is_wide));
                (lens, unsigned.max(row_bytes))
            }
            Some(tiles) => {
                let [columns, rows] = tile_counts(unsigned);
                let is_enough = columns >= tiles.columns && rows >= tiles.rows;
                let all = columns.checked_mul(rows).filter(|_| is_enough);
                let len = |count: usize| count.checked_mul(tiles.bytes);
                let beyond = tiles.converted_columns.saturating_sub(columns);
                ([all.and_then(len), all.and_then(|all| len(all + beyond))], tiles.bytes)
            }
        };
        let extent = match lens {
            [Some(len), Some(converted_len)] => {
                let beyond = converted_len.saturating_sub(len);
                // Elements that use GStreamer's default layout have not allocated more bytes than it has.
                let needed = if stride == size.stride { len } else { len + beyond };
                let is_there = available != UNKNOWN && len + beyond <= available;
                let missing = if is_there { 0 } else { beyond };
                let stride = unsigned.max(row_bytes);
                (needed <= available).then_some(Extent { len, missing, stride, period })
            }
            _ => None,
        };
        let rows = if stride == size.stride { rows } else { converted_rows };
        extent.ok_or_else(|| {
            FrameError(format!(
                "plane {plane} of the frame has {available} bytes from its first row on and a stride of {stride}; expected \
                 {rows} rows of {row_bytes} bytes: correct the element upstream, which attaches a wrong GstVideoMeta"
            ))
        })
    }

    /// Returns the offset and the extent of `plane` in a single memory block of `len` bytes that contains the whole
    /// frame. `meta` is the result of [`meta`](Self::meta).
    ///
    /// # Errors
    /// If the plane exceeds the memory.
    pub fn plane_at(
        &self,
        meta: Option<&gst_video::ffi::GstVideoMeta>,
        plane: usize,
        len: usize,
    ) -> Result<(usize, Extent), FrameError> {
        let (offset, stride) = match meta {
            Some(meta) => (meta.offset[plane], meta.stride[plane]),
            None => (self.info.offset()[plane], self.info.stride()[plane]),
        };
        let extent = self.extent(plane, stride, len.saturating_sub(offset), false)?;
        Ok((offset, extent))
    }
}

impl PlaneSize {
    fn new(info: &VideoInfo, plane: usize) -> Self {
        let format = info.format_info();
        let components: ArrayVec<usize, 4> = (0..format.n_components() as usize)
            .filter(|&c| format.plane()[c] as usize == plane)
            .collect();
        // The plane's start and end in GStreamer's default layout.
        let start = info.offset()[plane];
        let planes = info.n_planes() as usize;
        let end = if plane + 1 < planes { info.offset()[plane + 1] } else { info.size() };
        let (bytes, stride) = (end.saturating_sub(start), info.stride()[plane].max(1) as usize);
        if format.flags().contains(VideoFormatFlags::TILED) {
            let [columns, rows] = tile_counts(stride);
            let tile_bytes = bytes.div_ceil((columns * rows).max(1));
            let row_bytes = columns * tile_bytes;
            let converted_columns = match (format.name().as_str(), plane) {
                // Each tile has 8 bytes (64 bits) of every row. If the width is odd, the converter also reads the
                // 10 bits that follow, where Cr of the last pixel is.
                ("NV12_10BE_8L128", 1) => (info.width().next_multiple_of(2) * 10).div_ceil(64),
                _ => 0,
            };
            let converted_columns = converted_columns as usize;
            let tiles = Some(TileSize { columns, rows, bytes: tile_bytes, converted_columns });
            return Self {
                stride: info.stride()[plane],
                row_bytes,
                rows,
                converted_row_bytes: row_bytes,
                interlaced_rows: rows,
                tiles,
            };
        }
        let columns = |c: usize| format.scale_width(c as u8, info.width()) as usize;
        let rows = |c: usize| format.scale_height(c as u8, info.height()) as usize;
        let irregular = VideoFormatFlags::PALETTE | VideoFormatFlags::COMPLEX;
        let is_regular = !format.flags().intersects(irregular)
            && !components.is_empty()
            && components.iter().all(|&c| format.pixel_stride()[c] > 0);
        let (row_bytes, rows) = if is_regular {
            let row_bytes = |c: usize| {
                let step = format.pixel_stride()[c] as usize;
                let bits = format.depth()[c] + format.shift()[c];
                let sample = format.poffset()[c] as usize + bits.div_ceil(8) as usize;
                (columns(c) - 1) * step + step.max(sample)
            };
            let most = |count: &dyn Fn(usize) -> usize| components.iter().map(|&c| count(c)).max();
            (most(&row_bytes).unwrap_or(1), most(&rows).unwrap_or(1))
        } else {
            // The format packs several pixels into a word, or uses a palette.
            (stride, (bytes / stride).max(1))
        };
        let converted_row_bytes = row_bytes.max(words(info, plane));
        let is_converted = super::components(&format).is_none();
        let by_fields = is_converted && components.iter().any(|&c| format.h_sub()[c] == 1);
        let last = |line: usize| ((line & !3) >> 1) + (line & 1) + 1;
        let interlaced_rows = if by_fields {
            (0..info.height() as usize).rev().take(4).map(last).max().unwrap_or(1)
        } else {
            1
        };
        Self {
            stride: info.stride()[plane],
            row_bytes,
            rows,
            converted_row_bytes,
            interlaced_rows: interlaced_rows.max(rows),
            tiles: None,
        }
    }
}

/// Returns the number of bytes that GstVideoConverter reads per row, for formats in which this number exceeds the
/// stride of GStreamer's default layout if the width is odd; 0 for other formats.
fn words(info: &VideoInfo, plane: usize) -> usize {
    let pairs = info.width().div_ceil(2) as usize;
    match info.format() {
        // Two pixels take 5 bytes.
        VideoFormat::Uyvp => pairs * 5,
        // Three samples take 4 bytes; Cb and Cr alternate.
        VideoFormat::Nv1210le32 | VideoFormat::Nv1610le32 if plane == 1 => {
            (pairs * 2).div_ceil(3) * 4
        }
        _ => 0,
    }
}

/// Splits the "stride" of a tiled format into the numbers of columns and rows of tiles, which it encodes.
fn tile_counts(stride: usize) -> [usize; 2] {
    const BITS: u32 = gst_video::ffi::GST_VIDEO_TILE_Y_TILES_SHIFT as u32;
    [stride & ((1 << BITS) - 1), stride >> BITS]
}
