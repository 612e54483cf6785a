// SPDX-License-Identifier: MIT OR Apache-2.0
//! The HTTP server: a thread per connection, with one request each. In: requests. Out: the page, events,
//! pictures.
//!
//! Numbers, sizes and times are limited, so that nobody who connects can take memory, or a place for long without
//! reading. Requests have no body. (tiny_http 0.12 has no such limits.)

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::access::Access;
use super::values::Values;

const PAGE: &str = include_str!("page.html");

/// Content types of what does not end.
const EVENTS: &str = "text/event-stream";
const PICTURES: &str = "multipart/x-mixed-replace; boundary=picture";

/// Number of connections; a page has two. As many further ones are refused, others are closed.
const MAX_CONNECTIONS: usize = 64;
/// Size of a request in bytes.
const MAX_HEAD: usize = 8192;

/// Time in which a request must come, and in which each part of an answer must be taken.
const PATIENCE: Duration = Duration::from_secs(5);

/// Starts to serve.
pub fn start(listener: TcpListener, access: Access, values: Arc<Values>) {
    // Each thread has a clone.
    let access = Arc::new(access);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                // Too many files are open.
                thread::sleep(Duration::from_millis(100));
                continue;
            };
            let others = Arc::strong_count(&access) - 1;
            if others >= 2 * MAX_CONNECTIONS {
                continue;
            }
            let (access, values) = (Arc::clone(&access), Arc::clone(&values));
            // Without a thread, the connection is closed.
            let _ = thread::Builder::new().spawn(move || {
                // An error is the end of the connection.
                let _ = match others < MAX_CONNECTIONS {
                    true => serve(&stream, &access, &values),
                    false => refuse(&stream, ("503 Service Unavailable", "")),
                };
            });
        }
    });
}

/// Answers the request of a connection.
fn serve(mut stream: &TcpStream, access: &Access, values: &Values) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (kind, is_head) = match read(stream, access)? {
        Ok(request) => request,
        Err(refusal) => return refuse(stream, refusal),
    };
    begin(stream, "200 OK", kind, "")?;
    match kind {
        _ if is_head => Ok(()),
        EVENTS => send_events(stream, values),
        PICTURES => send_pictures(stream, values),
        _ => stream.write_all(PAGE.as_bytes()),
    }
}

/// The content type of what is requested, and whether only the headers are.
type Accepted = (&'static str, bool);

/// The status and further headers of a refusal.
pub type Refusal = (&'static str, &'static str);

fn read(mut stream: &TcpStream, access: &Access) -> io::Result<Result<Accepted, Refusal>> {
    let (mut bytes, mut length) = ([0; MAX_HEAD], 0);
    let deadline = Instant::now() + PATIENCE;
    while length < MAX_HEAD {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Err(("408 Request Timeout", "")));
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut bytes[length..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            count => length += count?,
        }
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut request = httparse::Request::new(&mut headers);
        match request.parse(&bytes[..length]) {
            Ok(httparse::Status::Partial) => {}
            Ok(httparse::Status::Complete(_)) => return Ok(accept(&request, access)),
            Err(httparse::Error::TooManyHeaders) => break,
            Err(_) => return Ok(Err(("400 Bad Request", ""))),
        }
    }
    Ok(Err(("431 Request Header Fields Too Large", "")))
}

fn accept(request: &httparse::Request<'_, '_>, access: &Access) -> Result<Accepted, Refusal> {
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Err(("405 Method Not Allowed", "Allow: GET, HEAD\r\n")),
    };
    access.check(request.headers)?;
    match request.path.and_then(|path| path.split('?').next()) {
        Some("/") => Ok(("text/html; charset=utf-8", is_head)),
        Some("/events") => Ok((EVENTS, is_head)),
        Some("/picture") => Ok((PICTURES, is_head)),
        _ => Err(("404 Not Found", "")),
    }
}

/// Writes status and headers. The page may load nothing from elsewhere.
fn begin(mut stream: &TcpStream, status: &str, kind: &str, headers: &str) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nCross-Origin-Resource-Policy: same-origin\r\n\
         Content-Security-Policy: default-src 'none'; img-src 'self' data:; connect-src 'self'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; frame-ancestors 'none'\r\n{headers}\r\n"
    );
    stream.write_all(head.as_bytes())
}

fn refuse(mut stream: &TcpStream, (status, headers): Refusal) -> io::Result<()> {
    begin(stream, status, "text/plain", headers)?;
    stream.write_all(format!("{status}\n").as_bytes())?;
    // Closing a connection with bytes that were not read would discard the answer.
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
    let (begin, mut bytes) = (Instant::now(), [0; MAX_HEAD]);
    while begin.elapsed() < PATIENCE && stream.read(&mut bytes)? > 0 {}
    Ok(())
}

fn send_events(mut stream: &TcpStream, values: &Values) -> io::Result<()> {
    let mut next = 0;
    loop {
        for event in values.events(&mut next) {
            stream.write_all(format!("data: {event}\n\n").as_bytes())?;
        }
    }
}

fn send_pictures(mut stream: &TcpStream, values: &Values) -> io::Result<()> {
    let mut viewer = values.viewer();
    limit_buffer(stream);
    stream.write_all(b"--picture\r\n")?;
    loop {
        let Some(picture) = viewer.next() else {
            check_is_there(stream)?;
            continue;
        };
        let size = picture.len();
        write!(stream, "Content-Type: image/jpeg\r\nContent-Length: {size}\r\n\r\n")?;
        stream.write_all(&picture)?;
        // A browser shows a picture when it has the next boundary.
        stream.write_all(b"\r\n--picture\r\n")?;
    }
}

/// Limits what waits in the kernel for a slow viewer to about two pictures, so that it sees new ones.
fn limit_buffer(stream: &TcpStream) {
    let size: libc::c_int = 1 << 17;
    let (value, length) = ((&raw const size).cast(), size_of_val(&size) as libc::socklen_t);
    let (socket, level) = (stream.as_raw_fd(), libc::SOL_SOCKET);
    // SAFETY: the socket is open, and the value is an int. If it fails, pictures come late only.
    unsafe { libc::setsockopt(socket, level, libc::SO_SNDBUF, value, length) };
}

/// Returns an error if the viewer has closed the connection.
fn check_is_there(stream: &TcpStream) -> io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_millis(1)))?;
    match stream.peek(&mut [0]) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}
