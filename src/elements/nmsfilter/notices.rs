// SPDX-License-Identifier: MIT OR Apache-2.0
//! Notices of input and settings that can be processed but are probably a mistake.
//!
//! In: what readings and settings have to tell; tensors, regions and counts of a frame. Out: element warnings, one of
//! each kind.

use std::collections::HashSet;
use std::fmt;
use std::mem::{Discriminant, discriminant};

use super::CAT;
use super::NmsFilter;
use super::enums::{Attach, NmsFilterLetterbox};
use super::setting_notices::SettingNotice;
use super::settings::Settings;
use super::words::phrase;
use crate::deepstream::region::REGION_LAYOUTS;
use crate::deepstream::structures::Assumption;
use crate::input::MAX_TENSORS;
use crate::input::deepstream::{Batch, Elsewhere, OutsideObject};
use crate::input::selection::{Selection, Sets};
use nmsfilter_core::reading::{Notice, NoticeKind};
use nmsfilter_core::tensor::MAX_DIMENSIONS;

/// A kind of notice, of which one is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    /// Of the core.
    Reading(NoticeKind),
    Setting(Discriminant<SettingNotice>),
    UnreadTensors,
    RepeatedRegion,
    RepeatedClasses,
    OtherInference,
    /// There were other sets of tensors than the selected one.
    OtherSets,
    TensorsElsewhere,
    ObjectOutside,
    UnknownVersion,
    UnknownModelSize,
    UnknownLetterbox,
    SizeOfCaps,
    ObjectsOfNvinfer,
    /// `max-detections` has this value, and is reached.
    MaxDetections(usize),
}

/// The notices that were posted since the element started.
#[derive(Debug, Default)]
pub(super) struct Notices {
    posted: HashSet<Kind>,
    /// Tensors that are present when the selected ones are missing, as part of a message.
    missing_set: Option<String>,
}

impl Notices {
    /// Posts a warning, unless there was one of this kind.
    fn post(
        &mut self,
        element: &NmsFilter,
        kind: Kind,
        code: impl gst::MessageErrorDomain,
        text: fmt::Arguments<'_>,
    ) {
        if self.posted.insert(kind) {
            gst::element_warning!(element, code, ("{text}"));
        }
    }

    /// Warns of unusual facts about a batch of DeepStream.
    pub fn batch(&mut self, element: &NmsFilter, batch: &Batch<'_>, settings: &Settings) {
        self.unknown_version(element, batch);
        self.unread_tensors(element, (batch.layers(), batch.found.unread));
        self.other_inference(element, batch, settings.unique_id);
        self.tensors_elsewhere(element, batch);
        self.object_outside(element, batch);
        self.size_of_caps(element, batch);
        if settings.model_width == 0 {
            self.unknown_model_size(element, batch);
        }
        self.objects_of_nvinfer(element, settings);
        if settings.letterbox == NmsFilterLetterbox::Auto && !batch.images().is_empty() {
            self.unknown_letterbox(element, batch);
        }
    }

    /// Posts what a reading has to tell.
    pub fn of_reading(&mut self, element: &NmsFilter, notices: Vec<Notice>) {
        for notice in notices {
            let (kind, text) = (Kind::Reading(notice.kind()), phrase(&notice));
            let text = format_args!("{text}");
            if notice.is_of_settings() {
                self.post(element, kind, gst::LibraryError::Settings, text);
            } else {
                self.post(element, kind, gst::StreamError::Format, text);
            }
        }
    }

    /// Posts contradictions of settings.
    pub fn of_settings(
        &mut self,
        element: &NmsFilter,
        notices: impl Iterator<Item = SettingNotice>,
    ) {
        for notice in notices {
            let kind = Kind::Setting(discriminant(&notice));
            self.post(element, kind, gst::LibraryError::Settings, format_args!("{notice}"));
        }
    }

    /// Warns if tensors of the buffer are not read.
    pub fn unread_tensors(&mut self, element: &NmsFilter, (read, unread): (usize, usize)) {
        if unread == 0 {
            return;
        }
        self.post(element, Kind::UnreadTensors, gst::StreamError::Format, format_args!("the buffer carries {} tensors, of which {read} are read: at most {MAX_TENSORS}, each \
                 of at most {MAX_DIMENSIONS} dimensions; attach the detector's tensors alone, or first",
                read + unread));
    }

    /// Warns if the buffer already has the best region, which is about to be attached. Once the warning is
    /// posted, this is not checked any more.
    pub fn repeated_region(&mut self, element: &NmsFilter, is_attached: impl FnOnce() -> bool) {
        if self.posted.contains(&Kind::RepeatedRegion) || !is_attached() {
            return;
        }
        self.post(
            element,
            Kind::RepeatedRegion,
            gst::StreamError::Format,
            format_args!(
                "the buffer already carries the best region that is about to be attached, so all \
                 regions may be attached twice; if an nmsfilter upstream has read the same \
                 tensors, set keep-tensors=false on that one"
            ),
        );
    }

    /// Warns if the buffer already has the classes that are about to be attached. Once the warning is posted, this is not
    /// checked any more.
    pub fn repeated_classes(&mut self, element: &NmsFilter, is_attached: impl FnOnce() -> bool) {
        if self.posted.contains(&Kind::RepeatedClasses) || !is_attached() {
            return;
        }
        self.post(
            element,
            Kind::RepeatedClasses,
            gst::StreamError::Format,
            format_args!("an object already has the class that is about to be attached, with the same score, so all classes may be \
                 attached twice; if an nmsfilter upstream has read the same tensors, remove one of the two, or set \
                 keep-tensors=false on that one: an nmsfilter reads all outputs of a classifier")
        );
    }

    /// Warns if no set of tensors is selected and the buffer has several. If the selected set is
    /// missing, the warning [`no_tensors`](Self::no_tensors) says so.
    pub fn other_sets(&mut self, element: &NmsFilter, selection: &Selection, sets: &Sets<'_>) {
        let is_first = *selection == Selection::First;
        let is_as_expected =
            if is_first { sets.len() < 2 } else { sets.is_empty() || sets.has(selection) };
        if is_as_expected {
            return;
        }
        if !is_first {
            self.missing_set.get_or_insert_with(|| {
                format!(
                    " of the inference element {selection}, so nothing is detected; there are those of {sets}: \
                     set tensors-from to one of these numbers or names"
                )
            });
            return;
        }
        self.post(element, Kind::OtherSets, gst::StreamError::Format, format_args!("the frames carry tensors of {} inference elements: {sets}; those of 0 are decoded: set \
                 tensors-from to the number or the name of the one to decode",
                sets.len()));
    }

    /// The warning that no buffer of a period had tensors to decode; `None` if a warning about
    /// DeepStream's tensors has explained it.
    pub fn no_tensors(&self, period: &str) -> Option<String> {
        let explained = [Kind::OtherInference, Kind::TensorsElsewhere];
        if explained.iter().any(|warning| self.posted.contains(warning)) {
            return None;
        }
        let found = self.missing_set.as_deref().unwrap_or(
            ", so nothing is detected; place nmsfilter directly downstream of the inference element: \
             elements that write a new picture drop the tensors, such as videoconvert, videoscale, \
             videocrop and videoflip",
        );
        Some(format!("no buffer of the {period} carried tensors{found}"))
    }

    /// Warns if a batch has tensors of an inference element that are not read, although none was selected. If the
    /// selected one has none, that is part of the warning [`no_tensors`](Self::no_tensors): frames without an object
    /// have no tensors of a model that runs on objects.
    fn other_inference(&mut self, element: &NmsFilter, batch: &Batch<'_>, selected: u32) {
        let Some(other) = batch.found.other_id else { return };
        let read = batch.found.unique_id;
        if selected != 0 {
            if batch.images().is_empty() && self.missing_set.is_none() {
                self.missing_set = Some(format!(
                    " of the inference element {read}, so nothing is detected; there are tensors of {other}, none of \
                     {read}: set unique-id to {other}, or to 0; if {read} runs on objects, there were none"
                ));
            }
            return;
        }
        self.post(element, Kind::OtherInference, gst::StreamError::Format, format_args!("the frames carry tensors of more than one inference element, {read} and {other}; those \
                 of {read} are decoded: set unique-id to the one to decode"));
    }

    /// Warns if there are only tensors that are not selected or cannot be read.
    fn tensors_elsewhere(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        let Some(elsewhere) = batch.found.elsewhere else { return };
        if self.posted.contains(&Kind::TensorsElsewhere) {
            return;
        }
        let text = match elsewhere {
            Elsewhere::Objects(id) => format!(
                "the tensors are attached to objects, and without unique-id only those of frames are decoded; set \
                 unique-id={id} if the model of the inference element {id} is a detector: the outputs of a \
                 classifier (network-type=1) have no boxes"
            ),
            Elsewhere::Regions(id) => format!(
                "the tensors are attached to regions of interest, and without unique-id only those of frames are \
                 decoded; set unique-id={id}"
            ),
            Elsewhere::UnknownRegions => format!(
                "the tensors are attached to regions of interest, whose structures are known for DeepStream {} to {}, not \
                 for {}; set input-tensor-meta=0 in nvinfer's configuration",
                REGION_LAYOUTS[0].first,
                REGION_LAYOUTS[REGION_LAYOUTS.len() - 1].last,
                batch.version()
            ),
        };
        let text = format_args!("{text}");
        self.post(element, Kind::TensorsElsewhere, gst::StreamError::Format, text);
    }

    /// Warns if the tensors of an object are not decoded, because the part of the frame that they are of is not known.
    fn object_outside(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        let Some(OutsideObject { rect, frame }) = batch.found.outside else { return };
        let [left, top, width, height] = rect;
        self.post(element, Kind::ObjectOutside, gst::StreamError::Format, format_args!("an object or region at {left},{top} of {width}x{height} pixels is not inside its frame of {}x{}, or has less \
                 than 2x2 pixels there; its tensors are not decoded, because the picture that nvinfer cut out is not \
                 known: place nmsfilter directly downstream of nvinfer, before elements that move objects",
                frame[0],
                frame[1]));
    }

    /// Warns if the structures of DeepStream are recognized by their sizes only.
    fn unknown_version(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        let Some((assumption, layout)) = batch.assumption() else { return };
        let (version, versions) = (batch.version(), layout.versions());
        let (kind, code) = (Kind::UnknownVersion, gst::LibraryError::Settings);
        match assumption {
            Assumption::UnknownVersion => self.post(
                element,
                kind,
                code,
                format_args!(
                    "this plugin does not know DeepStream {version}; its structures have the sizes of {versions} and are \
                     read as such: compare the boxes with the picture; if they are right, set deepstream-version={}, \
                     otherwise use a newer plugin",
                    layout.last
                ),
            ),
            Assumption::NoVersion => self.post(
                element,
                kind,
                code,
                format_args!(
                    "DeepStream's libraries do not have nvds_version; the structures have the sizes of {versions} and \
                     are read as such: set deepstream-version to the version that is installed"
                ),
            ),
        }
    }

    /// Warns if nothing contains the size of the model's input.
    fn unknown_model_size(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        if !batch.has_no_model_size() {
            return;
        }
        self.post(element, Kind::UnknownModelSize, gst::StreamError::Format, format_args!("the tensors do not contain the size of the model's input, because nvinfer up to DeepStream 7.1 does not \
              copy it with a buffer: set model-width, model-height and letterbox, or place nmsfilter before the \
              element that copies buffers"));
    }

    /// Warns if nvinfer attaches objects beside those that are about to be attached.
    fn objects_of_nvinfer(&mut self, element: &NmsFilter, settings: &Settings) {
        let is_double = settings.nvinfer.as_ref().is_some_and(|config| config.attaches_objects)
            && settings.attach.contains(Attach::NVDS);
        if !is_double {
            return;
        }
        self.post(element, Kind::ObjectsOfNvinfer, gst::LibraryError::Settings, format_args!("with this network-type nvinfer attaches objects of its own beside those of nmsfilter; set \
                 network-type=100 in its configuration"));
    }

    /// Warns if `letterbox=auto` does not know the letterbox, because the tensors do not contain all of it.
    fn unknown_letterbox(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        let Some(problem) = batch.letterbox_problem() else { return };
        self.post(
            element,
            Kind::UnknownLetterbox,
            gst::LibraryError::Settings,
            format_args!("{problem}"),
        );
    }

    /// Warns if a batch of several frames has frames whose only known size is in the caps, which describe one source.
    fn size_of_caps(&mut self, element: &NmsFilter, batch: &Batch<'_>) {
        let Some([width, height]) = batch.found.size_of_caps else { return };
        if batch.found.all_frames < 2 {
            return;
        }
        self.post(element, Kind::SizeOfCaps, gst::StreamError::Format, format_args!("the frames of the batch have no sizes of their own, and that of the caps, {width}x{height}, is \
                 used for all; if sources have other sizes, keep the frames in NVMM memory up to nmsfilter, or \
                 set width and height of nvstreammux"));
    }

    /// Reports that `max-detections` is reached: as a warning if it has its default value,
    /// otherwise in the log.
    pub fn max_detections(&mut self, element: &NmsFilter, limit: usize, survivors: usize) {
        if limit == 0 || survivors < limit {
            return;
        }
        let kind = Kind::MaxDetections(limit);
        if limit != Settings::default().scalars.max_detections {
            if self.posted.insert(kind) {
                gst::info!(CAT, obj = element, "max-detections={limit} is reached");
            }
            return;
        }
        self.post(
            element,
            kind,
            gst::StreamError::Decode,
            format_args!(
                "a frame has {limit} detections or more, and only the best {limit} are attached, \
                 which is the default of max-detections; set max-detections to a larger number, \
                 or to 0 for all"
            ),
        );
    }
}
