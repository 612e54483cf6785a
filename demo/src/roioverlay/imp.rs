// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `VideoFilter` subclass. In: frames with regions of interest. Out: these frames with the
//! regions drawn on them.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;
use gst_video::{VideoFormatInfo, VideoInfo, VideoRegionOfInterestMeta};

use super::color::{DARK_COLOR, Rgb};
use super::font::Font;
use super::label_placement::{Caption, LABEL_PADDING, LabelPlacement};
use super::mask::Between;
use super::region::{self, StyledRegion};
use super::shapes::{Pen, draw_disc, draw_line, draw_mask, draw_polygon};
use super::surface::{Rect, Surface, SurfaceFormat};
use super::tails::Tails;
use super::{ColorBy, LabelMode};
use gstnmsfilter::elements::{lock, pad_templates};
use gstnmsfilter::frame::{FrameError, components, raw_formats};

/// Opacity of dark lines, and of the background of labels.
const OUTLINE_ALPHA: u8 = 140;
const LABEL_BACKGROUND_ALPHA: u8 = 215;

/// Opacity of masks.
const MASK_ALPHA: u8 = 110;

#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    labels: LabelMode,
    color_by: ColorBy,
    /// Line width in pixels. If it is 0, the width is proportional to the frame's height.
    line_width: u32,
    /// The length of tails in frames.
    tail_length: u32,
}

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::RoiOverlay)]
pub struct RoiOverlay {
    #[property(
        name = "labels", get, set, type = LabelMode, member = labels,
        builder(Settings::default().labels)
            .nick("Labels")
            .blurb("Condition under which labels are drawn")
            .mutable_playing()
    )]
    #[property(
        name = "color-by", get, set, type = ColorBy, member = color_by,
        builder(Settings::default().color_by)
            .nick("Color by")
            .blurb("Property of a region that determines its color")
            .mutable_playing()
    )]
    #[property(
        name = "line-width", get, set, type = u32, member = line_width,
        maximum = 100, default = Settings::default().line_width,
        nick = "Line width",
        blurb = "Width of the lines in pixels (0: proportional to the frame's height)",
        mutable_playing
    )]
    #[property(
        name = "tail-length", get, set, type = u32, member = tail_length,
        maximum = 1000, default = Settings::default().tail_length,
        nick = "Tail length",
        blurb = "Number of frames over which the way of a tracked region is drawn (0: none)",
        mutable_playing
    )]
    settings: Mutex<Settings>,
    /// The format, or `None` before caps.
    format: Mutex<Option<SurfaceFormat>>,
    warned: Mutex<Warned>,
    frame: Mutex<FrameData>,
    /// The opacities of a surface.
    opacities: Mutex<Vec<u8>>,
}

/// Everything that is drawn on a frame. Its memory is reused for the next frame.
#[derive(Default)]
struct FrameData {
    /// Labels and confidences of all regions.
    texts: String,
    regions: Vec<StyledRegion>,
    captions: Vec<Caption>,
    placement: LabelPlacement,
    /// Positions of columns in a mask.
    columns: Vec<Between>,
    tails: Tails,
}

/// The warnings that were already posted since the element started.
#[derive(Clone, Copy, Debug, Default)]
struct Warned {
    frame: bool,
    label: bool,
}

#[glib::object_subclass]
impl ObjectSubclass for RoiOverlay {
    const NAME: &'static str = "GstRoiOverlay";
    const ALLOW_NAME_CONFLICT: bool = true;
    type Type = super::RoiOverlay;
    type ParentType = gst_video::VideoFilter;
}

#[glib::derived_properties]
impl ObjectImpl for RoiOverlay {}

impl GstObjectImpl for RoiOverlay {}

impl ElementImpl for RoiOverlay {
    gstnmsfilter::element_metadata!(
        "Region of interest overlay",
        "Filter/Effect/Video",
        "Draws regions of interest with their labels, confidences, oriented boxes, masks and keypoints on \
                 video with 8 bits per sample (for other video, put videoconvert before it). Labels are readable \
                 in a crowd, and have Latin letters only"
    );

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            let formats = raw_formats()
                .into_iter()
                .filter(|&format| components(&VideoFormatInfo::from_format(format)).is_some());
            let caps = gst_video::VideoCapsBuilder::new().format_list(formats).build();
            pad_templates(&caps, &caps)
        });
        &TEMPLATES
    }
}

impl BaseTransformImpl for RoiOverlay {
    const MODE: gst_base::subclass::BaseTransformMode =
        gst_base::subclass::BaseTransformMode::AlwaysInPlace;
    const PASSTHROUGH_ON_SAME_CAPS: bool = false;
    const TRANSFORM_IP_ON_PASSTHROUGH: bool = false;

    fn start(&self) -> Result<(), gst::ErrorMessage> {
        *lock(&self.warned) = Warned::default();
        *lock(&self.frame) = FrameData::default();
        self.parent_start()
    }

    // This is not `transform_frame_ip`, because then the base class would map the frame with its
    // unchecked metadata.
    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = *lock(&self.settings);
        let format = lock(&self.format).clone().ok_or(gst::FlowError::NotNegotiated)?;
        let bounds = format.bounds();
        let mut frame = lock(&self.frame);
        frame.read(buffer, settings.color_by, bounds);
        let FrameData { regions, tails, .. } = &mut *frame;
        tails.add(regions, settings.tail_length);
        if !frame.regions.is_empty() {
            match Surface::new(buffer, &format, &mut lock(&self.opacities)) {
                Ok(mut surface) => {
                    if settings.labels != LabelMode::Never {
                        self.warn_of_label(&frame);
                    }
                    frame.draw(&mut surface, settings, bounds);
                }
                Err(error) => self.warn_of_frame(&error),
            }
        }
        // The regions hold references to the data of keypoints and masks, so they are released
        // immediately.
        frame.regions.clear();
        Ok(gst::FlowSuccess::Ok)
    }
}

impl VideoFilterImpl for RoiOverlay {
    fn set_info(
        &self,
        incaps: &gst::Caps,
        in_info: &VideoInfo,
        _outcaps: &gst::Caps,
        _out_info: &VideoInfo,
    ) -> Result<(), gst::LoggableError> {
        let format = SurfaceFormat::new(in_info);
        let refused =
            || gst::loggable_error!(gst::CAT_RUST, "{incaps}: expected samples of 8 bits");
        *lock(&self.format) = Some(format.ok_or_else(refused)?);
        Ok(())
    }
}

impl RoiOverlay {
    fn warn_of_frame(&self, error: &FrameError) {
        if !std::mem::replace(&mut lock(&self.warned).frame, true) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                ("{error}"),
                ["no regions are drawn on this frame and on similar frames"]
            );
        }
    }

    fn warn_of_label(&self, frame: &FrameData) {
        let mut regions = frame.regions.iter();
        let other = regions.find_map(|region| Some((region, region.replacement.clone()?)));
        let Some((region, drawn)) = other else { return };
        if !std::mem::replace(&mut lock(&self.warned).label, true) {
            let label: String = region::characters(region.label).collect();
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "the label {label:?} is drawn as {:?}, because the font has Latin letters only; this applies to \
                     other labels, too",
                    &frame.texts[drawn]
                ),
                [
                    "the regions themselves are not changed; the property label-file of nmsfilter can give classes \
                     other names"
                ]
            );
        }
    }
}

impl FrameData {
    /// Reads the regions of a buffer that have at least one pixel in the frame. They are sorted by
    /// ascending confidence, so that boxes of high confidence are drawn on top.
    fn read(&mut self, buffer: &gst::BufferRef, color_by: ColorBy, bounds: Rect) {
        self.texts.clear();
        let metas = buffer.iter_meta::<VideoRegionOfInterestMeta>().enumerate();
        let texts = &mut self.texts;
        self.regions.extend(metas.filter_map(|(order, meta)| {
            let region = StyledRegion::new(meta, order, color_by, texts);
            region.caption.region.intersection(&bounds).is_some().then_some(region)
        }));
        self.regions.sort_unstable_by(|a, b| {
            a.confidence.total_cmp(&b.confidence).then(a.order.cmp(&b.order))
        });
    }

    /// Draws masks, tails, boxes, keypoints and labels, in this order.
    fn draw(&mut self, surface: &mut Surface<'_>, settings: Settings, bounds: Rect) {
        let line = match settings.line_width {
            0 => (bounds.y2 / 540).max(1),
            width => width as i32,
        };
        for region in &self.regions {
            if let Some(mask) = &region.mask {
                draw_mask(surface, mask, region.color, MASK_ALPHA, &mut self.columns);
            }
        }
        for region in &self.regions {
            for pen in pens(region.color, f64::from(line) / 2.0) {
                self.tails.lines(region.track).for_each(|ends| draw_line(surface, ends, pen));
            }
        }
        for region in &self.regions {
            match &region.oriented {
                None => draw_outline(surface, region.caption.region, line, region.color),
                Some(corners) => {
                    for pen in pens(region.color, f64::from(line) / 2.0) {
                        draw_polygon(surface, corners, pen);
                    }
                }
            }
        }
        for region in &self.regions {
            draw_keypoints(surface, region, line);
        }

        let font = Font::for_frame(bounds.y2);
        let Self { texts, regions, captions, placement, .. } = self;
        captions.clear();
        captions.extend(regions.iter().rev().map(|region| region.caption.clone()));
        for label in placement.place(texts, captions, settings.labels, font, bounds) {
            let Rect { x1, y1, .. } = label.rect;
            let color = regions[regions.len() - 1 - label.caption].color;
            surface.fill(label.rect, color, LABEL_BACKGROUND_ALPHA);
            let text = &texts[label.text.clone()];
            for (line, text) in (0..).zip(text.split('\n')) {
                let y = y1 + line * font.height();
                font.draw(surface, x1 + LABEL_PADDING, y, text, DARK_COLOR);
            }
        }
    }
}

/// Returns the pens for a line: first a dark pen that is wider by one pixel on both sides, then a
/// pen with the color.
fn pens(color: Rgb, radius: f64) -> [Pen; 2] {
    [
        Pen { color: DARK_COLOR, alpha: OUTLINE_ALPHA, radius: radius + 1.0 },
        Pen { color, alpha: 255, radius },
    ]
}

/// Draws the lines between keypoints, and the points on top of them.
fn draw_keypoints(surface: &mut Surface<'_>, region: &StyledRegion, line: i32) {
    let Some(keypoints) = &region.keypoints else { return };
    for pen in pens(region.color, f64::from(line) / 2.0) {
        keypoints.lines().for_each(|ends| draw_line(surface, ends, pen));
    }
    for pen in pens(region.color, f64::from(line) + 1.0) {
        keypoints.points().for_each(|point| draw_disc(surface, point, pen));
    }
}

/// Draws the sides of `rect` with lines of `line` pixels, and dark lines of one pixel on both sides
/// of them.
fn draw_outline(surface: &mut Surface<'_>, rect: Rect, line: i32, color: Rgb) {
    draw_border(surface, rect.expanded(1), 1, DARK_COLOR, OUTLINE_ALPHA);
    draw_border(surface, rect, line, color, 255);
    let inner = rect.expanded(-line);
    if inner.x1 < inner.x2 && inner.y1 < inner.y2 {
        draw_border(surface, inner, 1, DARK_COLOR, OUTLINE_ALPHA);
    }
}

/// Draws the sides of `rect`, and blends each pixel only once.
fn draw_border(surface: &mut Surface<'_>, rect: Rect, width: i32, color: Rgb, alpha: u8) {
    let Rect { x1, y1, x2, y2 } = rect;
    let (top, bottom) = ((y1 + width).min(y2), (y2 - width).max(y1));
    if top >= bottom {
        return surface.fill(rect, color, alpha);
    }
    surface.fill(Rect { y2: top, ..rect }, color, alpha);
    surface.fill(Rect { y1: bottom, ..rect }, color, alpha);
    let (left, right) = ((x1 + width).min(x2), (x2 - width).max(x1));
    if left >= right {
        return surface.fill(Rect { y1: top, y2: bottom, ..rect }, color, alpha);
    }
    surface.fill(Rect { x1, y1: top, x2: left, y2: bottom }, color, alpha);
    surface.fill(Rect { x1: right, y1: top, x2, y2: bottom }, color, alpha);
}
