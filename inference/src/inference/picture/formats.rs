// SPDX-License-Identifier: MIT OR Apache-2.0
//! Keeps data that is computed once per format and size of frames. It is needed because the streams of a batch take
//! turns, and each stream may have another format.

use gst_video::VideoInfo;

/// The maximum number of formats that are kept. When another format comes, all of them are dropped.
const MAX_FORMATS: usize = 64;

/// A `T` for each format of frames that has occurred. One of the formats is the current one.
pub struct Formats<T> {
    known: Vec<(VideoInfo, T)>,
    current: usize,
}

impl<T> Default for Formats<T> {
    fn default() -> Self {
        Self { known: Vec::new(), current: 0 }
    }
}

impl<T> Formats<T> {
    /// Makes the format of `frame` the current one. If the format is new, `make` is called; otherwise nothing is
    /// allocated.
    ///
    /// # Errors
    /// If `make` fails. The current format does not change then.
    pub fn select<E>(
        &mut self,
        frame: &VideoInfo,
        make: impl FnOnce() -> Result<T, E>,
    ) -> Result<(), E> {
        if let Some(known) = self.known.iter().position(|(known, _)| known == frame) {
            self.current = known;
            return Ok(());
        }
        let made = make()?;
        if self.known.len() == MAX_FORMATS {
            self.known.clear();
        }
        self.current = self.known.len();
        self.known.push((frame.clone(), made));
        Ok(())
    }

    /// Returns the `T` of the current format, or `None` before the first format.
    pub fn current(&mut self) -> Option<&mut T> {
        self.known.get_mut(self.current).map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use gst_video::VideoFormat;

    use super::*;

    fn format(width: usize) -> VideoInfo {
        gst::init().unwrap();
        VideoInfo::builder(VideoFormat::Gray8, width as u32, 16).build().unwrap()
    }

    #[test]
    fn a_format_is_made_once_and_a_failure_changes_nothing() {
        let mut formats = Formats::default();
        assert_eq!(formats.current(), None);
        let known = || -> Result<usize, ()> { panic!("the format is known") };
        assert_eq!(formats.select(&format(1), || Ok::<_, ()>(1)), Ok(()));
        assert_eq!(formats.select(&format(2), || Ok::<_, ()>(2)), Ok(()));
        assert_eq!(formats.current(), Some(&mut 2));
        assert_eq!(formats.select(&format(1), known), Ok(()));
        assert_eq!(formats.current(), Some(&mut 1));
        assert_eq!(formats.select(&format(3), || Err("no")), Err("no"));
        assert_eq!(formats.current(), Some(&mut 1));
    }

    #[test]
    fn formats_beyond_the_maximum_replace_earlier_ones() {
        let mut formats = Formats::default();
        for width in 1..3 * MAX_FORMATS {
            assert_eq!(formats.select(&format(width), || Ok::<_, ()>(width)), Ok(()));
            assert_eq!(formats.current(), Some(&mut width.clone()));
            assert!(formats.known.len() <= MAX_FORMATS);
        }
    }
}
