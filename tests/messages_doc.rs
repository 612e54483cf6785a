// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every message that `docs/messages.md` quotes exists in the source, and README.md has the known versions of DeepStream.

use std::path::{Path, PathBuf};

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

#[test]
fn every_message_in_the_document_is_in_the_source() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for folder in ["core/src", "src", "inference/src", "demo/src"] {
        sources(&root.join(folder), &mut files);
    }
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let code: Vec<String> = files.iter().flat_map(|path| lines(&read(path))).collect();

    let document = std::fs::read_to_string(root.join("docs/messages.md")).unwrap();
    let rows: Vec<&str> = document.lines().filter(|line| line.starts_with("| `")).collect();
    assert!(rows.len() > 8, "{} rows", rows.len());
    let mut unknown = Vec::new();
    for row in rows {
        let messages = row.split(" | ").next().expect("a row has a first cell");
        // The elements follow in parentheses.
        let messages = messages.split(" (").next().expect("there is a first part");
        let missing = |message: &&str| !code.iter().any(|line| has(line, message));
        unknown.extend(code_spans(messages).filter(missing));
    }
    assert!(
        unknown.is_empty(),
        "docs/messages.md explains messages that are not in the sources, in these words: {unknown:#?}; \
         correct the document"
    );
}

#[test]
fn the_readme_names_the_known_versions_of_deepstream() {
    let known = gstnmsfilter::deepstream::layout::known_versions();
    assert!(include_str!("../README.md").contains(&format!("({known})")), "{known}");
}
