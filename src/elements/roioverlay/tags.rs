//! Which label goes where.

use super::LabelMode;
use super::surface::Rect;
use super::text::Font;

/// A label with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tag {
    /// The index of its caption.
    pub caption: usize,
    pub rect: Rect,
    pub text: String,
}

/// What a region has to say.
#[derive(Clone, Debug)]
pub(super) struct Caption<'a> {
    pub region: Rect,
    pub label: &'a str,
    /// 0 to 1, or what the detector gives.
    pub confidence: Option<f64>,
}

impl Caption<'_> {
    /// In full: label and per cent.
    fn full(&self) -> String {
        match self.short() {
            Some(short) => format!("{} {short}", self.label),
            None => self.label.to_owned(),
        }
    }

    /// The confidence alone: per cent up to 1, as it is beyond.
    fn short(&self) -> Option<String> {
        self.confidence.map(|confidence| match confidence {
            0.0..=1.0 => format!("{:.0}", confidence * 100.0),
            other => format!("{other:.1}"),
        })
    }
}

/// Room around a tag's text.
pub(super) const PADDING: i32 = 2;

/// How much of another region a tag may cover: a fifth.
const COVERED: i64 = 5;

/// Places tags, in the order of `captions`: the first has the first choice.
pub(super) fn place(
    captions: &[Caption<'_>],
    mode: LabelMode,
    font: Font,
    frame: Rect,
) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    for (i, caption) in captions.iter().enumerate() {
        let tag = match mode {
            LabelMode::Never => None,
            LabelMode::Always => {
                let text = caption.full();
                spots(&caption.region, size(font, &text), frame).next().map(|rect| Tag {
                    caption: i,
                    rect,
                    text,
                })
            }
            LabelMode::Auto => room_for(i, captions, &tags, font, frame),
        };
        tags.extend(tag);
    }
    tags
}

/// The longest text that has room, at the best place for it.
fn room_for(
    i: usize,
    captions: &[Caption<'_>],
    tags: &[Tag],
    font: Font,
    frame: Rect,
) -> Option<Tag> {
    let caption = &captions[i];
    let region = &caption.region;
    let widest = (region.x2 - region.x1) * 3 / 2;
    for text in [Some(caption.full()), caption.short()].into_iter().flatten() {
        if size(font, &text)[0] > widest {
            continue;
        }
        for rect in spots(region, size(font, &text), frame) {
            let free = tags.iter().all(|tag| tag.rect.intersection(&rect).is_none());
            let harmless = || {
                captions.iter().enumerate().all(|(j, other)| {
                    let covered = other.region.intersection(&rect).map_or(0, |both| both.area());
                    // A tag may hide more of a large box, since little of it is lost.
                    j == i || covered * COVERED <= other.region.area()
                })
            };
            if free && harmless() {
                return Some(Tag { caption: i, rect, text });
            }
        }
    }
    None
}

/// Pixels that a tag with this text takes.
fn size(font: Font, text: &str) -> [i32; 2] {
    [font.width(text) + 2 * PADDING, font.height()]
}

/// Places for a tag of this size, best first: above the region, below it, inside its upper edge.
fn spots(
    region: &Rect,
    [width, height]: [i32; 2],
    frame: Rect,
) -> impl Iterator<Item = Rect> + use<> {
    let x = region.x1.min(frame.x2 - width).max(0);
    [region.y1 - height, region.y2, region.y1]
        .map(|y| Rect { x1: x, y1: y, x2: x + width, y2: y + height })
        .into_iter()
        .filter(move |rect| rect.y1 >= 0 && rect.y2 <= frame.y2)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: Rect = Rect { x1: 0, y1: 0, x2: 640, y2: 480 };

    fn caption(x: i32, y: i32, side: i32) -> Caption<'static> {
        let region = Rect { x1: x, y1: y, x2: x + side, y2: y + side };
        Caption { region, label: "face", confidence: Some(0.873) }
    }

    fn texts(captions: &[Caption<'_>], mode: LabelMode) -> Vec<String> {
        let font = Font::for_frame(480);
        place(captions, mode, font, FRAME).into_iter().map(|tag| tag.text).collect()
    }

    #[test]
    fn a_wide_region_has_its_label_in_full_above_it() {
        let captions = [caption(100, 100, 80)];
        let tags = place(&captions, LabelMode::Auto, Font::for_frame(480), FRAME);
        assert_eq!(tags[0].text, "face 87");
        assert_eq!((tags[0].rect.x1, tags[0].rect.y2), (100, 100));
    }

    #[test]
    fn a_narrow_region_shows_the_confidence_alone_and_a_tiny_one_nothing() {
        assert_eq!(texts(&[caption(100, 100, 24)], LabelMode::Auto), ["87"]);
        assert!(texts(&[caption(100, 100, 8)], LabelMode::Auto).is_empty());
    }

    #[test]
    fn a_region_at_the_top_has_its_label_below() {
        let captions = [caption(100, 3, 80)];
        let tags = place(&captions, LabelMode::Auto, Font::for_frame(480), FRAME);
        assert_eq!(tags[0].rect.y1, 83);
    }

    #[test]
    fn tags_neither_collide_nor_bury_other_regions_nor_leave_the_frame() {
        let crowd: Vec<_> =
            (0..400).map(|i| caption(i % 20 * 31, i / 20 * 23, 22 + i % 7 * 6)).collect();
        let tags = place(&crowd, LabelMode::Auto, Font::for_frame(480), FRAME);
        assert!(!tags.is_empty());
        for (i, tag) in tags.iter().enumerate() {
            assert_eq!(tag.rect.intersection(&FRAME), Some(tag.rect), "{tag:?} leaves the frame");
            for other in &tags[..i] {
                assert_eq!(tag.rect.intersection(&other.rect), None, "{tag:?} meets {other:?}");
            }
            for (j, other) in crowd.iter().enumerate().filter(|(j, _)| *j != tag.caption) {
                let both = other.region.intersection(&tag.rect).map_or(0, |both| both.area());
                assert!(both * COVERED <= other.region.area(), "{tag:?} buries region {j}");
            }
        }
    }

    #[test]
    fn always_labels_every_region_and_never_none() {
        let crowd: Vec<_> = (0..50).map(|i| caption(i * 5, 100, 20)).collect();
        assert_eq!(texts(&crowd, LabelMode::Always).len(), 50);
        assert!(texts(&crowd, LabelMode::Never).is_empty());
    }

    #[test]
    fn scores_beyond_one_are_no_percentages() {
        let raw = Caption { confidence: Some(41.84), ..caption(100, 100, 160) };
        assert_eq!(texts(&[raw], LabelMode::Auto), ["face 41.8"]);
        let unknown = Caption { confidence: None, ..caption(100, 100, 160) };
        assert_eq!(texts(&[unknown], LabelMode::Auto), ["face"]);
    }
}
