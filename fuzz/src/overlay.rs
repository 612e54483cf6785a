// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fuzzes `roioverlay` with any regions. It must draw, but only inside of the picture.

use gst_video::VideoInfo;

use crate::bytes::Bytes;
use crate::counts::Counts;
use crate::harness::Harness;
use crate::metadata::ForeignRegion;
use crate::{Failure, caps, properties, watch};

const SIDES: [i32; 12] = [64, 1, 2, 3, 16, 17, 48, 100, 128, 200, 7, 33];

/// A `roioverlay` that has caps.
pub struct Overlay {
    harness: Harness,
    size: usize,
}

impl Overlay {
    /// Returns `None` if the overlay cannot draw on frames with these caps.
    pub fn new(caps: &gst::Caps) -> Option<Self> {
        let harness = Harness::new("roioverlay");
        Self::with(harness, caps)
    }

    fn with(harness: Harness, caps: &gst::Caps) -> Option<Self> {
        let started = harness.start();
        assert!(started, "an overlay starts with any properties");
        let taken = harness.caps(caps);
        let size = VideoInfo::from_caps(caps).ok()?.size();
        taken.then_some(Self { harness, size })
    }

    /// Appends a picture and `behind` more bytes to `buffer`, and draws regions on the picture.
    pub fn draw(
        &self,
        mut buffer: gst::Buffer,
        behind: usize,
        counts: &mut Counts,
    ) -> Result<(), Failure> {
        const BEHIND: u8 = 0x5A;
        let mut pixels = vec![0x80; self.size];
        pixels.extend(vec![BEHIND; behind]);
        buffer.make_mut().append_memory(gst::Memory::from_mut_slice(pixels));
        let result = self.harness.push(buffer);
        counts.one("overlay: frames");
        let outputs = self.harness.take();
        let errors = self.harness.errors();
        if result.is_err() || outputs.len() != 1 || !errors.is_empty() {
            return Err(Failure(format!("roioverlay: {result:?} {errors:?}")));
        }
        let map = outputs[0].map_readable().expect("system memory can be mapped");
        counts.add(
            "overlay: pixels drawn",
            map[..self.size].iter().filter(|&&b| b != 0x80).count() as u64,
        );
        if map[self.size..].iter().all(|&byte| byte == BEHIND) {
            Ok(())
        } else {
            Err(Failure("roioverlay draws behind the picture".into()))
        }
    }
}

pub fn drive(bytes: &mut Bytes<'_>, counts: &mut Counts) -> Result<(), Failure> {
    let caps = if bytes.one_in(16) { caps::any(bytes) } else { caps::video(bytes, &SIDES) };
    let area = |caps: &gst::Caps| VideoInfo::from_caps(caps).map_or(0, |info| info.size());
    if area(&caps) > 400_000 {
        return Ok(());
    }
    let harness = Harness::new("roioverlay");
    set_properties(bytes, &harness);
    let Some(overlay) = Overlay::with(harness, &caps) else {
        counts.one("overlay: caps refused");
        return Ok(());
    };
    for _ in 0..1 + bytes.below(4) {
        set_properties(bytes, &overlay.harness);
        let mut buffer = gst::Buffer::new();
        let count = if bytes.one_in(8) { bytes.below(100) } else { bytes.below(8) };
        for _ in 0..count {
            ForeignRegion::new(bytes).write(buffer.make_mut());
        }
        overlay.draw(buffer, bytes.pick(&[0, 0, 1, 64]), counts)?;
        if bytes.one_in(16) {
            short(bytes, &overlay, counts);
        }
    }
    Ok(())
}

/// Pushes a picture with too few bytes. GStreamer decides if this is an error.
fn short(bytes: &mut Bytes<'_>, overlay: &Overlay, counts: &mut Counts) {
    let mut buffer = gst::Buffer::from_mut_slice(vec![0_u8; bytes.below(overlay.size + 1)]);
    ForeignRegion::new(bytes).write(buffer.make_mut());
    let _ = overlay.harness.push(buffer);
    let _ = (overlay.harness.take(), overlay.harness.errors());
    counts.one("overlay: short pictures");
}

fn set_properties(bytes: &mut Bytes<'_>, harness: &Harness) {
    watch::EXPECT_WARNINGS.store(true, std::sync::atomic::Ordering::SeqCst);
    for _ in 0..bytes.below(3) {
        properties::set_one(bytes, &harness.element);
    }
    watch::EXPECT_WARNINGS.store(false, std::sync::atomic::Ordering::SeqCst);
}
