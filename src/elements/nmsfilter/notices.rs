// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices of input and settings that can be processed but are probably a mistake.
//!
//! In: what readings and settings have to tell; tensors, regions and counts of a frame. Out: element warnings, one of
//! each kind, with the texts of [`ElementNotice`] and of the core.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::time::Duration;

use gst_newer::Capabilities;

use super::CAT;
use super::NmsFilter;
use super::clock::SECOND;
use super::enums::NmsFilterLetterbox;
use super::settings::Settings;
use super::words::{self, ElementNotice};
use crate::deepstream::structures::{Assumption, Structures};
use crate::input::deepstream::{Batch, Elsewhere};
use crate::input::selection::{Selection, Sets};
use crate::output::{Kinds, Labels};
use nmsfilter_core::geometry::Letterbox;
use nmsfilter_core::reading::{Notice, NoticeKind};

/// The notices that were posted since the element started, one of each kind.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// The element's own.
    posted: HashSet<Discriminant<ElementNotice>>,
    posted_of_readings: HashSet<NoticeKind>,
    /// The selected tensors, if they were missing where there were others, and what to do.
    missing: Option<String>,
    /// True if a notice has said why no tensors are decoded.
    is_missing_explained: bool,
    watch: TensorWatch,
}

/// Detects that the first second of the stream, or all of a shorter stream, has no tensors.
#[derive(Debug, Default)]
enum TensorWatch {
    #[default]
    NotStarted,
    /// No frame since the first one had tensors. The time is of the first frame, or of the segment's first.
    Missing(Option<Duration>),
    /// A frame had tensors, or the notice has been posted.
    Done,
}

impl Notices {
    /// Posts those of which none was posted.
    pub fn post(&mut self, element: &NmsFilter, notices: impl IntoIterator<Item = ElementNotice>) {
        for notice in notices {
            if !self.posted.insert(discriminant(&notice)) {
                continue;
            }
            self.is_missing_explained |= notice.explains_missing_tensors();
            match notice {
                ElementNotice::Limit { .. } => gst::info!(CAT, obj = element, "{notice}"),
                ElementNotice::DefaultLimit { .. } => {
                    gst::element_warning!(element, gst::StreamError::Decode, ("{notice}"));
                }
                _ => warn(element, &notice.to_string(), notice.is_of_settings()),
            }
        }
    }

    /// Posts a notice if it is true. Once it is posted, that is not checked any more.
    pub fn post_if(
        &mut self,
        element: &NmsFilter,
        notice: ElementNotice,
        is_true: impl FnOnce() -> bool,
    ) {
        if !self.is_posted(&notice) && is_true() {
            self.post(element, Some(notice));
        }
    }

    /// Posts what a reading has to tell.
    pub fn of_reading(&mut self, element: &NmsFilter, notices: Vec<Notice>, labels: &mut Labels) {
        for notice in notices {
            if self.posted_of_readings.insert(notice.kind()) {
                warn(element, &words::of_notice(&notice, labels), notice.is_of_settings());
            }
        }
    }

    /// Posts unusual facts about a batch of DeepStream.
    pub fn batch(&mut self, element: &NmsFilter, batch: &Batch<'_>, settings: &Settings) {
        if let (Some(other), true) = (batch.found.other_id, batch.images.is_empty())
            && settings.unique_id != 0
        {
            let id = batch.found.unique_id;
            self.missing.get_or_insert_with(|| {
                format!(
                    " of the inference element {id}, so nothing is detected; there are tensors of {other}, none of {id}: set \
                     unique-id to {other}, or to 0; if {id} runs on objects, there were none"
                )
            });
        }
        self.post(element, of_batch(batch, settings));
    }

    /// Posts a notice if no set of tensors is selected and the buffer has several. If the selected set is missing,
    /// [`no_tensors`](Self::no_tensors) says so.
    pub fn other_sets(&mut self, element: &NmsFilter, selection: &Selection, sets: &Sets<'_>) {
        if *selection != Selection::First {
            if !sets.0.is_empty() && sets.find(selection).is_none() {
                self.missing.get_or_insert_with(|| {
                    format!(
                        " of the inference element {selection}, so nothing is detected; there are those of {sets}: set \
                         tensors-from to one of these numbers or names"
                    )
                });
            }
            return;
        }
        let of = |text| ElementNotice::OtherSets { count: sets.0.len(), sets: text };
        if sets.0.len() > 1 && !self.is_posted(&of(String::new())) {
            self.post(element, Some(of(sets.to_string())));
        }
    }

    /// Notes that a buffer had tensors.
    pub fn set_has_tensors(&mut self) {
        self.watch = TensorWatch::Done;
    }

    /// Notes that the buffer of this time had no tensors. Posts a notice once, if the first second of the stream had none.
    pub fn without_tensors(&mut self, element: &NmsFilter, now: Duration) {
        let since = match self.watch {
            TensorWatch::Missing(Some(since)) => since,
            TensorWatch::NotStarted | TensorWatch::Missing(None) => now,
            TensorWatch::Done => return,
        };
        self.watch = TensorWatch::Missing(Some(since));
        if now - since >= SECOND {
            self.no_tensors(element, "first second");
        }
    }

    /// The first second begins again, because of a seek.
    pub fn restart_clock(&mut self) {
        if let TensorWatch::Missing(since) = &mut self.watch {
            *since = None;
        }
    }

    /// Posts a notice at the end of a stream that is shorter than a second and had no tensors.
    pub fn finish(&mut self, element: &NmsFilter) {
        if let TensorWatch::Missing(_) = self.watch {
            self.no_tensors(element, "stream");
        }
    }

    /// Posts that no buffer of a period had tensors to decode, unless another notice has explained it.
    fn no_tensors(&mut self, element: &NmsFilter, period: &'static str) {
        self.watch = TensorWatch::Done;
        if self.is_missing_explained {
            return;
        }
        let missing = self.missing.take().unwrap_or_else(|| {
            let without = Capabilities::get().tensors.err().map(|missing| {
                format!("; {missing}: tensors of GStreamer's own inference elements cannot be read")
            });
            format!(
                ", so nothing is detected; place nmsfilter directly downstream of the inference element: elements that write \
                 a new picture drop the tensors, such as videoconvert, videoscale, videocrop and videoflip{}",
                without.unwrap_or_default()
            )
        });
        self.post(element, Some(ElementNotice::NoTensors { period, missing }));
    }

    fn is_posted(&self, notice: &ElementNotice) -> bool {
        self.posted.contains(&discriminant(notice))
    }
}

fn warn(element: &NmsFilter, text: &str, is_of_settings: bool) {
    if is_of_settings {
        gst::element_warning!(element, gst::LibraryError::Settings, ("{text}"));
    } else {
        gst::element_warning!(element, gst::StreamError::Format, ("{text}"));
    }
}

/// The notice that tensors of the buffer are not read.
pub(super) fn of_unread((read, unread): (usize, usize)) -> Option<ElementNotice> {
    (unread > 0).then_some(ElementNotice::UnreadTensors { read, unread })
}

/// The notice that `max-detections` is reached.
pub(super) fn of_limit(limit: usize, survivors: usize) -> Option<ElementNotice> {
    let is_default = || limit == Settings::default().scalars.max_detections;
    (limit > 0 && survivors >= limit).then(|| match is_default() {
        true => ElementNotice::DefaultLimit { limit },
        false => ElementNotice::Limit { limit },
    })
}

fn of_batch(batch: &Batch<'_>, settings: &Settings) -> impl Iterator<Item = ElementNotice> {
    let (found, &Structures { version, layout, assumption }) =
        (&batch.found, batch.meta.structures);
    let structures = assumption.map(|assumption| match assumption {
        Assumption::UnknownVersion => ElementNotice::UnknownVersion { version, layout },
        Assumption::NoVersion => ElementNotice::NoVersion { layout },
    });
    // If the selected element has none, [`Notices::no_tensors`] says so: frames without an object have no tensors of a
    // model that runs on objects.
    let other = found.other_id.filter(|_| settings.unique_id == 0);
    let elsewhere = found.elsewhere.map(|elsewhere| match elsewhere {
        Elsewhere::Objects(id) => ElementNotice::OnObjects { id },
        Elsewhere::Regions(id) => ElementNotice::OnRegions { id },
        Elsewhere::UnknownRegions => ElementNotice::OnUnknownRegions { version },
    });
    let has_no_size = settings.model_width == 0 && batch.has_no_model_size();
    let attaches_twice = settings.nvinfer.as_ref().is_some_and(|config| config.attaches_objects())
        && settings.attach.contains(Kinds::NVDS);
    let is_auto = settings.letterbox == NmsFilterLetterbox::Auto;
    let letterbox = batch.assumed_letterbox().filter(|_| is_auto).map(|assumed| match assumed {
        Letterbox::None => ElementNotice::UnknownAspectRatio,
        _ => ElementNotice::UnknownPadding,
    });
    [
        structures,
        of_unread((batch.layers.len(), found.unread)),
        other.map(|other| ElementNotice::OtherInference { read: found.unique_id, other }),
        elsewhere,
        found.outside.map(ElementNotice::ObjectOutside),
        // The caps describe one source.
        found.size_of_caps.filter(|_| found.all_frames > 1).map(ElementNotice::SizeOfCaps),
        has_no_size.then_some(ElementNotice::UnknownModelSize),
        attaches_twice.then_some(ElementNotice::ObjectsOfNvinfer),
        letterbox,
    ]
    .into_iter()
    .flatten()
}
