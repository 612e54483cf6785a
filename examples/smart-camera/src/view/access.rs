// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who may see the page. In: the address and the file with the token; the headers of a request. Out: a
//! refusal, or none.
//!
//! The token is the password of HTTP's basic authentication, for which a browser asks, so that it is
//! in no address and in no log.

use std::fs;
use std::net::{IpAddr, SocketAddr};

use gst::glib;
use subtle::ConstantTimeEq;

use super::server::Refusal;
use crate::Error;

/// Shortest token.
const MIN_TOKEN: usize = 16;

/// Refuses an address that other machines can reach, if there is no token.
pub fn check(view: Option<SocketAddr>, token: Option<&str>) -> Result<(), Error> {
    match view {
        Some(view) if !view.ip().is_loopback() && token.is_none() => Err(format!(
            "--view {view}: expected --token FILE, too, since other machines can reach this address; \
             without a token: 127.0.0.1:{}",
            view.port()
        )
        .into()),
        None if token.is_some() => Err("--token: expected --view ADDRESS:PORT, too".into()),
        _ => Ok(()),
    }
}

/// The requests that are served.
pub enum Access {
    /// Those of browsers on this machine, to which the program is reachable at a loopback address only.
    Local,
    /// Those with this token.
    Token(String),
}

impl Access {
    /// Reads the token from a file.
    pub fn new(file: Option<&str>) -> Result<Self, Error> {
        let Some(file) = file else { return Ok(Self::Local) };
        let text = fs::read_to_string(file).map_err(|error| format!("--token {file}: {error}"))?;
        let token = text.trim();
        if token.len() < MIN_TOKEN {
            return Err(format!(
                "--token {file}: expected a file with at least {MIN_TOKEN} characters, such as those of \
                 openssl rand -hex 16, got {}",
                token.len()
            )
            .into());
        }
        Ok(Self::Token(token.to_owned()))
    }

    /// Refuses a request with other headers.
    pub fn check(&self, headers: &[httparse::Header<'_>]) -> Result<(), Refusal> {
        let value = |name: &str| {
            let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
            std::str::from_utf8(header.value).ok()
        };
        match self {
            // The page of another site, whose name leads to this machine, has another host.
            Self::Local if !value("host").is_none_or(is_this_machine) => Err(("403 Forbidden", "")),
            Self::Token(token)
                if !value("authorization").is_some_and(|it| has_token(it, token)) =>
            {
                let asks = "WWW-Authenticate: Basic realm=\"the token is the password\"\r\n";
                Err(("401 Unauthorized", asks))
            }
            _ => Ok(()),
        }
    }
}

fn is_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn has_token(authorization: &str, token: &str) -> bool {
    let encoded =
        authorization.split_once(' ').filter(|(kind, _)| kind.eq_ignore_ascii_case("basic"));
    let decoded = encoded.map(|(_, encoded)| glib::base64_decode(encoded)).unwrap_or_default();
    let password = decoded.splitn(2, |&byte| byte == b':').nth(1);
    // The time of the comparison does not depend on how many characters are right.
    password.is_some_and(|password| password.ct_eq(token.as_bytes()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_are_loopback_addresses_and_localhost() {
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "[::1]", "[::1]:8080"]
        {
            assert!(is_this_machine(host), "{host}");
        }
        for host in
            ["", "evil.example", "evil.example:8080", "localhost.evil.example", "10.0.0.1", ":80"]
        {
            assert!(!is_this_machine(host), "{host}");
        }
    }

    #[test]
    fn only_the_whole_token_as_the_password_is_accepted() {
        let basic = |text: &str| format!("Basic {}", glib::base64_encode(text.as_bytes()));
        let token = "0123456789abcdef";
        assert!(has_token(&basic(":0123456789abcdef"), token));
        assert!(has_token(&basic("anybody:0123456789abcdef").replace("Basic", "basic"), token));
        for wrong in [
            "0123456789abcdef",
            ":0123456789abcde",
            ":0123456789abcdef0",
            ":",
            "",
            "a:b:0123456789abcdef",
        ] {
            assert!(!has_token(&basic(wrong), token), "{wrong}");
        }
        for wrong in
            ["", "Basic", "Basic ", "Basic ====", "Bearer 0123456789abcdef", "Basic \u{e9}"]
        {
            assert!(!has_token(wrong, token), "{wrong}");
        }
    }
}
