// SPDX-License-Identifier: MIT OR Apache-2.0
//! The keys of a configuration of nvinfer.
//!
//! In: the text of a file, in the format of GLib's key files or in YAML. Out: values by group and key, or an error with
//! the line, the expected value and the actual one.

use gst::glib;

use super::yaml;

/// An error in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::elements::nmsfilter) enum KeyError {
    #[error("line {line}: expected [GROUP], KEY=VALUE or a comment with #, got {got:?}")]
    Line { line: usize, got: String },
    #[error("line {line}: expected GROUP: or, indented, KEY: VALUE, got {got:?}")]
    Yaml { line: usize, got: String },
    #[error("cannot be read as a key file: {0}")]
    Format(String),
    #[error("has no group [property]; expected a configuration of nvinfer")]
    NoProperties,
    #[error("line {line}: [{group}] {key}: expected {expected}, got {got:?}")]
    Value { line: usize, group: String, key: String, expected: String, got: String },
    #[error(
        "line {line}: expected [class-attrs-all] or [class-attrs-N] with a class below {classes}, got [{group}]"
    )]
    Class { line: usize, group: String, classes: usize },
}

/// The number of characters after which a text is cut in messages.
const MAX_QUOTED: usize = 80;

/// The groups and keys.
pub(in crate::elements::nmsfilter) struct Keys {
    file: glib::KeyFile,
    /// The text in the format of key files, in which lines are looked up.
    text: String,
}

impl Keys {
    /// # Errors
    /// If the text is not in the format.
    pub fn new(text: &str, is_yaml: bool) -> Result<Self, KeyError> {
        let text = if is_yaml { yaml::to_key_file(text)? } else { text.to_owned() };
        let file = glib::KeyFile::new();
        match file.load_from_data(&text, glib::KeyFileFlags::NONE) {
            Ok(()) => Ok(Self { file, text }),
            Err(error) => Err(match malformed(&text) {
                Some((line, got)) => KeyError::Line { line, got: quoted(got) },
                None => KeyError::Format(error.message().to_owned()),
            }),
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

    /// Returns the error for a key's value, with the text `expected`.
    pub fn error(&self, group: &str, key: &str, expected: &str) -> KeyError {
        KeyError::Value {
            line: self.line(group, Some(key)),
            group: group.to_owned(),
            key: key.to_owned(),
            expected: expected.to_owned(),
            got: quoted(&self.file.value(group, key).unwrap_or_default()),
        }
    }

    /// Reads a number for which `is_valid` is true. nvinfer stores it in single precision.
    pub fn number(
        &self,
        group: &str,
        key: &str,
        expected: &str,
        is_valid: impl Fn(f32) -> bool,
    ) -> Result<f32, KeyError> {
        let number = self.file.double(group, key).ok().map(|number| number as f32);
        number
            .filter(|number| number.is_finite() && is_valid(*number))
            .ok_or_else(|| self.error(group, key, expected))
    }

    /// Reads a whole number in this range.
    pub fn integer(
        &self,
        group: &str,
        key: &str,
        range: std::ops::RangeInclusive<i32>,
    ) -> Result<u32, KeyError> {
        let number = self.file.integer(group, key).ok().filter(|number| range.contains(number));
        number.and_then(|number| u32::try_from(number).ok()).ok_or_else(|| {
            let expected = match *range.end() {
                i32::MAX => format!("a whole number of at least {}", range.start()),
                end => format!("a whole number from {} to {end}", range.start()),
            };
            self.error(group, key, &expected)
        })
    }

    pub fn boolean(&self, group: &str, key: &str) -> Result<bool, KeyError> {
        self.file.boolean(group, key).map_err(|_| self.error(group, key, "0 or 1"))
    }

    pub fn text(&self, group: &str, key: &str) -> Result<String, KeyError> {
        let text = self.file.string(group, key).map_err(|_| self.error(group, key, "text"))?;
        Ok(text.to_string())
    }

    /// Reads a list of class numbers below `most`.
    pub fn classes(&self, group: &str, key: &str, most: usize) -> Result<Vec<usize>, KeyError> {
        let numbers = self.file.integer_list(group, key).ok();
        let classes = numbers.and_then(|numbers| {
            let class = |number: i32| usize::try_from(number).ok().filter(|&class| class < most);
            numbers.into_iter().map(class).collect()
        });
        classes.ok_or_else(|| {
            let expected = format!("classes below {most} with semicolons between, as in 0;3");
            self.error(group, key, &expected)
        })
    }

    /// Reads red, green, blue and alpha.
    pub fn color(&self, group: &str, key: &str) -> Result<[f64; 4], KeyError> {
        let numbers = self.file.double_list(group, key).unwrap_or_default();
        let color = <[f64; 4]>::try_from(numbers).ok();
        color.filter(|color| color.iter().all(|part| (0.0..=1.0).contains(part))).ok_or_else(|| {
            self.error(group, key, "red, green, blue and alpha from 0 to 1, as in 0;1;1;0.7")
        })
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
