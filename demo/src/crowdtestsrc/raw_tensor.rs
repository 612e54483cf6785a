// SPDX-License-Identifier: MIT OR Apache-2.0
//! Raw output tensors of a detector.
//!
//! In: the windows of a frame. Out: a tensor in the input format of a decoder. Anchors without a
//! window have background scores.

use super::CrowdDecoder;
use super::splitmix64::SplitMix64;
use super::window_generator::Window;
use gstnmsfilter::input::custom_meta::NewTensor;
use gstnmsfilter::tensor::ElementType;

/// Number of classes of a YOLO output.
const CLASSES: usize = 80;
/// Class score of a window in a YOLOv5 output. The decoder multiplies it by the objectness.
const CLASS_SCORE: f32 = 0.98;
/// Upper bound of the scores of anchors without a window.
const MAX_BACKGROUND_SCORE: f32 = 0.02;
/// Maximum number of buffers that are kept for later frames.
const MAX_POOLED: usize = 8;

/// Writes windows into raw output tensors. A YOLO output has several megabytes of background. The
/// background is written once per buffer, and buffers are reused.
pub(super) struct RawTensor {
    decoder: CrowdDecoder,
    anchors: usize,
    /// Output of a frame without windows.
    empty: Vec<f32>,
    pool: Vec<PooledBuffer>,
}

/// A buffer that was returned before, and its anchors that contain windows.
struct PooledBuffer {
    buffer: gst::Buffer,
    written: Vec<usize>,
}

impl RawTensor {
    /// Makes tensors for frames of `area` pixels. There are 25200 (YOLOv5) or 8400 (YOLOv8) anchors
    /// up to 1920 x 1080 pixels, and as many again for each further 1920 x 1080 pixels.
    pub fn new(decoder: CrowdDecoder, area: u64) -> Self {
        let frames = area.div_ceil(1920 * 1080).max(1) as usize;
        let anchors = match decoder {
            CrowdDecoder::Windows => 0,
            CrowdDecoder::Yolov5 => 25_200 * frames,
            CrowdDecoder::Yolov8 => 8_400 * frames,
        };
        let mut tensor = Self { decoder, anchors, empty: Vec::new(), pool: Vec::new() };
        tensor.fill_empty();
        tensor
    }

    /// Returns a tensor with these windows. If there are more windows than anchors, the last
    /// windows are omitted.
    ///
    /// # Errors
    /// Returns an error if memory cannot be allocated or mapped.
    pub fn with_windows(&mut self, windows: &[Window]) -> Result<NewTensor, gst::glib::BoolError> {
        if self.decoder == CrowdDecoder::Windows {
            let rows = windows.iter().flat_map(|w| [w.x, w.y, w.side, w.score]).collect();
            let tensor = NewTensor::from_vec::<f32>("windows", &[windows.len(), 4], rows);
            return Ok(tensor.expect("two dimensions"));
        }
        let windows = &windows[..windows.len().min(self.anchors)];
        let mut pooled = self.take_buffer()?;
        {
            let buffer = pooled.buffer.get_mut().expect("take_buffer returns writable buffers");
            let mut map = buffer.map_writable()?;
            let elements: &mut [f32] = bytemuck::cast_slice_mut(&mut map);
            for anchor in pooled.written.drain(..) {
                for number in 0..self.numbers() {
                    let i = self.index(anchor, number);
                    elements[i] = self.empty[i];
                }
            }
            for (i, window) in windows.iter().enumerate() {
                let anchor = i * self.anchors / windows.len();
                let half = window.side / 2.0;
                let (cx, cy) = (window.x + half, window.y + half);
                let numbers = [cx, cy, window.side, window.side, self.first_score(window)];
                for (number, value) in numbers.into_iter().enumerate() {
                    elements[self.index(anchor, number)] = value;
                }
                if self.decoder == CrowdDecoder::Yolov5 {
                    elements[self.index(anchor, 5)] = CLASS_SCORE;
                }
                pooled.written.push(anchor);
            }
        }
        let data = pooled.buffer.clone();
        let tensor = NewTensor::new(self.id(), ElementType::F32, &self.shape(), data)
            .expect("three dimensions");
        if self.pool.len() < MAX_POOLED {
            self.pool.push(pooled);
        }
        Ok(tensor)
    }

    /// Takes a pooled buffer that is not in use downstream, or makes a new one.
    fn take_buffer(&mut self) -> Result<PooledBuffer, gst::glib::BoolError> {
        let free = self.pool.iter().position(|pooled| {
            pooled.buffer.is_writable() && pooled.buffer.is_all_memory_writable()
        });
        if let Some(free) = free {
            return Ok(self.pool.swap_remove(free));
        }
        let bytes: &[u8] = bytemuck::cast_slice(&self.empty);
        let mut buffer = gst::Buffer::with_size(bytes.len())?;
        buffer.make_mut().copy_from_slice(0, bytes).expect("the buffer is as large");
        Ok(PooledBuffer { buffer, written: Vec::new() })
    }

    fn fill_empty(&mut self) {
        self.empty = vec![0.0; self.anchors * self.numbers()];
        for anchor in 0..self.anchors {
            let mut random = SplitMix64::new(&[4, anchor as u64]);
            for number in 0..self.numbers() {
                let value = match number {
                    0 | 1 => random.in_range(0.0, 640.0),
                    2 | 3 => random.in_range(4.0, 64.0),
                    _ => random.in_range(0.0, MAX_BACKGROUND_SCORE),
                };
                let i = self.index(anchor, number);
                self.empty[i] = value;
            }
        }
    }

    /// Returns the number of elements per anchor.
    fn numbers(&self) -> usize {
        match self.decoder {
            CrowdDecoder::Windows => 4,
            CrowdDecoder::Yolov5 => 5 + CLASSES,
            CrowdDecoder::Yolov8 => 4 + CLASSES,
        }
    }

    fn index(&self, anchor: usize, number: usize) -> usize {
        match self.decoder {
            CrowdDecoder::Yolov8 => number * self.anchors + anchor,
            _ => anchor * self.numbers() + number,
        }
    }

    /// Returns the number that follows the box: the objectness, or the score of class 0.
    fn first_score(&self, window: &Window) -> f32 {
        match self.decoder {
            CrowdDecoder::Yolov5 => window.score / CLASS_SCORE,
            _ => window.score,
        }
    }

    fn id(&self) -> &'static str {
        match self.decoder {
            CrowdDecoder::Windows => "windows",
            CrowdDecoder::Yolov5 => "yolo-v5-out",
            CrowdDecoder::Yolov8 => "yolo-v8-out",
        }
    }

    fn shape(&self) -> [usize; 3] {
        match self.decoder {
            CrowdDecoder::Yolov8 => [1, self.numbers(), self.anchors],
            _ => [1, self.anchors, self.numbers()],
        }
    }
}
