// SPDX-License-Identifier: MIT OR Apache-2.0
//! Parses the class names in a model's metadata, or in a label file of JSON.
//!
//! In: a Python dictionary or a JSON object that maps class numbers to names, such as `{0: 'person', 1: 'bicycle'}`
//! or `{"0": "person"}`, or names to class numbers (`{"person": 0}`), or a list of names in one of these languages. Out:
//! the names by class.

use std::str::Chars;

use crate::decoder::MAX_CLASSES;

/// Returns the names, starting with class 0. A class without a name gets an empty one. `None` if `text` has another
/// form, or two names for a class.
pub fn parse_names(text: &str) -> Option<Vec<String>> {
    let enclosed = |open, close| text.trim().strip_prefix(open)?.strip_suffix(close);
    let dictionary = enclosed('{', '}');
    let list = || enclosed('[', ']').or_else(|| enclosed('(', ')'));
    let mut rest = dictionary.or_else(list)?.trim();
    let mut names: Vec<Option<String>> = Vec::new();
    let number = |word: &str| word.trim().parse().ok();
    for index in 0.. {
        if rest.is_empty() {
            break;
        }
        let (first, is_quoted, after) = word(rest)?;
        let (class, name, is_name, after) = if dictionary.is_none() {
            (Some(index), first, is_quoted, after)
        } else {
            let value = after.trim_start().strip_prefix(':')?.trim_start();
            let (second, second_is_quoted, after) = word(value)?;
            // A class number can be in quotes, too.
            match number(&first) {
                Some(class) if second_is_quoted => (Some(class), second, true, after),
                _ => (number(&second), first, is_quoted, after),
            }
        };
        let class = class.filter(|&class| class < MAX_CLASSES && is_name)?;
        names.resize(names.len().max(class + 1), None);
        if names[class].replace(name).is_some() {
            return None;
        }
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some(names.into_iter().map(Option::unwrap_or_default).collect())
}

/// Parses the word at the start of `text`, in quotes or of digits. Returns it, whether it is in quotes, and the text after
/// it.
fn word(text: &str) -> Option<(String, bool, &str)> {
    if text.starts_with(['\'', '"']) {
        return quoted(text).map(|(word, after)| (word, true, after));
    }
    let end = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].to_owned(), false, &text[end..]))
}

/// Parses the Python or JSON string at the start of `text`. Returns the string and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut characters = text.chars();
    let quote = characters.next().filter(|&quote| quote == '\'' || quote == '"')?;
    let mut content = String::new();
    loop {
        match characters.next()? {
            '\\' => content.push(escaped(&mut characters)?),
            '\0' => return None,
            character if character == quote => return Some((content, characters.as_str())),
            character => content.push(character),
        }
    }
}

/// Returns the character that an escape sequence stands for. `characters` begins after the backslash.
fn escaped(characters: &mut Chars<'_>) -> Option<char> {
    let code = match characters.next()? {
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        'b' => return Some('\u{8}'),
        'f' => return Some('\u{c}'),
        'x' => hexadecimal(characters, 2)?,
        'U' => hexadecimal(characters, 8)?,
        'u' => match hexadecimal(characters, 4)? {
            // A high surrogate: the first half of a character in UTF-16. The second half must follow.
            high @ 0xd800..0xdc00 => {
                (characters.next()? == '\\' && characters.next()? == 'u').then_some(())?;
                let low = hexadecimal(characters, 4)?;
                (0xdc00..0xe000).contains(&low).then_some(())?;
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            code => code,
        },
        character => return Some(character),
    };
    // A label becomes a C string, which ends at the first zero byte.
    char::from_u32(code).filter(|&character| character != '\0')
}

fn hexadecimal(characters: &mut Chars<'_>, digits: u32) -> Option<u32> {
    (0..digits).try_fold(0_u32, |number, _| {
        Some(number.checked_mul(16)? + characters.next()?.to_digit(16)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(text: &str) -> Vec<String> {
        parse_names(text).unwrap_or_else(|| panic!("{text} has names"))
    }

    #[test]
    fn a_python_dictionary() {
        let text = r#"{0: 'person', 2: "driver's seat", 3: 'a\'b'}"#;
        assert_eq!(labels(text), ["person", "", "driver's seat", "a'b"]);
    }

    #[test]
    fn a_json_object() {
        assert_eq!(labels(r#"{"0": "person", "2": "cat"}"#), ["person", "", "cat"]);
        assert_eq!(labels("{\n  \"1\" : \"cat\",\n  \"0\" : \"dog\"\n}\n"), ["dog", "cat"]);
    }

    #[test]
    fn a_dictionary_of_numbers() {
        assert_eq!(labels(r#"{"cat": 2, "person": 0}"#), ["person", "", "cat"]);
        assert_eq!(labels("{'7': 0}"), ["7"]);
        assert_eq!(labels("{'1': '0'}"), ["", "0"]);
    }

    #[test]
    fn lists() {
        assert_eq!(labels(r#"["person", "cat"]"#), ["person", "cat"]);
        assert_eq!(labels("[ 'person' , \"driver's seat\", ]"), ["person", "driver's seat"]);
        assert_eq!(labels("('person', 'cat')"), ["person", "cat"]);
        for empty in ["[]", "{}", "[ ]", "()"] {
            assert_eq!(labels(empty), [""; 0], "{empty}");
        }
    }

    #[test]
    fn escape_sequences() {
        assert_eq!(
            labels(r#"["stra\u00dfe", "\ud83d\ude00", "a\/b\\c\"d", "x\ty"]"#),
            ["straße", "\u{1F600}", "a/b\\c\"d", "x\ty"]
        );
        assert_eq!(labels(r"{0: 'caf\xe9', 1: '\U0001f600'}"), ["café", "\u{1F600}"]);
        for cut in [r#"["\ud83d"]"#, r#"["\ud83dx"]"#, r#"["\ud83d\u0041"]"#, r#"["\u00"]"#] {
            assert_eq!(parse_names(cut), None, "{cut}");
        }
        for none in [r#"["\u0000"]"#, r#"["\UFFFFFFFF"]"#, r#"["\x4"]"#, r#"["\"]"#] {
            assert_eq!(parse_names(none), None, "{none}");
        }
    }

    #[test]
    fn other_text_has_no_names() {
        for text in [
            "",
            "{",
            "person",
            "{0: person}",
            "{0: 'person'",
            "{99999999: 'x'}",
            "{99999999999999999999999: 'x'}",
            "{0: 'a' 1: 'b'}",
            "['a' 'b']",
            "['a', 1]",
            "['a'",
            "['a'}",
            "{'a', 'b'}",
            r#"{"x": "a"}"#,
            "[['a']]",
            "{'person': 0, 'car': 0}",
            "{0: 'a', 0: 'b'}",
            "{0: 1}",
            "{0",
            "[,]",
            "['a\0']",
        ] {
            assert_eq!(parse_names(text), None, "{text}");
        }
    }
}
