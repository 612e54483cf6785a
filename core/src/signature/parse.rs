// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the text of signatures.

use super::{InputLayout, Normalization, Pattern, Signature};
use crate::geometry::Letterbox;
use crate::tensor::ElementType::{self, F16, F32, I32, I64, U8};

const NUMBERS: &[ElementType] = &[F32, F16, I64, I32];

/// The signatures of a text; an error is the line that cannot be read.
pub(super) fn signatures(text: &'static str) -> Result<Vec<Signature>, &'static str> {
    let mut all: Vec<Signature> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            Some(name) => all.push(Signature { name, ..Signature::default() }),
            None => all.last_mut().and_then(|last| set(last, line)).ok_or(line)?,
        }
    }
    Ok(all)
}

fn set(signature: &mut Signature, line: &'static str) -> Option<()> {
    let (key, value) = line.split_once(" = ")?;
    let facts = &mut signature.facts;
    let unit = Normalization { range: [0.0, 1.0], mean: [0.0; 3], std: [1.0; 3] };
    match (key, value) {
        ("models", _) => signature.models = value,
        ("source", _) => signature.source = value,
        ("left", _) => signature.left = value,
        ("input" | "input?", _) => signature.inputs.push(pattern(value, key.ends_with('?'))?),
        ("output" | "output?" | "unread" | "unread?", _) => {
            let is_unread = key.starts_with("unread");
            signature.outputs.push(Pattern { is_unread, ..pattern(value, key.ends_with('?'))? });
        }
        ("frame", "stretched") => facts.letterbox = Letterbox::None,
        ("frame", "center") => facts.letterbox = Letterbox::Center,
        ("frame", "top-left") => facts.letterbox = Letterbox::TopLeft,
        ("size", _) => facts.size = Some(numbers(value)?),
        ("layout", "nchw") => facts.layout = Some(InputLayout::Nchw),
        ("layout", "nhwc") => facts.layout = Some(InputLayout::Nhwc),
        ("channels", "bgr") => facts.is_bgr = true,
        ("range", _) => facts.normalization.get_or_insert(unit).range = numbers(value)?,
        ("mean", _) => facts.normalization.get_or_insert(unit).mean = numbers(value)?,
        ("std", _) => facts.normalization.get_or_insert(unit).std = numbers(value)?,
        ("pixels", "vary") => facts.pixels_vary = true,
        ("usual", "yes") => signature.is_usual = true,
        ("suppression", "model" | "queries") => {
            facts.is_suppressed = true;
            facts.selects_pairs = value == "queries";
        }
        _ => return None,
    }
    Some(())
}

/// As many numbers as the array has.
fn numbers<N: std::str::FromStr, const COUNT: usize>(text: &str) -> Option<[N; COUNT]> {
    let numbers: Option<Vec<N>> = text.split(' ').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

fn pattern(text: &'static str, is_optional: bool) -> Option<Pattern> {
    let (form, meaning) = text.split_once(" = ").unwrap_or((text, ""));
    let [name, types, dims] = *form.split(' ').collect::<Vec<_>>() else { return None };
    let types = match types {
        "float" => &NUMBERS[..2],
        "integer" => &NUMBERS[2..],
        "number" => NUMBERS,
        "byte" => &[U8],
        _ => return None,
    };
    let mut logits = None;
    let (meaning, further) = meaning.split_once(' ').unwrap_or((meaning, ""));
    match *further.split(' ').collect::<Vec<_>>() {
        [""] | ["of", "images"] | ["with" | "without", "background"] => {}
        ["or", id, "from", column] => logits = Some((id, column.parse().ok()?)),
        _ => return None,
    }
    Some(Pattern {
        form,
        name,
        types,
        dims,
        is_optional,
        is_unread: false,
        meaning,
        has_images: further == "of images",
        background: further.strip_suffix(" background").map(|it| it == "with"),
        logits,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_of_signatures() {
        let text = include_str!("signatures.txt");
        let all = signatures(text).unwrap();
        assert_eq!(text.matches("\nframe = ").count(), all.len());
        assert!(all.iter().all(|it| !it.models.is_empty() && !it.source.is_empty()));
        assert!(all.iter().all(|it| !it.inputs.is_empty() && !it.outputs.is_empty()));
        for line in ["frame = left", "input = a float", "mean = 1 2", "size = 1", "a", "[b"] {
            let text: &'static str = format!("[a]\n{line}\n").leak();
            assert_eq!(signatures(text).err(), Some(line));
        }
    }
}
