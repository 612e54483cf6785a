// SPDX-License-Identifier: MIT OR Apache-2.0
//! The reader of batches of GStreamer's analytics library: several streams on one buffer, as `GstAnalyticsBatchMeta`
//! (1.28 and later).
//!
//! In: a buffer of `analyticscombiner`, or of DL Streamer's `gvastreammux` with `output-mode=container`. Out: the frames
//! of its streams, each with the number and the caps of its stream.
//!
//! The buffer has no memory. For each stream it has the sticky events that are in force, and objects in their order:
//! buffers, lists of buffers, and the serialized events between them. Objects can have further references, for example
//! where a tee is upstream; who changes a frame changes a copy then.

use gst_newer::AnalyticsBatchMeta;

/// The media type of buffers that hold a batch of frames.
const MEDIA_TYPE: &str = "multistream/x-analytics-batch";

/// The caps of batches of any streams.
pub fn any_batch() -> gst::Caps {
    gst::Caps::builder(MEDIA_TYPE).features(["meta:GstAnalyticsBatchMeta"]).build()
}

/// Returns true if these are caps of batches. A frame can have the metadata, too: with the caps of video, it only has
/// the number of its stream.
pub fn is_batch(caps: &gst::CapsRef) -> bool {
    caps.structure(0).is_some_and(|structure| structure.name() == MEDIA_TYPE)
}

/// The caps of each stream, as far as the caps of batches have them.
pub fn streams(caps: &gst::CapsRef) -> Vec<gst::Caps> {
    let streams = caps.structure(0).and_then(|caps| caps.get::<gst::Array>("streams").ok());
    let values = streams.iter().flat_map(|streams| streams.iter());
    values.filter_map(|value| value.get::<Option<gst::Caps>>().ok()?).collect()
}

/// A buffer of a stream of raw video.
pub struct StreamFrame<'a> {
    /// The number of its stream.
    pub stream: u32,
    /// The caps of the stream; `None` if the batch has none.
    pub caps: Option<&'a gst::CapsRef>,
    buffer: Position<'a>,
}

/// The position of a buffer among the objects of a stream.
enum Position<'a> {
    Object(&'a mut gst::Buffer),
    List(&'a mut gst::BufferList, usize),
}

impl StreamFrame<'_> {
    /// The buffer, to read.
    pub fn buffer(&self) -> &gst::BufferRef {
        match &self.buffer {
            Position::Object(buffer) => buffer,
            Position::List(list, index) => list.get(*index).expect("the list is that long"),
        }
    }

    /// The buffer, to write: a copy takes its place in the batch if it has other references.
    pub fn make_mut(&mut self) -> &mut gst::BufferRef {
        match &mut self.buffer {
            Position::Object(buffer) => buffer.make_mut(),
            Position::List(list, index) => {
                list.make_mut().get_mut(*index).expect("the list is that long")
            }
        }
    }
}

/// A buffer of a stream of raw video, to read.
pub struct FrameToRead<'m> {
    /// The number of its stream.
    pub stream: u32,
    /// The caps of the stream; `None` if the batch has none.
    pub caps: Option<gst::Caps>,
    /// The buffer.
    pub buffer: &'m gst::BufferRef,
}

/// The frames of the batch, in the order of [`try_for_each_frame`]. Does not allocate.
pub fn frames(batch: &AnalyticsBatchMeta) -> impl Iterator<Item = FrameToRead<'_>> {
    batch.streams().iter().flat_map(|of_stream| {
        let stream = of_stream.index();
        let mut caps = of_stream.caps();
        of_stream.objects().iter().flat_map(move |object| {
            if let Some(event) = object.downcast_ref::<gst::Event>()
                && let gst::EventView::Caps(event) = event.view()
            {
                caps = Some(event.caps_owned());
            }
            let is_frame = caps.as_deref().is_none_or(is_raw_video);
            let one = object.downcast_ref::<gst::Buffer>().filter(|_| is_frame);
            let list = object.downcast_ref::<gst::BufferList>().filter(|_| is_frame);
            let one = one.into_iter().map(|buffer| buffer.as_ref());
            let caps = caps.clone();
            one.chain(list.into_iter().flat_map(|list| list.iter()))
                .map(move |buffer| FrameToRead { stream, caps: caps.clone(), buffer })
        })
    })
}

/// The number of frames of the batch on `buffer`.
pub fn frame_count(buffer: &gst::BufferRef) -> usize {
    buffer.meta::<AnalyticsBatchMeta>().map_or(0, |batch| frames(&batch).count())
}

/// Calls `process` for each frame of the batch on `buffer`, in the order of the streams and of their objects. Streams of
/// other media, and events, are left as they are. Does not allocate.
///
/// # Errors
/// The first of `process`, after which no other frame is processed.
pub fn try_for_each_frame<E>(
    buffer: &mut gst::BufferRef,
    mut process: impl FnMut(StreamFrame<'_>) -> Result<(), E>,
) -> Result<(), E> {
    let Some(mut batch) = buffer.meta_mut::<AnalyticsBatchMeta>() else {
        return Ok(());
    };
    for of_stream in batch.streams_mut() {
        let stream = of_stream.index();
        let mut caps = of_stream.caps();
        for object in of_stream.objects_mut() {
            if let Some(event) = object.downcast_ref::<gst::Event>() {
                if let gst::EventView::Caps(event) = event.view() {
                    caps = Some(event.caps_owned());
                }
                continue;
            }
            let caps = caps.as_deref();
            if !caps.is_none_or(is_raw_video) {
                continue;
            }
            if let Some(buffer) = object.downcast_mut::<gst::Buffer>() {
                process(StreamFrame { stream, caps, buffer: Position::Object(buffer) })?;
            } else if let Some(list) = object.downcast_mut::<gst::BufferList>() {
                for index in 0..list.len() {
                    process(StreamFrame { stream, caps, buffer: Position::List(list, index) })?;
                }
            }
        }
    }
    Ok(())
}

fn is_raw_video(caps: &gst::CapsRef) -> bool {
    caps.structure(0).is_some_and(|structure| structure.name() == "video/x-raw")
}
