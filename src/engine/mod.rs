//! Decode, map, reduce, order, publish: from a head's rows to surviving detections.
//!
//! Every engine gives the same survivors, in the same order, with the same bits. [`Reference`] is
//! the plain version that is obviously right; [`Cpu`] is built for speed and held to it by tests.
//!
//! # From row to candidate
//! All arithmetic is IEEE single precision without contraction; f16 elements are widened first.
//!
//! 1. Where there is objectness: a row is *rejected* where it is not finite, dropped where it is
//!    below the lowest threshold of any class.
//! 2. The best class is the first of the greatest scores; scores that are not a number lose. The
//!    row is rejected where the best is not finite.
//! 3. Its score is the best, or objectness times the best; rejected where that is not finite.
//!    Minus zero counts as zero.
//! 4. The row is dropped where objectness or score is below the threshold of its class.
//! 5. The box's numbers are multiplied by [`Params::scale`], then made into corners. The row is
//!    rejected where a corner is not finite, a side is negative or longer than [`LONGEST_SIDE`];
//!    dropped as an empty slot where a side is zero; dropped where a side is outside
//!    [`Params::sizes`].
//!
//! # Order and suppression
//! A candidate *outranks* another where its score is higher, or equal and its row comes first.
//! [`Params::max_candidates`] keeps the highest-ranked candidates. Two candidates of one class (of
//! any two with [`Params::class_agnostic`]) *meet* where their boxes intersect and [`Overlap`]
//! says that they overlap too much. `greedy` keeps a candidate where no kept one that outranks it
//! meets it; `map-reduce` where none at all that outranks it does (Oro et al. 2020); `none` keeps
//! all. [`Params::max_detections`] then keeps the highest-ranked survivors.

mod cpu;
mod params;
mod reference;
mod select;

pub use cpu::Cpu;
pub use params::{ClassThresholds, Method, Overlap, Params, Sizes};
pub use reference::Reference;
pub use select::{Backend, SelectError, select};

use crate::head::Layout;
use crate::tensor::{Tensor, TensorError};

/// The longest side of a box, in pixels; areas and their sums stay far from overflow.
pub const LONGEST_SIDE: f32 = 1.0e9;

/// A candidate or survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[repr(C)]
pub struct Detection {
    /// Left edge, in pixels of the model's input.
    pub x1: f32,
    /// Upper edge.
    pub y1: f32,
    /// Right edge; `x2 > x1`.
    pub x2: f32,
    /// Lower edge; `y2 > y1`.
    pub y2: f32,
    /// Score; finite.
    pub score: f32,
    /// Index of its class.
    pub class: u32,
    /// The row it comes from.
    pub anchor: u32,
}

/// What an engine made of one frame.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// What survives, by rank.
    pub survivors: &'a [Detection],
    /// How many rows became candidates, before any cap.
    pub candidates: usize,
    /// How many rows were rejected for numbers that make no sense.
    pub rejected: usize,
    /// Bytes copied to a device.
    pub bytes_uploaded: u64,
    /// Bytes copied from a device.
    pub bytes_downloaded: u64,
}

/// Why an engine gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// A tensor's memory cannot be read.
    #[error(transparent)]
    Tensor(#[from] TensorError),
    /// More rows than an index can count.
    #[error("{anchors} rows are more than the {} supported", u32::MAX)]
    Anchors {
        /// Rows there are.
        anchors: usize,
    },
}

/// Something that decodes and suppresses.
pub trait Engine: Send {
    /// The name by which `stats` shows it.
    fn name(&self) -> &'static str;

    /// Decodes `tensors` as `layout` says and suppresses as `params` say.
    ///
    /// # Errors
    /// Where a tensor's memory cannot be read.
    fn run(
        &mut self,
        tensors: &[Tensor<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError>;
}

/// Row indices are published as u32.
fn check_anchors(layout: &Layout) -> Result<(), EngineError> {
    match u32::try_from(layout.anchors) {
        Ok(_) => Ok(()),
        Err(_) => Err(EngineError::Anchors { anchors: layout.anchors }),
    }
}
