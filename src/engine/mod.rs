//! Decode, map, reduce, order, publish: from a decoder's rows to surviving detections.
//!
//! Every engine gives the same survivors, in the same order, with the same bits. [`Reference`] is
//! the plain version that is obviously right; [`Cpu`] and [`Cuda`] are built for speed and held to it
//! by tests; [`select`] chooses, and with [`Backend::Auto`] goes to where the tensor lies.
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
//!    rejected where a corner is not finite, a side is negative or longer than [`MAX_SIDE`];
//!    dropped as an empty slot where a side is zero; dropped where a side is outside
//!    [`Params::sizes`].
//! 6. The row is rejected where the box does not intersect [`Params::visible`]: where its right
//!    edge is at or left of the left bound, its left edge at or right of the right bound, and
//!    likewise vertically. A box that cannot be seen takes no place of a cap and suppresses none.
//!
//! With [`Params::multi_label`] each pair of anchor and class is decoded by these rules as if the
//! anchor had that class alone: the lowest threshold of rule 1 is that of the class, and the counts
//! are of pairs.
//!
//! # Order and suppression
//! A candidate *outranks* another where its score is higher, or equal and its row comes first, or
//! with [`Params::multi_label`] of the same row and its class comes first.
//! [`Params::max_candidates`] keeps the highest-ranked candidates. Two candidates of one class (of
//! any two with [`Params::class_agnostic`]) *meet* where their boxes intersect and [`Overlap`]
//! says that they overlap too much. `greedy` keeps a candidate where no kept one that outranks it
//! meets it; `map-reduce` where none at all that outranks it does (Oro et al. 2020, whose strict
//! comparison of scores keeps both of two equal ones; here they are ranked by their rows); `none` keeps
//! all. [`Params::max_detections`] then keeps the highest-ranked survivors.

mod auto;
mod cpu;
pub mod cuda;
mod params;
#[cfg(any(test, feature = "internals"))]
mod reference;
mod select;
mod validate;

pub use crate::geometry::{Bounds, Overlap};
#[cfg(feature = "internals")]
pub use auto::Auto;
pub use cpu::Cpu;
pub use cuda::Cuda;
pub use params::{ClassThresholds, Method, Params, SizeLimits};
#[cfg(any(test, feature = "internals"))]
pub use reference::Reference;
#[cfg(feature = "internals")]
pub use select::Selection;
pub use select::{Backend, select};

use std::time::Duration;

use crate::decoder::{Layout, MAX_CLASSES};
use crate::device::{DeviceError, DriverError};
use crate::geometry::Corners;
use crate::tensor::{TensorError, TensorView};

/// The longest side of a box, in pixels; areas and their sums stay far from overflow.
pub const MAX_SIDE: f32 = 1.0e9;

/// The most images of a batch: the greatest y dimension of a CUDA grid.
pub const MAX_IMAGES: usize = 65_535;

/// A candidate or survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
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

impl Detection {
    /// Its box.
    #[inline(always)]
    pub(crate) fn corners(&self) -> Corners {
        let &Self { x1, y1, x2, y2, .. } = self;
        Corners { x1, y1, x2, y2 }
    }
}

/// The result of a run: one [`ImageOutcome`] per image of the batch.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    engine: &'static str,
    images: &'a [ImageCounts],
    /// Those that [`ImageCounts::first`] counts in.
    detections: &'a [Detection],
    device: DeviceWork,
}

/// The result for one image.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct ImageOutcome<'a> {
    /// The surviving detections, by rank.
    pub survivors: &'a [Detection],
    /// How many anchors, or pairs with [`Params::multi_label`], became candidates, before any cap.
    pub candidates: usize,
    /// How many were rejected, for numbers that make no sense or for a box outside the visible bounds.
    pub rejected: usize,
}

/// An image's counts, and where its survivors are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ImageCounts {
    /// The index of the first survivor.
    pub first: usize,
    pub survivors: usize,
    pub candidates: usize,
    pub rejected: usize,
}

impl<'a> Outcome<'a> {
    /// The name of the engine that made it.
    pub fn engine(&self) -> &'static str {
        self.engine
    }

    /// What was done on a GPU.
    pub fn device(&self) -> DeviceWork {
        self.device
    }

    /// The images, in the order of the batch.
    pub fn images(&self) -> impl ExactSizeIterator<Item = ImageOutcome<'a>> {
        let Self { images, detections, .. } = *self;
        images.iter().map(move |counts| counts.outcome(detections))
    }

    /// The image of this index.
    ///
    /// # Panics
    /// If the batch has no such image.
    pub fn image(&self, index: usize) -> ImageOutcome<'a> {
        self.images[index].outcome(self.detections)
    }
}

impl ImageCounts {
    fn outcome<'a>(&self, detections: &'a [Detection]) -> ImageOutcome<'a> {
        let &Self { first, survivors, candidates, rejected } = self;
        ImageOutcome { survivors: &detections[first..first + survivors], candidates, rejected }
    }
}

/// What a run did on a GPU; nothing, for the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceWork {
    /// Bytes copied to it: tensors that were not there already, thresholds by class that changed.
    pub bytes_uploaded: u64,
    /// Bytes that came from it: 32 with the counts, 28 for each survivor.
    pub bytes_downloaded: u64,
    /// Launches, of all kernels at once: one to a frame, two where candidates did not fit the
    /// memory for them.
    pub launches: u64,
    /// The longest chain of decisions that waited for one another.
    pub rounds: u64,
    /// From the first kernel's beginning to the last one's end, by the GPU's clock, which some
    /// GPUs advance once in a microsecond only.
    pub time: Duration,
}

impl std::ops::AddAssign for DeviceWork {
    fn add_assign(&mut self, other: Self) {
        self.bytes_uploaded += other.bytes_uploaded;
        self.bytes_downloaded += other.bytes_downloaded;
        self.launches += other.launches;
        self.rounds += other.rounds;
        self.time += other.time;
    }
}

/// Why an engine gives no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// No class, or more than a decoder may have.
    #[error("the layout has {classes} classes; expected 1 to {MAX_CLASSES}")]
    Classes {
        /// Classes there are.
        classes: usize,
    },
    /// No image, or more than [`MAX_IMAGES`].
    #[error("the layout has {images} images; expected 1 to {MAX_IMAGES}")]
    Images {
        /// The number of images.
        images: usize,
    },
    /// The engine cannot do what is asked.
    #[error("the engine {engine} does not support {what}; choose the backend {instead}")]
    Unsupported {
        /// The engine's name.
        engine: &'static str,
        /// What it does not support.
        what: String,
        /// The backend that does.
        instead: &'static str,
    },
    /// With `multi_label`, more pairs of anchor and class than an index can count.
    #[error(
        "{anchors} anchors of {classes} classes are more pairs than the {} that multi-label \
         supports; set multi-label to false",
        u32::MAX
    )]
    Pairs {
        /// Anchors there are.
        anchors: usize,
        /// Classes of each.
        classes: usize,
    },
    /// A field of the layout is of a tensor that there is not.
    #[error(
        "the layout's {field} are of tensor {index}, but there are {tensors} tensors; \
         make the layout for the tensors that are passed"
    )]
    NoTensor {
        /// The field.
        field: &'static str,
        /// The tensor's index.
        index: usize,
        /// How many tensors there are.
        tensors: usize,
    },
    /// A field of the layout addresses elements beyond its tensor's last.
    #[error(
        "tensor {tensor}: the layout's {field} need element {last}, but it has {held} elements; \
         correct the layout's offset, strides or number of anchors"
    )]
    FieldOutside {
        /// The field.
        field: &'static str,
        /// The tensor, as displayed.
        tensor: String,
        /// The index of the last element needed.
        last: u128,
        /// Elements there are.
        held: usize,
    },
    /// Objectness is of another tensor than the class scores.
    #[error("the layout's objectness is of tensor {got}; expected that of the scores, {expected}")]
    ObjectnessApart {
        /// The scores' tensor.
        expected: usize,
        /// The objectness's tensor.
        got: usize,
    },
    /// The GPU cannot be used, or no more.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// A tensor lies on another GPU than the engine's.
    #[error(
        "tensor {tensor} lies on GPU {is}, the element's is GPU {expected}; \
         set cuda-device-id to {is}, or to -1 to follow the tensors"
    )]
    OtherDevice {
        /// The tensor, as displayed.
        tensor: String,
        /// Where it lies.
        is: u32,
        /// Where it should.
        expected: u32,
    },
    /// A tensor's memory gives an address that is no GPU's.
    #[error("tensor {tensor}: its memory gives the address {address:#x}, which is on no GPU")]
    NotOnDevice {
        /// The tensor, as displayed.
        tensor: String,
        /// What it gives.
        address: u64,
    },
    /// A tensor's memory is on the engine's GPU, where the engine's context cannot access it.
    #[error(
        "tensor {tensor}: its memory at {address:#x} is on GPU {ordinal}, where the element's \
         context cannot access it; allocate it in the GPU's primary context \
         (cuDevicePrimaryCtxRetain), or attach the tensor in host memory"
    )]
    Inaccessible {
        /// The tensor, as displayed.
        tensor: String,
        /// Its address.
        address: u64,
        /// The number of the GPU.
        ordinal: u32,
    },
    /// A producer is at work on a tensor's memory, and nothing says where.
    #[error(
        "tensor {tensor}: its memory says that work on it is pending \
         (GST_CUDA_MEMORY_TRANSFER_NEED_SYNC), but neither its stream nor its context is known; \
         wait for that work before the buffer is pushed, or attach an event ({})",
        crate::device::READY_EVENT
    )]
    UnknownProducer {
        /// The tensor, as displayed.
        tensor: String,
    },
    /// The kernels came to an end without saying what came of it.
    #[error("the GPU ended its work without a result")]
    NoResult,
}

impl From<DriverError> for EngineError {
    fn from(error: DriverError) -> Self {
        Self::Device(error.into())
    }
}

impl EngineError {
    /// Whether the GPU is to blame, rather than what it was given.
    pub fn is_device_error(&self) -> bool {
        matches!(self, Self::Device(_) | Self::NoResult)
    }
}

/// Something that decodes and suppresses.
pub trait Engine: Send {
    /// The name by which `stats` shows it.
    fn name(&self) -> &'static str;

    /// Whether the engine can run this layout with these parameters. [`run`](Self::run) returns the
    /// same error.
    ///
    /// # Errors
    /// [`EngineError::Unsupported`] if it cannot.
    fn supports(&self, _layout: &Layout, _params: &Params) -> Result<(), EngineError> {
        Ok(())
    }

    /// Decodes `tensors` as `layout` says and suppresses as `params` say, each image of the batch by
    /// itself.
    ///
    /// # Errors
    /// If a tensor's memory cannot be read, if `layout` addresses a tensor or an element that does not
    /// exist, if the engine does not support the layout or the parameters, and if the GPU fails.
    fn run(
        &mut self,
        tensors: &[TensorView<'_>],
        layout: &Layout,
        params: &Params,
    ) -> Result<Outcome<'_>, EngineError>;

    /// The failure after which the engine went on without the GPU; told once.
    fn take_failure(&mut self) -> Option<&EngineError> {
        None
    }

    /// What the engine runs on, for a log, where it has come to be known since it was last told.
    fn take_description(&mut self) -> Option<String> {
        None
    }
}
