// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of nvinfer's keys and groups.
//!
//! In: the groups and keys of a configuration. Out: a warning for each key that is a misspelling of one that is read, or in
//! another group, with the name that was probably meant. nvinfer itself reports keys that it does not have.

use super::attributes::CLASS_KEYS;
use super::keys::{KeyTable, Keys};
use super::{ALL_CLASSES, CLASS_PREFIX, PROPERTIES, PROPERTY_KEYS};

/// Keys with at most so many edits are misspelled. nvinfer's own keys that are not read differ by more.
const MAX_EDITS: usize = 2;

/// Returns warnings for misspelled and misplaced keys.
pub(super) fn unknown(keys: &Keys) -> Vec<String> {
    let mut warnings = Vec::new();
    let [properties, attributes] = [names(PROPERTY_KEYS), names(CLASS_KEYS)];
    for group in &keys.groups() {
        let is_of_classes = group.starts_with(CLASS_PREFIX);
        if !is_of_classes && group != PROPERTIES {
            if let Some(meant) = nearest(group, &[PROPERTIES, ALL_CLASSES], usize::MAX) {
                let meant = if meant == PROPERTIES {
                    "[property]"
                } else {
                    "[class-attrs-all] or [class-attrs-N]"
                };
                let line = keys.line(group, None);
                warnings.push(format!(
                    "line {line}: nvinfer has no group [{group}], so that its keys have no effect; expected {meant}"
                ));
            }
            continue;
        }
        let (own, others, group_of_others) = if is_of_classes {
            (&attributes, &properties, PROPERTIES)
        } else {
            (&properties, &attributes, ALL_CLASSES)
        };
        for key in keys.of(group).iter().filter(|key| !own.contains(&key.as_str())) {
            let advice = if others.contains(&key.as_str()) {
                format!("it is a key of [{group_of_others}]")
            } else if let Some(meant) = nearest(key, own, MAX_EDITS) {
                format!("expected {meant}")
            } else {
                continue;
            };
            let line = keys.line(group, Some(key));
            warnings.push(format!(
                "line {line}: [{group}]: nvinfer has no key {key} there, so that it has no effect; {advice}"
            ));
        }
    }
    warnings
}

fn names<T>(table: &KeyTable<T>) -> Vec<&'static str> {
    table.iter().map(|(name, _)| *name).collect()
}

/// Returns the name that was probably meant: the one with the fewest edits, if they are at most `most` and a third of its
/// letters.
fn nearest<'n>(text: &str, names: &[&'n str], most: usize) -> Option<&'n str> {
    let distances = names.iter().map(|name| (distance(text, name), *name));
    let (edits, name) = distances.min_by_key(|&(edits, _)| edits)?;
    (edits <= most.min(name.len().div_ceil(3))).then_some(name)
}

/// The number of characters to insert, remove or replace (Levenshtein), ignoring case, `-` and `_`.
fn distance(a: &str, b: &str) -> usize {
    let letters = |text: &str| -> Vec<char> {
        let letters = text.chars().take(MAX_LETTERS);
        letters.map(|c| if c == '_' { '-' } else { c.to_ascii_lowercase() }).collect()
    };
    let (a, b) = (letters(a), letters(b));
    // The distance between the letters of `a` so far and each prefix of `b`.
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// More letters than any name has. Longer texts are not compared.
const MAX_LETTERS: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        unknown(&Keys::new(text, false).unwrap())
    }

    #[test]
    fn a_misspelled_key_is_named_with_its_line_and_the_nearest_one() {
        assert_eq!(
            of(
                "[property]\ngpu-id=0\n\n[class-attrs-all]\nnms-iou-treshold=0.4\npre_cluster_threshold=0.1\n"
            ),
            [
                "line 5: [class-attrs-all]: nvinfer has no key nms-iou-treshold there, so that it has no effect; \
                 expected nms-iou-threshold",
                "line 6: [class-attrs-all]: nvinfer has no key pre_cluster_threshold there, so that it has no effect; \
                 expected pre-cluster-threshold",
            ]
        );
        let of_key = |key: &str| of(&format!("[property]\n{key}=1\n")).concat();
        assert!(of_key("clustermode").ends_with("; expected cluster-mode"));
        assert!(of_key("Network-Type").ends_with("; expected network-type"));
        assert!(of_key("topk").ends_with("; it is a key of [class-attrs-all]"));
        // nvinfer's own keys that are not read, and keys of no one, which nvinfer itself reports.
        for key in ["network-mode", "enable-dla", "classifier-threshold", "my-own-setting"] {
            assert_eq!(of_key(key), "", "{key}");
        }
        let class = of("[property]\n[class-attrs-3]\ncluster-mode=2\n").concat();
        assert!(class.ends_with("; it is a key of [property]"), "{class}");
    }

    #[test]
    fn a_misspelled_group_is_named_and_groups_of_other_programs_are_not() {
        let expected = "line 2: nvinfer has no group [class-attr-all], so that its keys have no effect; expected \
                        [class-attrs-all] or [class-attrs-N]";
        assert_eq!(of("[property]\n[class-attr-all]\ntopk=3\n"), [expected]);
        assert_eq!(of("[property]\n[user-configs]\nanything=3\n[tests]\na=1\n"), [""; 0]);
    }

    #[test]
    fn distances_count_edits() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("kitten", "sitting", 3),
            ("topk", "top-k", 1),
            ("A_b", "a-b", 0),
        ] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }
}
