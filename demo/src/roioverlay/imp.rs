// SPDX-License-Identifier: MIT OR Apache-2.0
//! The `VideoFilter` subclass. In: frames with regions of interest. Out: the same frames with the
//! regions drawn.
#![allow(missing_docs, reason = "the derive macro generates accessors without documentation")]

use std::borrow::Cow;
use std::ffi::CStr;
use std::sync::{LazyLock, Mutex};

use gst::glib;
use gst::prelude::*;
use gst::subclass::prelude::*;
use gst_base::subclass::prelude::*;
use gst_video::subclass::prelude::*;
use gst_video::{VideoFormat, VideoFormatInfo, VideoInfo, VideoRegionOfInterestMeta};

use super::LabelMode;
use super::color::{self, DARK_COLOR, Rgb};
use super::font::{self, Font};
use super::label_placement::{self, Caption, LABEL_PADDING};
use super::surface::{Rect, Surface, SurfaceFormat};
use gstnmsfilter::internals::elements::{filter_templates, lock};
use gstnmsfilter::internals::frame::{FrameError, components};
use gstnmsfilter::internals::output::roi_type;
use gstnmsfilter::internals::text;

/// Opacity of the dark lines, and of the background of a label.
const OUTLINE_ALPHA: u8 = 140;
const LABEL_BACKGROUND_ALPHA: u8 = 215;

#[derive(Clone, Copy, Debug, Default)]
struct Settings {
    labels: LabelMode,
    /// In pixels; 0: in proportion to the frame's height.
    line_width: u32,
}

/// The instance data of the element.
#[derive(Default, glib::Properties)]
#[properties(wrapper_type = super::RoiOverlay)]
pub struct RoiOverlay {
    #[property(
        name = "labels", get, set, type = LabelMode, member = labels,
        builder(Settings::default().labels)
            .nick("Labels")
            .blurb("When labels are drawn")
            .mutable_playing()
    )]
    #[property(
        name = "line-width", get, set, type = u32, member = line_width,
        maximum = 100, default = Settings::default().line_width,
        nick = "Line width",
        blurb = "Width of the lines in pixels (0: in proportion to the frame's height)",
        mutable_playing
    )]
    settings: Mutex<Settings>,
    /// `None` before caps.
    format: Mutex<Option<SurfaceFormat>>,
    warned: Mutex<Warned>,
}

/// The warnings that were posted since the element started.
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
    fn metadata() -> Option<&'static gst::subclass::ElementMetadata> {
        static METADATA: LazyLock<gst::subclass::ElementMetadata> = LazyLock::new(|| {
            gst::subclass::ElementMetadata::new(
                "Region of interest overlay",
                "Filter/Effect/Video",
                "Draws regions of interest with label and confidence, readable in a crowd, on video of 8 bits per \
                 sample (others: put videoconvert before it); labels in Latin letters",
                "The nmsfilter authors",
            )
        });
        Some(&METADATA)
    }

    fn pad_templates() -> &'static [gst::PadTemplate] {
        static TEMPLATES: LazyLock<Vec<gst::PadTemplate>> = LazyLock::new(|| {
            // Those that this version of GStreamer has.
            let formats = VideoFormat::iter_raw()
                .filter(|&format| components(&VideoFormatInfo::from_format(format)).is_some());
            filter_templates(&gst_video::VideoCapsBuilder::new().format_list(formats).build())
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
        self.parent_start()
    }

    // Not `transform_frame_ip`, for which the base class maps the frame as its metadata has it.
    fn transform_ip(
        &self,
        buffer: &mut gst::BufferRef,
    ) -> Result<gst::FlowSuccess, gst::FlowError> {
        let settings = *lock(&self.settings);
        let format = lock(&self.format).clone().ok_or(gst::FlowError::NotNegotiated)?;
        let bounds = format.bounds();
        let mut regions: Vec<StyledRegion> =
            buffer.iter_meta::<VideoRegionOfInterestMeta>().map(StyledRegion::new).collect();
        regions.retain(|region| region.caption.region.intersection(&bounds).is_some());
        if regions.is_empty() {
            return Ok(gst::FlowSuccess::Ok);
        }
        // In ascending order of confidence, so that boxes of high confidence are on top.
        regions.sort_by(|a, b| {
            let order = |region: &StyledRegion| region.caption.confidence.unwrap_or(f64::INFINITY);
            order(a).total_cmp(&order(b))
        });
        let line = match settings.line_width {
            0 => (bounds.y2 / 540).max(1),
            width => width as i32,
        };
        let font = Font::for_frame(bounds.y2);
        let mut surface = match Surface::new(buffer, &format) {
            Ok(surface) => surface,
            Err(error) => {
                self.warn_of_frame(&error);
                return Ok(gst::FlowSuccess::Ok);
            }
        };
        if settings.labels != LabelMode::Never {
            self.warn_of_label(&regions);
        }
        for region in &regions {
            draw_outline(&mut surface, region.caption.region, line, region.color);
        }

        regions.reverse();
        let captions: Vec<_> = regions.iter().map(|region| region.caption.clone()).collect();
        for label in label_placement::place_labels(&captions, settings.labels, font, bounds) {
            let Rect { x1, y1, .. } = label.rect;
            surface.fill(label.rect, regions[label.caption].color, LABEL_BACKGROUND_ALPHA);
            font.draw(&mut surface, x1 + LABEL_PADDING, y1, &label.text, DARK_COLOR);
        }
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
                ["this frame and others like it pass without regions drawn"]
            );
        }
    }

    fn warn_of_label(&self, regions: &[StyledRegion]) {
        let other = regions.iter().find_map(|region| Some((region.replaced.as_ref()?, region)));
        let Some((label, StyledRegion { caption, .. })) = other else { return };
        if !std::mem::replace(&mut lock(&self.warned).label, true) {
            gst::element_imp_warning!(
                self,
                gst::StreamError::Format,
                (
                    "the label {label:?} is drawn as {:?}, and others likewise: the font has Latin letters only",
                    caption.label
                ),
                [
                    "the regions themselves are not changed; a label-file of nmsfilter can name classes otherwise"
                ]
            );
        }
    }
}

/// A region with its caption and color.
struct StyledRegion {
    caption: Caption<'static>,
    color: Rgb,
    /// The region's own label, if the font does not have it.
    replaced: Option<Cow<'static, str>>,
}

impl StyledRegion {
    fn new(meta: gst::MetaRef<'_, VideoRegionOfInterestMeta>) -> Self {
        let label = label(&meta);
        let detection = meta.param("detection");
        let class = detection.and_then(|detection| detection.get::<i32>("label_id").ok());
        let confidence = detection
            .and_then(|detection| detection.get::<f64>("confidence").ok())
            .filter(|confidence| confidence.is_finite());
        let (x, y, w, h) = meta.rect();
        // Larger coordinates are outside of every frame; clamped, they cannot overflow.
        let clamp = |value: u32| value.min(1 << 24) as i32;
        let (x1, y1) = (clamp(x), clamp(y));
        let region =
            Rect { x1, y1, x2: clamp(x.saturating_add(w)), y2: clamp(y.saturating_add(h)) };
        let color = class.map_or_else(|| color::for_label(&label), color::for_class);
        let (label, replaced) = match font::replacement(&label, class) {
            None => (label, None),
            Some(drawn) => (Cow::Owned(drawn), Some(label)),
        };
        Self { caption: Caption { region, label, confidence }, color, replaced }
    }
}

/// The type of the region, with U+FFFD for bytes that are not valid UTF-8: an element in C can set
/// any bytes, or NULL.
fn label(meta: &gst::MetaRef<'_, VideoRegionOfInterestMeta>) -> Cow<'static, str> {
    text::of_quark(roi_type(meta)).map_or(Cow::Borrowed(""), CStr::to_string_lossy)
}

/// Draws the sides of `rect`, `line` pixels wide, with dark lines of one pixel outside and inside.
fn draw_outline(surface: &mut Surface<'_>, rect: Rect, line: i32, color: Rgb) {
    draw_border(surface, rect.expanded(1), 1, DARK_COLOR, OUTLINE_ALPHA);
    draw_border(surface, rect, line, color, 255);
    let inner = rect.expanded(-line);
    if inner.x1 < inner.x2 && inner.y1 < inner.y2 {
        draw_border(surface, inner, 1, DARK_COLOR, OUTLINE_ALPHA);
    }
}

/// Draws the sides of `rect`; each pixel is blended once.
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
