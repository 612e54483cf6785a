// SPDX-License-Identifier: MIT OR Apache-2.0
//! The forms of label files.
//!
//! In: the text of a file. Out: the labels by class. A class without a label has an empty one.
//!
//! | form | example | labels |
//! | --- | --- | --- |
//! | lines | `person`, `car` | the first line is class 0; a blank line is a class without a label |
//! | numbered lines | `0  person`, `4: car` | by their numbers; other classes have no label |
//! | list or dictionary of JSON or Python | `["person", "car"]`, `{"0": "person"}`, `{"person": 0}` | by their order or numbers |
//!
//! Other forms are refused, because their lines would be taken for labels. The whole file has one form: lines are
//! numbered if all of them begin with a number, in ascending order. A label can begin with a number, too (`2 wheeler`): if
//! a single space follows the numbers, they are class numbers only if they begin with 0 or 1 and the rest differs.

use nmsfilter_core::decoder::MAX_CLASSES;
use nmsfilter_core::signature::parse_names;

/// The labels of a file.
#[derive(Debug, Default, PartialEq)]
pub(super) struct FileLabels {
    /// The labels by class; none if the file has no label.
    pub names: Vec<String>,
    /// True if the file has the numbers of the classes.
    pub are_numbered: bool,
}

/// Returns the labels of a file with this text.
///
/// # Errors
/// If the file has a form that is not read. The error names the form.
pub(super) fn parse(text: &str) -> Result<FileLabels, String> {
    if let Some(names) = parse_names(text) {
        let names = names.iter().map(|name| name.trim().to_owned()).collect();
        return Ok(FileLabels { names, are_numbered: text.trim_start().starts_with('{') });
    }
    if is_data(text) {
        return Err("is neither a list of names nor a dictionary of class numbers and names".into());
    }
    let all = text.trim_end().lines();
    let lines: Vec<&str> = all.clone().map(str::trim).filter(|line| !line.is_empty()).collect();
    for (number, line) in (1..).zip(all.clone()) {
        if is_key(line) {
            return Err(format!("is YAML or a program: line {number} is {:?}", shortened(line)));
        }
        if is_item(line.trim()) {
            let line = shortened(line);
            return Err(format!("is a label map of protocol buffers: line {number} is {line:?}"));
        }
    }
    if lines.iter().all(|line| line.starts_with("- ")) && !lines.is_empty() {
        return Err("is a list of YAML: each line begins with \"- \"".into());
    }
    if let [line] = lines[..]
        && let Some(separator) = [';', ','].into_iter().find(|it| line.contains(*it))
    {
        return Err(format!(
            "is one line with {separator:?} between names (a single label with this character: [\"a{separator} b\"])"
        ));
    }
    if let Some(names) = numbered(&lines)? {
        return Ok(FileLabels { names, are_numbered: true });
    }
    let names = all.map(|line| line.trim().to_owned()).collect();
    unread(&lines).map_or(Ok(FileLabels { names, are_numbered: false }), Err)
}

/// The beginning of a line, for messages.
fn shortened(line: &str) -> String {
    line.trim().chars().take(40).collect()
}

/// True if the text begins as JSON or a value of Python does. A label can begin with a bracket, too, as in `[PAD]`.
fn is_data(text: &str) -> bool {
    let text = text.trim_start();
    let is_in = |open, next: fn(char) -> bool| {
        text.strip_prefix(open).and_then(|it| it.trim_start().chars().next()).is_some_and(next)
    };
    is_in('{', |next| next.is_ascii_digit() || "'\"}".contains(next))
        || is_in('[', |next| "'\"[{]".contains(next))
        || is_in('(', |next| "'\"".contains(next))
}

/// True if a line is a key of YAML or an assignment of a program, with names after it or in the next lines.
fn is_key(line: &str) -> bool {
    const KEYS: [&str; 5] = ["names", "labels", "classes", "id2label", "label2id"];
    let end = line.find(|it: char| it != '_' && !it.is_alphanumeric()).unwrap_or(line.len());
    let (key, rest) = line.split_at(end);
    let Some(value) = rest.trim_start().strip_prefix([':', '=']) else { return false };
    !key.is_empty() && (KEYS.contains(&key) || value.trim_start().starts_with(['[', '{', '(']))
}

/// True if a line begins an item of a label map.
fn is_item(line: &str) -> bool {
    line.strip_prefix("item")
        .is_some_and(|rest| rest.trim_start_matches([' ', ':']).starts_with('{'))
}

/// A line that begins with a number.
struct Numbered<'a> {
    class: usize,
    label: &'a str,
    /// True if more than a single space is between number and label.
    is_set_apart: bool,
}

impl<'a> Numbered<'a> {
    fn of(line: &'a str) -> Option<Self> {
        let end = line.find(|it: char| !it.is_ascii_digit()).unwrap_or(line.len());
        let (number, rest) = line.split_at(end);
        let class = number.parse().ok()?;
        let after = rest.trim_start();
        let label = match after.strip_prefix([':', '=']) {
            Some(label) => Some(label),
            None => rest.strip_prefix(['.', ')']).filter(|it| it.starts_with(char::is_whitespace)),
        };
        if let Some(label) = label {
            // A ratio or a time, as in 16:9.
            let is_number = label.starts_with(|it: char| it.is_ascii_digit());
            return (!is_number).then_some(Self { class, label: label.trim(), is_set_apart: true });
        }
        let is_label = rest.len() > after.len() && !after.starts_with([',', ';', '|']);
        let is_set_apart = rest.len() > after.len() + 1 || rest.starts_with('\t');
        (is_label && !after.contains('\t')).then_some(Self { class, label: after, is_set_apart })
    }
}

/// Returns the labels of lines that are all numbered; `None` if they are not.
fn numbered(lines: &[&str]) -> Result<Option<Vec<String>>, String> {
    let found: Option<Vec<Numbered<'_>>> = lines.iter().map(|line| Numbered::of(line)).collect();
    let Some(found) = found.filter(|found| !found.is_empty()) else { return Ok(None) };
    let are_set_apart = found.iter().all(|it| it.is_set_apart);
    let descent = found.windows(2).position(|pair| pair[0].class >= pair[1].class);
    if let Some(index) = descent {
        let line = shortened(lines[index + 1]);
        let error = format!("has class numbers that do not ascend, at {line:?}");
        return if are_set_apart { Err(error) } else { Ok(None) };
    }
    let (first, last) = (found[0].class, found[found.len() - 1].class);
    if !are_set_apart {
        let mut labels: Vec<&str> = found.iter().map(|it| it.label).collect();
        labels.sort_unstable();
        labels.dedup();
        // The rest is a unit, as in 0 degrees, 90 degrees, or the only line is a label.
        if labels.len() == 1 && (found.len() > 1 || first > 0) {
            return Ok(None);
        }
        let is_gapless = last - first + 1 == found.len();
        if first > 1 || first == 1 && !is_gapless && labels.len() < found.len() {
            return Err(format!(
                "has lines that begin with numbers which may be class numbers or parts of labels, such as {:?}; write a \
                 colon after class numbers (3: red), or class numbers before labels (0: 3 red)",
                shortened(lines[0])
            ));
        }
    }
    if last >= MAX_CLASSES {
        return Err(format!("has the class number {last}; expected a number below {MAX_CLASSES}"));
    }
    let mut names = vec![String::new(); last + 1];
    for Numbered { class, label, .. } in found {
        names[class] = label.to_owned();
    }
    Ok(Some(names))
}

/// Returns the form of lines that are not labels: tables, lines that end with a number, and numbered lines with a header.
fn unread(lines: &[&str]) -> Option<String> {
    /// From here on, lines that end with consecutive numbers are no accident.
    const MIN_LINES: usize = 3;
    let (&first, rest) = lines.split_first()?;
    if rest.is_empty() {
        return None;
    }
    for separator in [',', ';', '\t', ':'] {
        let count = first.matches(separator).count();
        let is_even = lines.iter().all(|line| line.matches(separator).count() == count);
        let is_number =
            |field: Option<&str>| field.is_some_and(|it| it.trim().parse::<f32>().is_ok());
        let has_numbers =
            |column| rest.iter().all(|line| is_number(line.split(separator).nth(column)));
        let is_table = match separator {
            '\t' => true,
            ':' => count > 1,
            _ => (0..=count).any(has_numbers),
        };
        if count > 0 && is_even && is_table {
            return Some(format!("is a table: each line has {count} times {separator:?}"));
        }
    }
    if rest.len() > 1
        && Numbered::of(first).is_none()
        && let Ok(Some(names)) = numbered(rest)
        && names.iter().position(|name| !name.is_empty()).is_some_and(|first| first <= 1)
    {
        let header = shortened(first);
        return Some(format!("has numbered lines after the line {header:?}; remove this line"));
    }
    let last = |line: &&str| {
        let (name, number) = line.rsplit_once([' ', ':', '='])?;
        Some((name.trim().to_owned(), number.parse::<usize>().ok()?))
    };
    let found: Vec<(String, usize)> = lines.iter().map(last).collect::<Option<_>>()?;
    let is_consecutive = found.windows(2).all(|pair| pair[0].1.checked_add(1) == Some(pair[1].1));
    let has_names = found.iter().any(|(name, _)| *name != found[0].0);
    let is_listed = found.len() >= MIN_LINES && found[0].1 <= 1;
    (is_listed && is_consecutive && has_names)
        .then(|| format!("has lines with a number after the name, such as {:?}", shortened(first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The labels, and whether they are numbered.
    fn read(text: &str) -> (Vec<String>, bool) {
        let read = parse(text).unwrap_or_else(|error| panic!("{text:?} {error}"));
        (read.names, read.are_numbered)
    }

    fn names<const N: usize>(names: [&str; N]) -> Vec<String> {
        names.map(str::to_owned).to_vec()
    }

    #[test]
    fn numbered_lines_are_labels_by_their_numbers() {
        let gaps = names(["red", "", "", "", "blue", "", "", "green"]);
        for text in [
            "0  red\n4  blue\n7  green\n",
            "0 red\n4 blue\n7 green",
            "0: red\r\n4: blue\r\n7: green\r\n",
            "0:red\n\n4:blue\n7 : green\n",
            "0\tred\n4\tblue\n7\tgreen",
            "  0. red\n  4. blue\n  7. green\n",
            "0) red\n4) blue\n7) green\n",
            "0=red\n4=blue\n7=green\n",
            "{\"0\": \"red\", \"7\": \"green\", \"4\": \"blue\"}",
            "{0: 'red',\n 4: 'blue',\n 7: 'green'}\n",
            "{\"red\": 0, \"blue\": 4, \"green\": 7}",
        ] {
            assert_eq!(read(text), (gaps.clone(), true), "{text:?}");
        }
        // A trainer's joined class, and the numbers of COCO, which begin with 1.
        assert_eq!(read("0 person\n1 car\n2 car").0, names(["person", "car", "car"]));
        assert_eq!(read("1 person\n3 traffic light").0, names(["", "person", "", "traffic light"]));
        assert_eq!(read("1 person\n2 car\n3 car").0, names(["", "person", "car", "car"]));
        assert_eq!(read("4  blue\n7  green").0[4..], names(["blue", "", "", "green"]));
        assert_eq!(read("0 person").0, names(["person"]));
        assert_eq!(read("0: a, b\n1:\n2: c").0, names(["a, b", "", "c"]));
        assert_eq!(read("[\"tench, Tinca tinca\"]"), (names(["tench, Tinca tinca"]), false));
        assert_eq!(read("[\n \"red\",\n \" blue\"\n]"), (names(["red", "blue"]), false));
    }

    #[test]
    fn plain_lines_stay_plain() {
        for lines in [
            &["7-eleven", "2 wheeler", "car"][..],
            &["2 wheeler", "4 wheeler"],
            &["2 wheeler"],
            &["1 euro", "2 euro"],
            &["0 degrees", "90 degrees", "180 degrees"],
            &["1 cent", "2 cent", "5 cent", "10 cent", "1 euro", "2 euro"],
            &["5 of hearts", "4 of hearts", "3 of clubs"],
            &["0", "1", "2", "3"],
            &["16:9", "21:9"],
            &["10:30", "11:30", "12:00"],
            &["0.5 mm", "1.5 mm", "2.5 mm"],
            &["tench, Tinca tinca", "goldfish, Carassius auratus"],
            &["bolt, hex, M6", "nut", "washer, flat"],
            &["class 0", "class 1", "class 2"],
            &["boeing 737", "airbus 320", "boeing 747"],
            &["[PAD]", "[UNK]"],
            &["item", "name tag", "id card"],
            &["car", "2 wheeler", "4 wheeler"],
            &["n01440764 tench", "n01443537 goldfish"],
            &["names", "labels"],
            &["- other", "car"],
            &["person"],
            &["größe", "猫"],
            &["a;b", "c"],
            &["(background)", "{x", "person: adult", "person: child"],
        ] {
            let labels: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            assert_eq!(read(&lines.join("\n")), (labels, false), "{lines:?}");
        }
    }

    #[test]
    fn other_forms_are_refused_and_named() {
        for (text, expected) in [
            ("path: x\nnc: 3\nnames:\n  0: red\n  1: green\n", "line 3 is \"names:\""),
            ("train: a\nnames: ['red', 'green']\n", "line 2 is \"names: ['red', 'green']\""),
            ("CLASSES = (\n  'red',\n  'green')\n", "line 1 is \"CLASSES = (\""),
            ("- red\n- green\n", "list of YAML"),
            ("item {\n  id: 1\n  name: 'red'\n}\n", "line 1 is \"item {\""),
            ("# x\nitem{ name: \"red\" id: 1 }", "line 2 is"),
            ("red;green;blue\n", "one line with ';'"),
            ("red, green, blue", "one line with ','"),
            ("0: red, 1: green", "one line with ','"),
            ("id,name\n0,red\n1,green\n", "a table: each line has 1 times ','"),
            ("name,r,g,b\nred,255,0,0\ngreen,0,255,0\n", "a table: each line has 3 times ','"),
            ("0;red\n1;green\n", "a table: each line has 1 times ';'"),
            ("0 , red\n1 , green\n", "a table: each line has 1 times ','"),
            ("red\tfood\ngreen\tcar\n", "a table"),
            ("# label:color_rgb:parts:actions\nred:0,0,0::\ngreen:0,1,0::\n", "a table"),
            ("id name\n0 red\n1 green\n", "after the line \"id name\""),
            ("red 0\ngreen 1\nblue 2\n", "a number after the name, such as \"red 0\""),
            ("red: 0\ngreen: 1\nblue: 2\n", "a number after the name, such as \"red: 0\""),
            ("3 red\n5 blue\n", "such as \"3 red\"; write a colon after class numbers"),
            ("1: red\n0: blue\n", "do not ascend, at \"0: blue\""),
            ("0: red\n0: blue\n", "do not ascend, at \"0: blue\""),
            ("0: red\n65536: blue\n", "the class number 65536"),
            ("{\"categories\": [{\"id\": 1, \"name\": \"red\"}]}", "neither a list of names"),
            ("{\"id2label\": {\"0\": \"red\"}}", "neither a list of names"),
            ("[{\"id\": 0, \"name\": \"red\"}]", "neither a list of names"),
            ("[\"red\", \"green\"", "neither a list of names"),
            ("{\"0\": [\"n01\", \"red\"]}", "neither a list of names"),
            ("{\"red\": 0, \"blue\": 0}", "neither a list of names"),
        ] {
            let error = parse(text).map(|read| read.names).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }
}
