// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzes `nmsfilter`, from properties to regions.
//!
//! In: properties, caps and tensors. The result of each frame must be as [`predict`] predicts.

use std::fs::File;
use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;

use gst::prelude::*;
use gst_video::VideoRegionOfInterestMeta;
use gstnmsfilter::input::{MAX_TENSORS, Tensors};

use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::harness::Harness;
use crate::metadata::{Attached, ForeignRegion};
use crate::overlay::Overlay;
use crate::predict::{self, Decoded, Expected, Known};
use crate::snapshot::Snapshot;
use crate::{Failure, caps, properties, tensors, watch};

const LABELS: [&str; 12] = [
    "person",
    "traffic light",
    "",
    "  ",
    "größe\u{1F600}",
    "\u{feff}face",
    "a\tb",
    "0",
    "person",
    "a label, with a comma",
    "65536",
    "\r",
];

/// Label file of a case.
static LABEL_FILE: LazyLock<PathBuf> = LazyLock::new(|| crate::replay::scratch("labels.txt"));

/// A FIFO that has no writer.
static FIFO: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = crate::replay::scratch("labels.fifo");
    let made = Command::new("mkfifo").arg(&path).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo can make {}", path.display());
    path
});

/// A sparse file that exceeds the maximum size of a label file by one byte.
static LARGE_FILE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = crate::replay::scratch("labels.large");
    let file = File::create(&path).expect("the scratch folder can be written to");
    file.set_len((4 << 20) + 1).expect("a file can be sparse");
    path
});

pub fn drive(bytes: &mut Bytes<'_>, counts: &mut Counts) -> Result<(), Failure> {
    let harness = Harness::new("nmsfilter");
    let weak = harness.element.downgrade();
    let mut run = Run {
        harness,
        labels: None,
        known: Known::default(),
        overlay: None,
        caps: None,
        stats: None,
    };
    if bytes.one_in(8) {
        run.label_file(bytes);
    }
    if !bytes.one_in(4) {
        run.harness.element.set_property_from_str("backend", "cpu");
    }
    for _ in 0..bytes.below(6) {
        set_property(bytes, &run.harness.element);
    }
    if !run.start(counts)? {
        // The element must start with these properties.
        run.correct_properties();
        run.labels = None;
        if !run.start(counts)? {
            return Err(Failure("it does not start after its properties were corrected".into()));
        }
    }
    if !bytes.one_in(32) {
        run.caps(caps::any(bytes), counts);
    }
    for _ in 0..1 + bytes.below(16) {
        run.between_frames(bytes, counts)?;
        run.frame(bytes, counts)?;
    }
    run.check_stats()?;
    drop(run);
    match weak.upgrade() {
        None => Ok(()),
        Some(_) => Err(Failure("the element is never freed".into())),
    }
}

fn set_property(bytes: &mut Bytes<'_>, element: &gst::Element) {
    watch::EXPECT_WARNINGS.store(true, Ordering::SeqCst);
    properties::set_one(bytes, element);
    watch::EXPECT_WARNINGS.store(false, Ordering::SeqCst);
}

/// An element, and the predicted state of the element.
struct Run {
    harness: Harness,
    /// Content of the label file, if there is one.
    labels: Option<Vec<u8>>,
    known: Known,
    overlay: Option<Overlay>,
    /// The last caps, if the element accepted them.
    caps: Option<gst::Caps>,
    /// Expected counts of `stats`. They are `None` if a frame since the start could not be
    /// predicted.
    stats: Option<[u64; 4]>,
}

impl Run {
    fn label_file(&mut self, bytes: &mut Bytes<'_>) {
        if bytes.one_in(16) {
            let path = match bytes.below(6) {
                0 => FIFO.to_str(),
                1 => LARGE_FILE.to_str(),
                _ => Some(bytes.pick(&["/dev/zero", "/dev/null", "/proc/self/mem", "/"])),
            };
            return self.harness.element.set_property("label-file", path);
        }
        let mut lines: Vec<&str> = (0..bytes.below(20)).map(|_| bytes.pick(&LABELS)).collect();
        if bytes.bool() {
            lines.push("");
        }
        let mut text = lines.join(bytes.pick(&["\n", "\n", "\r\n"])).into_bytes();
        match bytes.below(32) {
            1 | 2 => text.push(0xff),
            3 => text.push(0),
            4 | 5 => text.extend(b"\n \n\t\r\n"),
            6 | 7 => text = [&b"\xef\xbb\xbf"[..], &text].concat(),
            8 => text = [&b"\xff\xfe"[..], &text].concat(),
            _ => {}
        }
        std::fs::write(&*LABEL_FILE, &text).expect("the scratch folder can be written to");
        self.labels = Some(text);
        self.harness.element.set_property("label-file", LABEL_FILE.to_str());
    }

    /// Starts the element with its current properties. Returns true if it started.
    fn start(&mut self, counts: &mut Counts) -> Result<bool, Failure> {
        let element = &self.harness.element;
        let path = element.property::<Option<String>>("label-file");
        let labels = match &path {
            None => Some(Vec::new()),
            Some(path) if path.is_empty() => Some(Vec::new()),
            Some(path) if LABEL_FILE.to_str() == Some(path) => {
                self.labels.as_ref().and_then(|file| predict::labels(file))
            }
            Some(_) => None,
        };
        let settings = Snapshot::take(element);
        let must_refuse = predict::refuses_to_start(&settings, labels.is_some());
        let must_start = !must_refuse && settings.nick("backend") == "cpu";
        self.known = Known::new(&settings, labels.unwrap_or_default());
        self.caps = None;
        self.stats = Some([0; 4]);
        let started = self.harness.start();
        let errors = self.harness.errors();
        match (started, errors.first()) {
            (true, _) if must_refuse => {
                Err(Failure("it starts with properties that it must refuse".into()))
            }
            (false, error) if must_start => Err(Failure(format!("it does not start: {error:?}"))),
            (false, None) => Err(Failure("it does not start, and posts no error".into())),
            (true, Some(error)) => Err(Failure(format!("it starts with an error: {error}"))),
            (started, _) => {
                counts.one(if started { "filter: starts" } else { "filter: refuses to start" });
                if !started {
                    self.harness.stop(gst::State::Null);
                }
                Ok(started)
            }
        }
    }

    fn caps(&mut self, caps: gst::Caps, counts: &mut Counts) {
        let taken = self.harness.caps(&caps);
        counts.one(if taken { "filter: caps taken" } else { "filter: caps refused" });
        self.overlay = None;
        if taken {
            self.known.frame = predict::frame_size(&caps);
        }
        self.caps = taken.then_some(caps);
    }

    fn between_frames(
        &mut self,
        bytes: &mut Bytes<'_>,
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        if bytes.one_in(4) {
            // Several properties change at once, so that the settings differ in many ways from the
            // settings in force.
            for _ in 0..bytes.pick(&[1, 1, 2, 6]) {
                set_property(bytes, &self.harness.element);
            }
        }
        if self.caps.is_none() && bytes.bool() {
            self.caps(caps::video(bytes, &[64, 640, 100]), counts);
        }
        match bytes.below(64) {
            60 => self.caps(caps::any(bytes), counts),
            61 => {
                self.harness
                    .event(gst::event::Gap::new(gst::ClockTime::ZERO, gst::ClockTime::SECOND));
            }
            62 => {
                self.harness.flush();
                if let Some(caps) = self.caps.clone() {
                    self.caps(caps, counts);
                }
            }
            63 => self.restart(counts)?,
            _ => {}
        }
        Ok(())
    }

    /// Resets the properties that can change while frames pass to their defaults.
    fn reset_settings(&self) {
        let element = &self.harness.element;
        let snapshot = Snapshot::take(element);
        let all = snapshot.changed().filter(|name| !["backend", "label-file"].contains(name));
        for name in all {
            let spec = element.find_property(name).expect("the snapshot is of this element");
            element.set_property_from_value(name, spec.default_value());
        }
    }

    /// Sets all properties that could prevent a start to values with which the element must start.
    fn correct_properties(&self) {
        let element = &self.harness.element;
        element.set_property_from_str("backend", "cpu");
        element.set_property_from_str("decoder", "auto");
        element.set_property_from_str("attach", "roi");
        for name in ["label-file", "layout-file", "deepstream-version", "nvinfer-config"] {
            element.set_property(name, None::<String>);
        }
    }

    /// Stops the element and starts it again. It must work as before.
    fn restart(&mut self, counts: &mut Counts) -> Result<(), Failure> {
        let caps = self.caps.clone();
        self.check_stats()?;
        self.harness.stop(gst::State::Ready);
        if !self.start(counts)? {
            // A property that takes effect at the next start has a value that prevents the start.
            self.correct_properties();
            if !self.start(counts)? {
                return Err(Failure("it does not start again".into()));
            }
        }
        if let Some(caps) = caps {
            self.caps(caps, counts);
        }
        counts.one("filter: restarts");
        Ok(())
    }

    fn frame(&mut self, bytes: &mut Bytes<'_>, counts: &mut Counts) -> Result<(), Failure> {
        let attached: Vec<Attached> =
            tensors::any(bytes).into_iter().map(|spec| Attached::new(bytes, spec)).collect();
        let foreign: Vec<ForeignRegion> = if bytes.one_in(8) {
            (0..1 + bytes.below(3)).map(|_| ForeignRegion::new(bytes)).collect()
        } else {
            Vec::new()
        };
        let pts = bytes.pick(&[Some(0), None, Some(1_000_000_000), Some(u64::MAX - 1)]);
        let write = || {
            let mut buffer = gst::Buffer::new();
            let writable = buffer.make_mut();
            writable.set_pts(pts.map(gst::ClockTime::from_nseconds));
            foreign.iter().for_each(|region| region.write(writable));
            attached.iter().for_each(|tensor| tensor.write(writable));
            buffer
        };
        let settings = Snapshot::take(&self.harness.element);
        let expected = match self.caps {
            // Mapping a buffer changes it, so a second buffer is used.
            Some(_) => predict::frame(&settings, &mut self.known, &write()),
            None => Expected::Error("NotNegotiated".into()),
        };
        if bytes.one_in(4) {
            check_reader(&attached, &write())?;
        }

        let buffer = write();
        let kept = bytes.one_in(8).then(|| buffer.clone());
        let result = self.harness.push(buffer);
        let frame = Frame { expected, result, foreign: foreign.len() };
        counts.one("filter: frames");
        let checked = self.check(frame, counts);
        checked.map_err(|Failure(what)| {
            let attached: Vec<String> = attached.iter().map(|tensor| tensor.to_string()).collect();
            Failure(format!("{what}\n  of {attached:?}\n  with {settings:?}\n  {:?}", self.known))
        })?;
        if let Some(kept) = kept
            && kept.iter_meta::<VideoRegionOfInterestMeta>().count() != foreign.len()
        {
            return Err(Failure("a buffer that is referenced elsewhere was written to".into()));
        }
        let outputs = self.harness.take();
        if bytes.one_in(8) {
            self.draw(outputs, counts)?;
        }
        let has_failed = !self.harness.errors().is_empty();
        if has_failed && !bytes.one_in(8) {
            // Without the reset, most frames would end with this error.
            self.reset_settings();
        }
        if has_failed || bytes.one_in(64) {
            self.restart(counts)?;
        }
        Ok(())
    }

    fn check(&mut self, frame: Frame, counts: &mut Counts) -> Result<(), Failure> {
        let Frame { expected, result, foreign } = frame;
        let outputs = self.harness.out();
        let expect = |holds: bool, what: &str| {
            if holds {
                Ok(())
            } else {
                Err(Failure(format!("{what}: expected {expected:?}, result {result:?}")))
            }
        };
        let has_output = result.is_ok() && outputs.len() == 1;
        match &expected {
            Expected::Anything => {
                counts.one("filter: not predicted");
                self.stats = None;
                expect(result.is_err() || has_output, "a buffer is missing")
            }
            Expected::Error(kind) => {
                counts.one(format!("filter: error: {kind}"));
                expect(result.is_err(), "there is no error")?;
                expect(outputs.is_empty(), "a failed frame is passed on")?;
                expect(self.caps.is_none() || self.harness.has_error(), "no error was posted")
            }
            Expected::WithoutTensors => {
                counts.one("filter: without tensors");
                self.count([1, 0, 0, 0]);
                expect(has_output, "a frame without tensors fails")
            }
            Expected::Decoded(decoded) => {
                counts.one("filter: decoded");
                if decoded.by_earlier_settings {
                    counts.one("filter: decoded, by earlier settings");
                }
                counts.add("filter: survivors", decoded.regions.len() as u64);
                counts.add("filter: candidates", decoded.candidates);
                counts.add("filter: rejected", decoded.rejected);
                let survivors = decoded.regions.len() as u64;
                expect(has_output, "a frame fails")?;
                self.count([1, decoded.candidates, survivors, decoded.rejected]);
                let frame = self.known.frame.expect("caps came");
                let found = attached_regions(&outputs[0], foreign, decoded, frame);
                found.map_err(|what| Failure(format!("{what}: expected {decoded:?}")))?;
                let has_tensors = Tensors::of(&outputs[0]).is_ok_and(|found| !found.is_empty());
                expect(has_tensors == decoded.keeps_tensors, "tensors")
            }
        }
    }

    fn count(&mut self, more: [u64; 4]) {
        if let Some(stats) = &mut self.stats {
            stats.iter_mut().zip(more).for_each(|(count, more)| *count += more);
        }
    }

    /// Compares the property `stats` with the predictions since the start.
    fn check_stats(&self) -> Result<(), Failure> {
        const COUNTED: [&str; 4] = ["frames", "candidates", "survivors", "rejected"];
        let stats = self.harness.element.property::<gst::Structure>("stats");
        let found = COUNTED.map(|name| stats.get::<u64>(name).expect("it is counted"));
        match self.stats {
            Some(wanted) if wanted != found => {
                Err(Failure(format!("{COUNTED:?}: expected {wanted:?}, stats has {found:?}")))
            }
            _ => Ok(()),
        }
    }

    /// Draws the regions on a picture if the frame is small.
    fn draw(&mut self, buffers: Vec<gst::Buffer>, counts: &mut Counts) -> Result<(), Failure> {
        let Some(caps) = &self.caps else { return Ok(()) };
        let is_small = self.known.frame.is_some_and(|[w, h]| u64::from(w) * u64::from(h) < 70_000);
        if !is_small {
            return Ok(());
        }
        if self.overlay.is_none() {
            self.overlay = Overlay::new(caps);
        }
        let Some(overlay) = &self.overlay else { return Ok(()) };
        buffers.into_iter().try_for_each(|buffer| overlay.draw(buffer, 0, counts))
    }
}

/// The expected result and the actual result of a frame.
struct Frame {
    expected: Expected,
    result: Result<gst::FlowSuccess, gst::FlowError>,
    foreign: usize,
}

/// Checks that valid metadata is read exactly as it was written.
fn check_reader(attached: &[Attached], buffer: &gst::BufferRef) -> Result<(), Failure> {
    if attached.len() > MAX_TENSORS || !attached.iter().all(Attached::is_valid) {
        return Ok(());
    }
    let found: Vec<String> = match Tensors::of(buffer) {
        Ok(tensors) => tensors.views().iter().map(ToString::to_string).collect(),
        Err(error) => return Err(Failure(format!("valid metadata cannot be read: {error}"))),
    };
    let mut wanted: Vec<String> = attached.iter().map(ToString::to_string).collect();
    // Tensors are ordered by kind of metadata, so both lists are sorted.
    let mut sorted = found.clone();
    wanted.sort();
    sorted.sort();
    if wanted == sorted {
        Ok(())
    } else {
        Err(Failure(format!("{wanted:?} was written, {found:?} is read")))
    }
}

/// Compares the regions on a buffer that follow the `foreign` ones with the decoded regions.
fn attached_regions(
    buffer: &gst::BufferRef,
    foreign: usize,
    decoded: &Decoded,
    frame: [u32; 2],
) -> Result<(), String> {
    let regions: &[_] = if decoded.as_regions { &decoded.regions } else { &[] };
    let all: Vec<_> = buffer.iter_meta::<VideoRegionOfInterestMeta>().collect();
    if all.len() != foreign + regions.len() {
        return Err(format!("{} regions, {foreign} of them foreign", all.len()));
    }
    let [width, height] = frame.map(f64::from);
    for (meta, (region, name)) in all[foreign..].iter().zip(regions) {
        let [x, y, w, h] = region.pixels(frame);
        let detection = meta.param("detection").ok_or("a region without detection")?;
        let number = |name| detection.get::<f64>(name).map_err(|error| error.to_string());
        let numbers = [
            ("confidence", f64::from(region.confidence)),
            ("x_min", f64::from(region.x1) / width),
            ("y_min", f64::from(region.y1) / height),
            ("x_max", f64::from(region.x2) / width),
            ("y_max", f64::from(region.y2) / height),
        ];
        for (field, wanted) in numbers {
            if number(field)?.to_bits() != wanted.to_bits() {
                return Err(format!("{field} is {}, not {wanted}", number(field)?));
            }
        }
        let class = detection.get::<i32>("label_id").map_err(|error| error.to_string())?;
        let label = detection.get::<String>("label").map_err(|error| error.to_string())?;
        let values = (meta.rect(), meta.roi_type(), class, label.as_str());
        if values != ((x, y, w, h), name, region.class as i32, name) {
            return Err(format!("a region is {values:?}"));
        }
    }
    Ok(())
}
