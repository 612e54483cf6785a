// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a configuration of nvinfer.
//!
//! In: the text of a file, in the format of GLib's key files or in YAML. Out: values by group and key, or an error with
//! the line, the expected value and the actual one.

use gst::glib;

use super::yaml;
use crate::elements::nmsfilter::settings::SettingsError;

/// The number of characters after which a text is cut in messages.
const MAX_QUOTED: usize = 80;

/// The groups and keys.
pub(super) struct Keys {
    file: glib::KeyFile,
    /// The text in the format of key files, in which lines are looked up.
    text: String,
}

/// A key of a group.
#[derive(Clone, Copy)]
pub(super) struct Key<'k> {
    keys: &'k Keys,
    group: &'k str,
    name: &'k str,
}

/// The names of keys, and for each the function that sets a value of `T` to the key's.
pub(super) type KeyTable<T> = [(&'static str, fn(&mut T, Key<'_>) -> Result<(), SettingsError>)];

impl Keys {
    /// # Errors
    /// If the text is not in the format.
    pub fn new(text: &str, is_yaml: bool) -> Result<Self, SettingsError> {
        let text = if is_yaml { yaml::to_key_file(text)? } else { text.to_owned() };
        let file = glib::KeyFile::new();
        match file.load_from_data(&text, glib::KeyFileFlags::NONE) {
            Ok(()) => Ok(Self { file, text }),
            Err(error) => Err(SettingsError(match malformed(&text) {
                Some((line, got)) => {
                    let got = quoted(got);
                    format!(
                        "line {line}: expected [GROUP], KEY=VALUE or a comment with #, got {got:?}"
                    )
                }
                None => format!("cannot be read as a key file: {}", error.message()),
            })),
        }
    }

    /// The names of the groups, in their order.
    pub fn groups(&self) -> Vec<String> {
        self.file.groups().iter().map(|group| group.to_string()).collect()
    }

    /// The keys of a group, in their order; empty if the group is missing.
    pub fn of(&self, group: &str) -> Vec<String> {
        let keys = self.file.keys(group);
        keys.map(|keys| keys.iter().map(|key| key.to_string()).collect()).unwrap_or_default()
    }

    /// Returns the line of the last group with this name, or of the last such key in it.
    pub fn line(&self, group: &str, key: Option<&str>) -> usize {
        let (mut of, mut found) = ("", 0);
        for (line, text) in (1..).zip(self.text.lines().map(str::trim)) {
            if let Some(name) = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                of = name;
                if key.is_none() && name == group {
                    found = line;
                }
            } else if of == group
                && key.is_some_and(|key| text.split('=').next().map(str::trim) == Some(key))
            {
                found = line;
            }
        }
        found
    }

    /// Sets the values that the keys of a group have in `table`. The last of equal keys counts.
    ///
    /// # Errors
    /// If a value is invalid.
    pub fn read<T>(
        &self,
        group: &str,
        table: &KeyTable<T>,
        into: &mut T,
    ) -> Result<(), SettingsError> {
        for name in &self.of(group) {
            if let Some((_, set)) = table.iter().find(|(known, _)| known == name) {
                set(into, Key { keys: self, group, name })?;
            }
        }
        Ok(())
    }
}

impl Key<'_> {
    /// Returns the error for the value, with the text `expected`.
    fn error(&self, expected: &str) -> SettingsError {
        let Self { keys, group, name } = self;
        let line = keys.line(group, Some(name));
        let got = quoted(&keys.file.value(group, name).unwrap_or_default());
        SettingsError(format!("line {line}: [{group}] {name}: expected {expected}, got {got:?}"))
    }

    /// Reads a number for which `is_valid` is true. nvinfer stores it in single precision.
    pub fn number(
        &self,
        expected: &str,
        is_valid: impl Fn(f32) -> bool,
    ) -> Result<f32, SettingsError> {
        let number = self.keys.file.double(self.group, self.name).ok();
        number
            .map(|number| number as f32)
            .filter(|number| number.is_finite() && is_valid(*number))
            .ok_or_else(|| self.error(expected))
    }

    /// Reads a whole number in this range.
    pub fn integer(&self, range: std::ops::RangeInclusive<i32>) -> Result<u32, SettingsError> {
        let number = self.keys.file.integer(self.group, self.name).ok();
        let number = number.filter(|number| range.contains(number));
        number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
            self.error(&match *range.end() {
                i32::MAX => format!("a whole number of at least {}", range.start()),
                end => format!("a whole number from {} to {end}", range.start()),
            })
        })
    }

    /// Reads a whole number of at least 0.
    pub fn pixels(&self) -> Result<u32, SettingsError> {
        self.integer(0..=i32::MAX)
    }

    pub fn boolean(&self) -> Result<bool, SettingsError> {
        self.keys.file.boolean(self.group, self.name).map_err(|_| self.error("0 or 1"))
    }

    pub fn text(&self) -> Result<String, SettingsError> {
        let text = self.keys.file.string(self.group, self.name);
        text.map(|text| text.to_string()).map_err(|_| self.error("text"))
    }

    /// Reads a list of class numbers below `most`.
    pub fn classes<C: FromIterator<usize>>(&self, most: usize) -> Result<C, SettingsError> {
        let numbers = self.keys.file.integer_list(self.group, self.name).ok();
        let classes = numbers.and_then(|numbers| {
            let class = |number: i32| usize::try_from(number).ok().filter(|&class| class < most);
            numbers.into_iter().map(class).collect()
        });
        classes.ok_or_else(|| {
            self.error(&format!("classes below {most} with semicolons between, as in 0;3"))
        })
    }

    /// Reads red, green, blue and alpha.
    pub fn color(&self) -> Result<[f64; 4], SettingsError> {
        let numbers = self.keys.file.double_list(self.group, self.name).unwrap_or_default();
        let color = <[f64; 4]>::try_from(numbers).ok();
        color
            .filter(|color| color.iter().all(|part| (0.0..=1.0).contains(part)))
            .ok_or_else(|| self.error("red, green, blue and alpha from 0 to 1, as in 0;1;1;0.7"))
    }
}

/// Returns the first line that a key file cannot have, and its number.
fn malformed(text: &str) -> Option<(usize, &str)> {
    let mut has_group = false;
    (1..).zip(text.lines()).find(|(_, line)| {
        let line = line.trim();
        let is_group = line.starts_with('[') && line.ends_with(']') && line.len() > 2;
        has_group |= is_group;
        let is_key = has_group && line.find('=').is_some_and(|at| at > 0);
        !(line.is_empty() || line.starts_with('#') || is_group || is_key)
    })
}

pub(super) fn quoted(text: &str) -> String {
    let text = text.trim();
    text[..text.floor_char_boundary(MAX_QUOTED)].to_owned()
}
