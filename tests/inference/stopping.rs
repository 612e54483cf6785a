// SPDX-License-Identifier: MIT OR Apache-2.0
//! Elements that share a model stop and flush while a frame waits for frames of the others, which go on.

use std::path::Path;
use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use gst::prelude::*;
use gstonnxruntime::inference::error::InferenceError;
use gstonnxruntime::inference::instance::{Instance, Interrupt, Member};
use gstonnxruntime::inference::provider::Provider;
use gstonnxruntime::inference::{CudaGraph, InferenceOptions};

use crate::element::{file, has_onnx_runtime, tensors};
use crate::frames::Picture;
use crate::support::onnx::{Element, OnnxModel, identity};
use crate::support::pipeline::{parse, watch};

/// Size of the frames and of the model's input.
const SIZE: [usize; 2] = [16, 12];

/// Longer than the test may take.
const BATCH_TIMEOUT: Duration = Duration::from_secs(3600);

fn model() -> OnnxModel {
    identity("n,3,12,16", Element::F32)
}

/// Panics if `act` has not returned after a minute.
fn returns(act: impl FnOnce() + Send + 'static) {
    let (done, has_returned) = mpsc::channel();
    let thread = thread::spawn(move || {
        act();
        let _ = done.send(());
    });
    if has_returned.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
        panic!("it waits for other elements' frames");
    }
    thread.join().unwrap();
}

/// A stream whose frames the test pushes.
struct Stream {
    pipeline: gst::Pipeline,
    source: gst::Element,
    /// The colors of the frames that left the element, as their tensors have them.
    seen: Arc<Mutex<Vec<Picture>>>,
    pushed: Mutex<usize>,
}

impl Stream {
    fn new(model: &Path, id: &str, streams: usize) -> Self {
        let pipeline = parse(&format!(
            "appsrc name=in format=time caps=video/x-raw,format=RGB,width=16,height=12,framerate=30/1
               ! ortinference name=inference provider=cpu range=0,255 model={} model-instance-id={id}
                 batch-size={streams} batch-timeout={}
               ! fakesink name=out sync=false async=false",
            model.display(),
            BATCH_TIMEOUT.as_millis(),
        ));
        let seen = watch(&pipeline, "inference", |buffer| {
            Picture::from_planes(&tensors(buffer).remove(0))
        });
        pipeline.set_state(gst::State::Playing).unwrap();
        let source = pipeline.by_name("in").unwrap();
        Self { pipeline, source, seen, pushed: Mutex::new(0) }
    }

    /// Pushes a frame with this color.
    fn push(&self, color: [u8; 3]) {
        let mut buffer = gst::Buffer::from_slice(color.repeat(SIZE[0] * SIZE[1]));
        let mut pushed = self.pushed.lock().unwrap();
        let pts = gst::ClockTime::from_mseconds(33 * *pushed as u64);
        buffer.get_mut().unwrap().set_pts(pts);
        *pushed += 1;
        let flow: gst::FlowReturn = self.source.emit_by_name("push-buffer", &[&buffer]);
        assert_eq!(flow, gst::FlowReturn::Ok);
    }

    /// Waits until this many frames have left the element, of which the last one has this color.
    fn has_sent(&self, frames: usize, color: [u8; 3]) {
        for _ in 0..6000 {
            if self.seen.lock().unwrap().len() >= frames {
                break;
            }
            thread::sleep(Duration::from_millis(10));
        }
        let seen = self.seen.lock().unwrap();
        assert_eq!(seen.len(), frames);
        assert_eq!(seen.last(), Some(&Picture::solid(SIZE, color)));
        let error = self.pipeline.bus().unwrap().pop_filtered(&[gst::MessageType::Error]);
        assert!(error.is_none(), "{error:?}");
    }

    fn stop(&self) {
        let pipeline = self.pipeline.clone();
        returns(move || assert!(pipeline.set_state(gst::State::Null).is_ok()));
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Makes streams that share a model, each with one frame that has left, so that batches wait for all of them.
fn streams<const N: usize>(model: &Path, id: &str) -> [Stream; N] {
    let streams = [(); N].map(|()| Stream::new(model, id, N));
    streams.iter().for_each(|stream| stream.push([1, 2, 3]));
    streams.iter().for_each(|stream| stream.has_sent(1, [1, 2, 3]));
    streams
}

/// Gives the element's thread time to begin to wait. A test also passes if it has not begun.
fn begin_to_wait() {
    thread::sleep(Duration::from_millis(100));
}

#[test]
fn an_element_whose_frame_waits_for_others_stops() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&model());
    let [waits, silent] = streams(&model, "stops");
    waits.push([4, 5, 6]);
    begin_to_wait();
    waits.stop();
    // The other stream is alone, and goes on.
    silent.push([7, 8, 9]);
    silent.has_sent(2, [7, 8, 9]);
}

#[test]
fn others_that_wait_in_the_batch_of_an_element_that_stops_go_on() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&model());
    let [stops, waits, silent] = streams(&model, "goes-on");
    stops.push([4, 5, 6]);
    waits.push([6, 5, 4]);
    begin_to_wait();
    stops.stop();
    waits.has_sent(2, [6, 5, 4]);
    waits.push([7, 8, 9]);
    silent.push([9, 8, 7]);
    waits.has_sent(3, [7, 8, 9]);
    silent.has_sent(2, [9, 8, 7]);
}

#[test]
fn a_flush_ends_the_wait_and_frames_after_it_share_batches_again() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&model());
    let [flushed, other] = streams(&model, "flushed");
    for round in 0..3 {
        flushed.push([4, 5, 6]);
        begin_to_wait();
        let source = flushed.source.clone();
        returns(move || {
            assert!(source.send_event(gst::event::FlushStart::new()));
            // Takes the lock of the streaming thread.
            assert!(source.send_event(gst::event::FlushStop::new(true)));
        });
        let before = flushed.seen.lock().unwrap().len();
        flushed.push([round, 8, 9]);
        other.push([round, 8, 7]);
        flushed.has_sent(before + 1, [round, 8, 9]);
        other.has_sent(2 + usize::from(round), [round, 8, 7]);
    }
}

#[test]
fn an_interrupted_element_enters_no_batch_until_the_interrupt_is_cleared() {
    if !has_onnx_runtime() {
        return;
    }
    let model = file(&model());
    let options = InferenceOptions {
        instance_id: Some("interrupted".to_owned()),
        model: model.to_owned(),
        cuda_graph: CudaGraph::Off,
        batch: Some(2),
        batch_timeout: BATCH_TIMEOUT,
        ..InferenceOptions::default()
    };
    let instance = Instance::open(&options, Provider::Cpu).unwrap();
    let interrupt = Arc::<Interrupt>::default();
    let (one, other) =
        (Member::new(&instance, &interrupt), Member::new(&instance, &Arc::default()));
    let mut full = other.enter(2, 2).unwrap();
    let begins = Barrier::new(2);
    thread::scope(|scope| {
        let waits = scope.spawn(|| {
            begins.wait();
            one.enter(1, 1).map(drop)
        });
        begins.wait();
        thread::sleep(Duration::from_millis(50));
        interrupt.set();
        // The batch is still open and full.
        assert!(matches!(waits.join().unwrap(), Err(InferenceError::Interrupted)));
    });
    full.run(None).unwrap();
    assert!(matches!(one.enter(1, 1).map(drop), Err(InferenceError::Interrupted)));
    interrupt.clear();
    // Several runs for one frame: the interrupt comes between them.
    one.enter(3, 3).unwrap().run(None).unwrap();
    let mut rest = one.enter(1, 3).unwrap();
    interrupt.set();
    assert_eq!(rest.run(None).unwrap().pictures, 1);
}
