// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lists in properties.
//!
//! In: the text of a property. Out: its entries. Commas separate them; `\,` is a comma of an entry, and `\\` a
//! backslash.

/// Returns the entries of a list, without white space around them and without empty ones.
pub fn entries(list: Option<&str>) -> impl Iterator<Item = String> {
    let mut entries = vec![String::new()];
    let mut characters = list.unwrap_or_default().chars().peekable();
    while let Some(character) = characters.next() {
        let entry = entries.last_mut().expect("there is a first entry");
        match character {
            ',' => entries.push(String::new()),
            '\\' => {
                entry.push(characters.next_if(|next| [',', '\\'].contains(next)).unwrap_or('\\'))
            }
            character => entry.push(character),
        }
    }
    entries.into_iter().map(|entry| entry.trim().to_owned()).filter(|entry| !entry.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_or_backslash_after_a_backslash_is_part_of_an_entry() {
        for (list, expected) in [
            (r"cup\, glass,7", &["cup, glass", "7"][..]),
            (r"a\\,b", &[r"a\", "b"]),
            (r"a\b,c\", &[r"a\b", r"c\"]),
            (r" \, ,,\\", &[",", r"\"]),
            ("", &[]),
        ] {
            assert_eq!(entries(Some(list)).collect::<Vec<_>>(), expected, "{list}");
        }
        assert_eq!(entries(None).count(), 0);
    }
}
