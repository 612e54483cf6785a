// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that `docs/troubleshooting.md` quotes exist, the core names no setting of a host, and README.md has the known versions
//! of DeepStream.

use std::path::{Path, PathBuf};

use gst::prelude::*;

/// Collects every `.rs` file below `folder`.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Returns the lines of code in `text`, without comments and unit tests. String literals that
/// continue on the next line are joined.
fn lines(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]\nmod tests").next().expect("there is a first part");
    let code: Vec<&str> =
        text.lines().map(str::trim_start).filter(|line| !line.starts_with("//")).collect();
    let joined = code.join("\n").replace("\\\n", "");
    joined.lines().map(str::to_owned).collect()
}

/// Returns the texts between backticks.
fn code_spans(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Returns true if `line` contains, in order, the parts of `message` that `...` separates.
fn has(line: &str, message: &str) -> bool {
    let mut rest = line;
    message.split("...").all(|part| match rest.find(part) {
        Some(at) => {
            rest = &rest[at + part.len()..];
            true
        }
        None => false,
    })
}

/// The messages that a section of the document quotes.
fn quoted<'a>(document: &'a str, section: &str) -> Vec<&'a str> {
    let (_, rest) = document.split_once(section).expect("the section exists");
    let rows = rest.split("\n## ").next().expect("there is a first part").lines();
    let cells =
        rows.filter(|line| line.starts_with("| `")).filter_map(|row| row.split(" | ").next());
    // The elements follow in parentheses.
    cells.flat_map(|cell| code_spans(cell.strip_suffix(" (a warning)").unwrap_or(cell))).collect()
}

/// The lines with texts in the sources below these folders.
fn texts(folders: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for folder in folders {
        sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder), &mut files);
    }
    let all = files.iter().flat_map(|file| lines(&std::fs::read_to_string(file).unwrap()));
    all.filter(|line| line.contains('"')).collect()
}

#[test]
fn messages_in_the_document_are_texts_of_the_elements() {
    let document = include_str!("../docs/troubleshooting.md");
    let others = ["inference/src", "src/elements/detectionjson", "core/src/device"];
    for (section, folders) in
        [("## Messages of nmsfilter", &["core/src", "src"][..]), ("## Other messages", &others)]
    {
        let (texts, quoted) = (texts(folders), quoted(document, section));
        assert!(quoted.len() > 6 && texts.len() > 30, "{quoted:?}, {} texts", texts.len());
        for message in quoted {
            assert!(texts.iter().any(|text| has(text, message)), "{message} is in no table");
        }
    }
}

/// The words of an interface are in its own table.
#[test]
fn the_core_names_no_setting_of_a_host() {
    gst::init().unwrap();
    gstnmsfilter::plugin_register_static().unwrap();
    let element = gst::ElementFactory::make("nmsfilter").build().unwrap();
    let properties = element.list_properties();
    let names = properties.iter().map(|property| property.name()).filter(|name| name.contains('-'));
    let mut words: Vec<String> = names.map(str::to_owned).collect();
    words.extend(["NMSFILTER_", "nvinfer", "nmsfilter_set", "GST_"].map(str::to_owned));
    assert!(words.iter().any(|word| word == "num-classes"), "{words:?}");
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src"), &mut files);
    for file in files {
        for line in lines(&std::fs::read_to_string(&file).unwrap()) {
            // A text is between quotation marks.
            for text in line.split('"').skip(1).step_by(2) {
                let found = words.iter().find(|word| text.contains(word.as_str()));
                assert_eq!(found, None, "{}: {line}", file.display());
            }
        }
    }
}

#[test]
fn the_readme_names_the_known_versions_of_deepstream() {
    let known = gstnmsfilter::deepstream::layout::known_versions();
    assert!(include_str!("../README.md").contains(&format!("({known})")), "{known}");
}
