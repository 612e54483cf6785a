// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines on standard error. In: texts, some of them from GStreamer, which may contain the address
//! of a camera. Out: these texts without passwords.

/// Suffixes of parameter names whose values are passwords or other secrets. Such parameters occur
/// in addresses (`?password=...`, `?access_token=...`) and as properties of elements
/// (`user-pw=...`).
const PASSWORD_NAMES: [&str; 10] = [
    "password", "passwd", "passwort", "pwd", "pw", "token", "secret", "apikey", "api_key",
    "api-key",
];
const MASK: &str = "***";

/// Writes a line to standard error.
pub fn print(text: &str) {
    eprintln!("smart-camera: {}", without_passwords(text));
}

/// Replaces passwords by `***`, as in `rtsp://user:***@camera/` and `user-pw=***`.
pub fn without_passwords(text: &str) -> String {
    let text = without_named_passwords(text);
    let mut result = String::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("://") {
        let (before, address) = rest.split_at(at + 3);
        result += before;
        let user = password(address).map(|password| password.start);
        if let (Some(start), Some(password)) = (user, password(address)) {
            result += &address[..start];
            result += MASK;
            rest = &address[password.end..];
        } else {
            rest = address;
        }
    }
    result + rest
}

/// Returns the range of the password in the text that follows `://`. A password may contain
/// characters that should have been encoded. Therefore everything up to the last `@` in the part
/// before the path belongs to the user; if that part has no `@`, everything up to the last `@` of
/// the address does.
fn password(address: &str) -> Option<std::ops::Range<usize>> {
    let ends = |character: char| character.is_whitespace() || "\"'<>".contains(character);
    let address = &address[..address.find(ends).unwrap_or(address.len())];
    let host = &address[..address.find(['/', '?', '#']).unwrap_or(address.len())];
    let end = host.rfind('@').or_else(|| address.rfind('@'))?;
    let start = address[..end].find(':')? + 1;
    Some(start..end)
}

/// Replaces the values of password parameters by `***`.
fn without_named_passwords(text: &str) -> String {
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('=') {
        let (before, value) = rest.split_at(at + 1);
        result += before;
        let name = before[..at].to_ascii_lowercase();
        rest = value;
        if PASSWORD_NAMES.iter().any(|ending| name.ends_with(ending)) {
            let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
            let end = match quote {
                Some(quote) => value[1..].find(quote).map(|end| end + 2),
                None => value.find(|c: char| c.is_whitespace() || "&\"'".contains(c)),
            };
            result += MASK;
            rest = &value[end.unwrap_or(value.len())..];
        }
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_in_addresses_and_properties_are_masked() {
        for (text, expected) in [
            ("rtsp://me:secret@camera:554/a: refused", "rtsp://me:***@camera:554/a: refused"),
            (
                "two: rtsp://me:secret@a/ and http://you:secret@b/",
                "two: rtsp://me:***@a/ and http://you:***@b/",
            ),
            ("\"rtsp://me:sec@ret@camera/a@b\"", "\"rtsp://me:***@camera/a@b\""),
            ("rtsp://me:sec/ret@camera/a", "rtsp://me:***@camera/a"),
            ("rtsp://me:@camera/a", "rtsp://me:***@camera/a"),
            (
                "rtsp://camera/a?user=me&password=secret&b=1",
                "rtsp://camera/a?user=me&password=***&b=1",
            ),
            (
                "http://camera/a?access_token=s3cret&b=1 failed",
                "http://camera/a?access_token=***&b=1 failed",
            ),
            ("http://camera/a?api_key=s3cret: 403", "http://camera/a?api_key=*** 403"),
            ("bin:rtspsrc user-id=me user-pw=secret ! a", "bin:rtspsrc user-id=me user-pw=*** ! a"),
            ("user-pw=\"sec ret\" ! a", "user-pw=*** ! a"),
            ("rtsp://camera:554/a, rtsp://me@camera/b", "rtsp://camera:554/a, rtsp://me@camera/b"),
            ("file:///a.mp4: 10:20 a@b.c x=1", "file:///a.mp4: 10:20 a@b.c x=1"),
            ("rtsp://me:gehéim@kamera/", "rtsp://me:***@kamera/"),
        ] {
            assert_eq!(without_passwords(text), expected);
        }
    }
}
