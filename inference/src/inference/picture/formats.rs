// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed once for frames of each format and size: streams of a batch take turns.

use gst_video::VideoInfo;

/// The greatest number of formats that are kept. When a further one comes, all others are dropped.
const MAX_FORMATS: usize = 64;

/// A `T` for each format of frames, of which one is that of the current frame.
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
    /// Makes the format of `frame` the current one. `make` is called if it is not known. Does not allocate if it is.
    ///
    /// # Errors
    /// Those of `make`; the current format stays.
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

    /// That of the current format; `None` before the first.
    pub fn current(&mut self) -> Option<&mut T> {
        self.known.get_mut(self.current).map(|(_, of_format)| of_format)
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
