// SPDX-License-Identifier: MIT OR Apache-2.0
//! The result of a run: the survivors of each group, and the work on a GPU.

use std::time::Duration;

use super::masks::{MaskPlace, MaskPlaces, Masks};
use super::{Detection, Job};
use crate::decoder::Layout;

/// The result of a run: one [`GroupOutcome`] per group of images, in the order of groups.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// The name of the engine that ran.
    pub engine: &'static str,
    pub(super) groups: &'a [GroupCounts],
    /// The survivors of all groups; [`GroupCounts::first`] is an index into them.
    pub(super) detections: &'a [Detection],
    /// The rows of columns of all detections. Each row has `column_components` numbers.
    pub(super) columns: &'a [f32],
    /// The number of components in each survivor's columns.
    pub column_components: usize,
    /// The masks of all survivors; [`GroupCounts::first_mask`] is an index into them.
    pub(super) mask_places: &'a [MaskPlace],
    /// The memory of all masks.
    pub(super) mask_bytes: &'a [u8],
    /// The number of anchors of an image.
    pub(super) anchors: usize,
    /// The work that was done on a GPU.
    pub device: DeviceWork,
}

/// Results in host memory; the buffers are reused.
#[derive(Debug, Default)]
pub(super) struct HostResults {
    pub groups: Vec<GroupCounts>,
    /// The survivors of all groups.
    pub survivors: Vec<Detection>,
    /// The columns of all survivors.
    pub columns: Vec<f32>,
    pub masks: MaskPlaces,
    pub mask_bytes: Vec<u8>,
}

impl HostResults {
    /// Begins a run.
    pub fn begin(&mut self, job: Job<'_>) {
        self.groups.clear();
        self.survivors.clear();
        self.columns.clear();
        self.masks.begin(job);
        self.mask_bytes.clear();
    }

    /// The outcome of a run of the engine with this name.
    pub fn outcome(&self, engine: &'static str, layout: &Layout) -> Outcome<'_> {
        Outcome {
            engine,
            groups: &self.groups,
            detections: &self.survivors,
            columns: &self.columns,
            column_components: layout.column_components(),
            mask_places: &self.masks.places,
            mask_bytes: &self.mask_bytes,
            anchors: layout.anchors(),
            device: DeviceWork::default(),
        }
    }
}

/// The result for the images of a group.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct GroupOutcome<'a> {
    /// The surviving detections, in descending rank.
    pub survivors: &'a [Detection],
    /// The components of the layout's columns, one row per survivor. Empty if there are no columns.
    pub columns: &'a [f32],
    /// The masks of the survivors.
    pub masks: Masks<'a>,
    /// The number of anchors, or of pairs with [`Params::multi_label`](super::Params::multi_label), that became candidates, before
    /// [`Params::max_candidates`](super::Params::max_candidates) was applied.
    pub candidates: usize,
    /// The number of anchors, or of pairs, that were rejected for invalid values or for a box outside
    /// [`ImagePlace::visible`](super::ImagePlace::visible).
    pub rejected: usize,
}

/// The counts of a group, and the index of its first survivor.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GroupCounts {
    /// The index of the first survivor in [`Outcome::detections`].
    pub first: usize,
    /// The index of the first survivor in [`Outcome::mask_places`].
    pub first_mask: usize,
    pub survivors: usize,
    pub candidates: usize,
    pub rejected: usize,
}

impl<'a> Outcome<'a> {
    /// The groups, in their order.
    pub fn groups(&self) -> impl ExactSizeIterator<Item = GroupOutcome<'a>> {
        let outcome = *self;
        self.groups.iter().map(move |counts| outcome.group_of(counts))
    }

    /// The group with this number.
    ///
    /// # Panics
    /// Panics if the run had no such group.
    pub fn group(&self, index: usize) -> GroupOutcome<'a> {
        self.group_of(&self.groups[index])
    }

    /// The index of a survivor's image among the images of its group.
    pub fn image_of(&self, survivor: &Detection) -> usize {
        survivor.anchor as usize / self.anchors
    }

    fn group_of(&self, counts: &GroupCounts) -> GroupOutcome<'a> {
        let &GroupCounts { first, first_mask, survivors, candidates, rejected } = counts;
        let end = first + survivors;
        let width = self.column_components;
        let places = match self.mask_places {
            [] => &[],
            places => &places[first_mask..first_mask + survivors],
        };
        GroupOutcome {
            survivors: &self.detections[first..end],
            columns: &self.columns[first * width..end * width],
            masks: Masks::new(places, self.mask_bytes),
            candidates,
            rejected,
        }
    }
}

/// The work of a run on a GPU; all fields are zero if the run was on the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceWork {
    /// Bytes copied to the GPU. They include tensors in host memory. Values are copied again only
    /// if they changed: thresholds by class, rules of classes (20 for each class), tables of the
    /// addresses of images (8 for each image), and two tables of places. Places of boxes take 96
    /// for each image, and are omitted if all places are equal, every image is a separate group, and
    /// no boxes at edges are dropped or lowered. Places of masks take 64 for each image of a model with masks, and are omitted if all places
    /// are equal.
    pub bytes_uploaded: u64,
    /// Bytes copied from the GPU in each launch: 32 for the counts of each group, 28 for each
    /// survivor, and the bytes of columns and masks. Survivors beyond [`ClassRule::max_detections`](super::ClassRule::max_detections)
    /// are copied, too.
    pub bytes_downloaded: u64,
    /// The part of the downloaded bytes that is columns: 4 for each component of a survivor.
    pub column_bytes_downloaded: u64,
    /// The part of the downloaded bytes that is masks: a bit for each pixel, with rows padded to
    /// bytes and masks to 4 bytes.
    pub mask_bytes_downloaded: u64,
    /// Graph launches, each running all kernels: one per run, or two if the candidates exceeded
    /// their memory.
    pub launches: u64,
    /// The greatest dependency depth of a decision, over all groups.
    pub rounds: u64,
    /// The time from the start of the first kernel to the end of the last kernel, by the GPU's global timer,
    /// whose resolution is about a microsecond on some GPUs.
    pub time: Duration,
}

impl std::ops::AddAssign for DeviceWork {
    fn add_assign(&mut self, other: Self) {
        self.bytes_uploaded += other.bytes_uploaded;
        self.bytes_downloaded += other.bytes_downloaded;
        self.column_bytes_downloaded += other.column_bytes_downloaded;
        self.mask_bytes_downloaded += other.mask_bytes_downloaded;
        self.launches += other.launches;
        self.rounds += other.rounds;
        self.time += other.time;
    }
}
