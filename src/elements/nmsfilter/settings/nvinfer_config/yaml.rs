// SPDX-License-Identifier: MIT OR Apache-2.0
//! Configurations of nvinfer in YAML.
//!
//! In: text in a subset of YAML: groups, and below each, indented, its keys with plain or quoted
//! values. Out: an equivalent key file, line by line, or the first line that is not in the subset.

use super::keys::quoted;
use crate::elements::nmsfilter::settings::SettingsError;

/// # Errors
/// If a line is neither a group, nor a key with its value, nor a comment.
pub(super) fn to_key_file(text: &str) -> Result<String, SettingsError> {
    let mut made = String::new();
    let mut has_group = false;
    for (index, line) in text.lines().enumerate() {
        let error = || {
            SettingsError(format!(
                "line {}: expected GROUP: or, indented, KEY: VALUE, got {:?}",
                index + 1,
                quoted(line)
            ))
        };
        let content = without_comment(line).trim_end();
        let is_indented = content.starts_with(' ');
        match content.trim_start().split_once(':') {
            _ if content.is_empty() || ["---", "..."].contains(&content) => {}
            Some((group, "")) if !is_indented && is_name(group) => {
                has_group = true;
                made += &format!("[{group}]");
            }
            Some((key, value)) if is_indented && has_group && is_name(key) => {
                let value = value.strip_prefix(' ').ok_or_else(error)?;
                made += &format!("{key}={}", plain(value.trim()).ok_or_else(error)?);
            }
            _ => return Err(error()),
        }
        made.push('\n');
    }
    Ok(made)
}

/// Returns the part of a line before a comment, which begins with a `#` after white space.
fn without_comment(line: &str) -> &str {
    let begins = |&(at, _): &(usize, &str)| at == 0 || line[..at].ends_with([' ', '\t']);
    line.match_indices('#').find(begins).map_or(line, |(at, _)| &line[..at])
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Returns the value without quotes; `None` if it is not a plain or quoted text of one line.
fn plain(value: &str) -> Option<&str> {
    for quote in ['"', '\''] {
        if let Some(rest) = value.strip_prefix(quote) {
            return rest.strip_suffix(quote).filter(|inner| !inner.contains([quote, '\\']));
        }
    }
    let is_other = value.starts_with(['[', '{', '|', '>', '&', '*', '!', '%', '@', '`', '-', '?'])
        && value.parse::<f64>().is_err();
    (!is_other && !value.contains('\\')).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_and_keys_become_lines_of_a_key_file() {
        let yaml = "# a comment\n---\nproperty:\n  gie-unique-id: 2 # that\n  offsets: 1;2\n\nclass-attrs-all:\n    \
                    topk: \"20\"\n    border-color: '0;1;1;1'\n    roi: -1\n    name: a#b";
        let expected = "\n\n[property]\ngie-unique-id=2\noffsets=1;2\n\n[class-attrs-all]\ntopk=20\n\
                        border-color=0;1;1;1\nroi=-1\nname=a#b\n";
        assert_eq!(to_key_file(yaml).unwrap(), expected);
    }

    #[test]
    fn other_parts_of_yaml_are_refused_with_their_line() {
        for (yaml, line) in [
            ("property:\n  a: [1, 2]", 2),
            ("property:\n  a: 1\n  - b", 3),
            ("a: 1", 1),
            ("  a: 1", 1),
            ("property:\n\ta: 1", 2),
            ("property:\n  a: |", 2),
            ("property:\n  a:1", 2),
            ("property:\n  a: \"x\\n\"", 2),
            ("property:\n  a: &x 1", 2),
            ("{property: {a: 1}}", 1),
            ("property\n", 1),
        ] {
            let error = to_key_file(yaml).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: expected GROUP:")), "{error}");
        }
    }
}
