// SPDX-License-Identifier: MIT OR Apache-2.0
//! Stores cases as text, makes new cases from kept ones, and reduces failing cases.

use std::fs;
use std::io;
use std::path::Path;

use fastrand::Rng;

/// Maximum length of a new case in bytes.
const LONGEST: usize = 1024;

/// Converts a case to hexadecimal digits.
pub fn to_hex(case: &[u8]) -> String {
    case.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Converts hexadecimal digits to a case.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim().as_bytes();
    let pairs = digits.chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// Returns the cases in all files `*.hex` of a folder, one per line. Lines that begin with `#` are
/// comments.
///
/// # Errors
/// Returns an error if the folder or a file in it cannot be read.
pub fn load(folder: &Path) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut paths: Vec<_> =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "hex"));
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path)?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#'));
        for (number, line) in lines {
            let name = format!("{}, line {}", path.display(), number + 1);
            let case = from_hex(line)
                .ok_or_else(|| io::Error::other(format!("{name}: expected hexadecimal digits")))?;
            cases.push((name, case));
        }
    }
    Ok(cases)
}

/// Makes a new case: random bytes, or a changed copy of a kept case.
pub fn make(rng: &mut Rng, kept: &[Vec<u8>]) -> Vec<u8> {
    if kept.is_empty() || rng.u8(..) < 64 {
        let mut case = vec![0; rng.usize(1..400)];
        rng.fill(&mut case);
        return case;
    }
    let mut case = kept[rng.usize(..kept.len())].clone();
    for _ in 0..1 << rng.u32(0..4) {
        change(rng, &mut case, kept);
    }
    case.truncate(LONGEST);
    case
}

fn change(rng: &mut Rng, case: &mut Vec<u8>, kept: &[Vec<u8>]) {
    let at = rng.usize(0..=case.len());
    let end = rng.usize(at..=case.len().min(at + 16));
    match rng.u32(0..8) {
        0..3 if at < case.len() => case[at] = rng.u8(..),
        3 if at < case.len() => case[at] = case[at].wrapping_add(rng.u8(0..3)).wrapping_sub(1),
        4 => {
            case.drain(at..end);
        }
        5 => {
            let new: Vec<u8> = (0..rng.usize(1..16)).map(|_| rng.u8(..)).collect();
            case.splice(at..at, new);
        }
        6 => {
            // Continue with the end of another case.
            let other = &kept[rng.usize(..kept.len())];
            let from = rng.usize(0..=other.len());
            case.truncate(at);
            case.extend(&other[from..]);
        }
        _ => case[at..end].fill(0),
    }
}

/// Returns a shorter or simpler case for which `fails` is still true, after at most `trials`
/// trials.
pub fn shrink(mut case: Vec<u8>, mut trials: usize, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut step = case.len().div_ceil(2).max(1);
    loop {
        let mut at = 0;
        while at < case.len() {
            let end = (at + step).min(case.len());
            let shorter = [&case[..at], &case[end..]].concat();
            let mut simpler = case.clone();
            simpler[at..end].fill(0);
            let cut = case[..at].to_vec();
            let better = [cut, shorter, simpler].into_iter().find(|other| {
                let is_new = *other != case && trials > 0;
                trials -= usize::from(is_new);
                is_new && fails(other)
            });
            match better {
                Some(better) => case = better,
                None => at = end,
            }
        }
        if step == 1 || trials == 0 {
            return case;
        }
        step = step.div_ceil(2);
    }
}
