// SPDX-License-Identifier: MIT OR Apache-2.0
//! The sections of a text, and the values of their keys.
//!
//! In: any text. Out: sections of lines `key = value`, and numbers and words from values, or an error with the line.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrayvec::ArrayVec;

use super::DescriptionError;
use super::error::Quoted;

/// The greatest length of a text in bytes. Priors of 100,000 anchors fit.
pub const MAX_LENGTH: usize = 4 << 20;

/// The greatest numbers of sections, and of keys of a section.
const MAX_SECTIONS: usize = 64;
const MAX_KEYS: usize = 32;

pub(super) type Parsed<T> = Result<T, DescriptionError>;

/// A line `key = value`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'a> {
    pub line: usize,
    pub key: &'a str,
    pub value: &'a str,
    is_taken: bool,
}

impl Entry<'_> {
    pub fn error(&self, expected: &str) -> DescriptionError {
        DescriptionError::expected(self.line, self.key, expected, self.value)
    }
}

/// The lines of a section.
#[derive(Debug)]
pub(super) struct Keys<'a> {
    pub line: usize,
    pub kind: &'a str,
    pub name: &'a str,
    pub entries: Vec<Entry<'a>>,
}

/// The sections of a text.
pub(super) struct Sections<'a> {
    /// The lines before the first section.
    pub top: Keys<'a>,
    pub named: Vec<Keys<'a>>,
    pub priors: Option<Arc<[[f32; 4]]>>,
}

impl<'a> Sections<'a> {
    pub fn split(text: &'a str) -> Parsed<Self> {
        if text.len() > MAX_LENGTH {
            let reason = format!("expected at most {MAX_LENGTH} bytes of text, got {}", text.len());
            return Err(DescriptionError::new(1, reason));
        }
        let mut sections = vec![Keys::new(1, "", "")];
        let mut priors: Option<Vec<[f32; 4]>> = None;
        let mut is_in_priors = false;
        for (index, line) in text.lines().enumerate() {
            let (number, line) = (index + 1, line.split('#').next().unwrap_or_default().trim());
            if line.is_empty() {
                continue;
            }
            if let Some(header) = line.strip_prefix('[') {
                let expected = "[KIND] or [KIND NAME]";
                let error = || DescriptionError::expected(number, "section", expected, line);
                let mut words = header.strip_suffix(']').ok_or_else(error)?.split_whitespace();
                let kind = words.next().ok_or_else(error)?;
                let name = words.next().unwrap_or_default();
                if words.next().is_some()
                    || (["tensor", "column"].contains(&kind) == name.is_empty())
                {
                    return Err(error());
                }
                is_in_priors = kind == "priors";
                if is_in_priors {
                    priors.get_or_insert_default();
                    continue;
                }
                if sections.len() > MAX_SECTIONS {
                    let reason = format!("expected at most {MAX_SECTIONS} sections");
                    return Err(DescriptionError::new(number, reason));
                }
                sections.push(Keys::new(number, kind, name));
            } else if let Some(rows) = priors.as_mut().filter(|_| is_in_priors) {
                rows.push(prior(number, line)?);
            } else {
                let (key, value) = line.split_once('=').ok_or_else(|| {
                    DescriptionError::expected(number, "line", "KEY = VALUE or [SECTION]", line)
                })?;
                let (key, value) = (key.trim(), value.trim());
                let entry = Entry { line: number, key, value, is_taken: false };
                let entries = &mut sections.last_mut().expect("there is the first one").entries;
                if entry.value.is_empty() {
                    return Err(entry.error("a value"));
                }
                if entries.iter().any(|other| other.key == entry.key) {
                    let reason =
                        format!("a second {}; expected one in a section", Quoted(entry.key));
                    return Err(DescriptionError::new(number, reason));
                }
                if entries.len() >= MAX_KEYS {
                    let reason = format!("expected at most {MAX_KEYS} keys in a section");
                    return Err(DescriptionError::new(number, reason));
                }
                entries.push(entry);
            }
        }
        let named = sections.split_off(1);
        let top = sections.pop().expect("there is the first one");
        Ok(Self { top, named, priors: priors.map(Into::into) })
    }
}

/// A row of the section `priors`.
fn prior(line: usize, text: &str) -> Parsed<[f32; 4]> {
    let numbers = numbers::<4>(text, f32::is_finite).and_then(|it| it.into_inner().ok());
    numbers.ok_or_else(|| {
        let expected = "center x, center y, width and height, separated by spaces";
        DescriptionError::expected(line, "prior", expected, text)
    })
}

/// Up to `COUNT` numbers, separated by spaces; `None` if there are more, or one is not valid.
pub(super) fn numbers<const COUNT: usize>(
    text: &str,
    is_valid: impl Fn(f32) -> bool,
) -> Option<ArrayVec<f32, COUNT>> {
    let mut numbers = ArrayVec::new();
    for word in text.split_whitespace() {
        numbers.try_push(word.parse().ok().filter(|&number| is_valid(number))?).ok()?;
    }
    Some(numbers)
}

/// The sections of a kind, in the order of the text.
pub(super) fn all_sections<'a>(named: &mut Vec<Keys<'a>>, kind: &str) -> Vec<Keys<'a>> {
    named.extract_if(.., |keys| keys.kind == kind).collect()
}

/// The only section of a kind; `None` if the text has none.
pub(super) fn take_section<'a>(
    named: &mut Vec<Keys<'a>>,
    kind: &'static str,
) -> Parsed<Option<Keys<'a>>> {
    let mut found = all_sections(named, kind).into_iter();
    let first = found.next();
    match found.next() {
        Some(second) => {
            let reason = format!("a second section [{kind}]; expected one");
            Err(DescriptionError::new(second.line, reason))
        }
        None => Ok(first),
    }
}

impl<'a> Keys<'a> {
    pub fn new(line: usize, kind: &'a str, name: &'a str) -> Self {
        Self { line, kind, name, entries: Vec::new() }
    }

    pub fn take(&mut self, key: &str) -> Option<Entry<'a>> {
        let entry = self.entries.iter_mut().find(|entry| entry.key == key && !entry.is_taken)?;
        entry.is_taken = true;
        Some(*entry)
    }

    /// The entry of a key, taken or not, which stays.
    pub fn peek(&self, key: &str) -> Option<Entry<'a>> {
        self.entries.iter().find(|entry| entry.key == key).copied()
    }

    /// Checks that a key, taken or not, is not set if it `is_wrong`.
    pub fn refuse(&self, key: &str, is_wrong: bool, expected: &str) -> Parsed<()> {
        let entry = self.peek(key).filter(|_| is_wrong);
        entry.map_or(Ok(()), |entry| Err(entry.error(expected)))
    }

    pub fn required(&mut self, key: &str) -> Parsed<Entry<'a>> {
        let missing = self.missing(key);
        self.take(key).ok_or(missing)
    }

    /// The error of a section without a key that it needs.
    pub fn missing(&self, key: &str) -> DescriptionError {
        DescriptionError::new(self.line, format!("{} needs {key} = ...", self.title()))
    }

    pub fn title(&self) -> String {
        match (self.kind, self.name) {
            ("", _) => "the file".to_owned(),
            (kind, "") => format!("section [{}]", Quoted(kind)),
            (kind, name) => format!("section [{kind} {}]", Quoted(name)),
        }
    }

    /// One of several words.
    pub fn word<T: Copy>(&mut self, key: &str, default: T, words: &[(&str, T)]) -> Parsed<T> {
        let Some(entry) = self.take(key) else { return Ok(default) };
        let found = words.iter().find(|(word, _)| *word == entry.value);
        found.map(|(_, value)| *value).ok_or_else(|| {
            let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            entry.error(&words.join(", "))
        })
    }

    pub fn number(
        &mut self,
        key: &str,
        is_valid: impl Fn(f32) -> bool,
        expected: &str,
    ) -> Parsed<Option<f32>> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let number = entry.value.parse().ok().filter(|&number| is_valid(number));
        number.map(Some).ok_or_else(|| entry.error(expected))
    }

    pub fn is_yes(&mut self, key: &str) -> Parsed<bool> {
        self.word(key, false, &[("yes", true), ("no", false)])
    }

    /// Whole numbers in a range, separated by spaces.
    pub fn whole_numbers<const COUNT: usize>(
        &mut self,
        key: &str,
        range: RangeInclusive<u32>,
    ) -> Parsed<Option<(Entry<'a>, ArrayVec<u32, COUNT>)>> {
        let Some(entry) = self.take(key) else { return Ok(None) };
        let mut numbers = ArrayVec::new();
        for word in entry.value.split_whitespace() {
            let number = word.parse().ok().filter(|number| range.contains(number));
            let is_added = number.is_some_and(|number| numbers.try_push(number).is_ok());
            if !is_added {
                let (from, to) = (range.start(), range.end());
                return Err(entry.error(&match COUNT {
                    1 => format!("a whole number from {from} to {to}"),
                    _ => format!(
                        "1 to {COUNT} whole numbers from {from} to {to}, separated by spaces"
                    ),
                }));
            }
        }
        Ok(Some((entry, numbers)))
    }

    pub fn whole_number(&mut self, key: &str, range: RangeInclusive<u32>) -> Parsed<Option<u32>> {
        Ok(self.whole_numbers::<1>(key, range)?.and_then(|(_, numbers)| numbers.first().copied()))
    }

    /// Checks that no key is left.
    pub fn finish(&self, known: &str) -> Parsed<()> {
        let Some(entry) = self.entries.iter().find(|entry| !entry.is_taken) else { return Ok(()) };
        let (title, key) = (self.title(), Quoted(entry.key));
        let text = format!("key of {title}: expected {known}, got \"{key}\"");
        Err(DescriptionError::new(entry.line, text))
    }
}
