// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of `--view`: what it serves, to how many, and what it refuses.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use gst::glib;
use serde_json::Value;

use crate::camera::Camera;
use crate::program::{Program, run};
use crate::refused::error;
use crate::scratch::Scratch;

const CROWD: &str =
    "bin:crowdtestsrc is-live=true ! video/x-raw,width=640,height=480,framerate=25/1 ! identity";

/// Starts the program with the view at any port of this machine.
fn start(arguments: &[&str]) -> (Program, SocketAddr) {
    start_at("127.0.0.1:0", arguments)
}

fn start_at(address: &str, arguments: &[&str]) -> (Program, SocketAddr) {
    let program = Program::start(&[arguments, &["--view", address]].concat());
    let line = program.error();
    let address = line.strip_prefix("smart-camera: the view is at http://").expect(&line);
    let port = address.strip_suffix('/').unwrap().parse::<SocketAddr>().unwrap().port();
    (program, ([127, 0, 0, 1], port).into())
}

fn connect(to: SocketAddr, request: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(to).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    // The server may have refused the request before it has all of it.
    let _ = stream.write_all(request);
    stream
}

/// Sends a request, and returns the whole answer.
fn answer(to: SocketAddr, request: &[u8]) -> String {
    let mut bytes = Vec::new();
    connect(to, request).read_to_end(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// Reads the headers of an answer, and returns them in lower case.
fn headers(stream: &mut impl BufRead) -> Vec<String> {
    let lines = stream.lines().map(|line| line.unwrap().to_ascii_lowercase());
    lines.take_while(|line| !line.is_empty()).collect()
}

/// The pictures for a viewer.
struct Pictures(BufReader<TcpStream>);

impl Pictures {
    fn open(to: SocketAddr) -> Self {
        let mut stream = BufReader::new(connect(to, &get("/picture")));
        let headers = headers(&mut stream);
        assert_eq!(headers[0], "http/1.1 200 ok");
        assert!(
            headers
                .iter()
                .any(|it| it == "content-type: multipart/x-mixed-replace; boundary=picture")
        );
        Self(stream)
    }

    fn next(&mut self) -> Vec<u8> {
        let mut boundary = String::new();
        while boundary.trim().is_empty() {
            assert!(self.0.read_line(&mut boundary).unwrap() > 0, "the stream goes on");
        }
        assert_eq!(boundary.trim(), "--picture");
        let headers = headers(&mut self.0);
        assert_eq!(headers[0], "content-type: image/jpeg");
        let length = headers[1].strip_prefix("content-length: ").unwrap().parse().unwrap();
        let mut picture = vec![0; length];
        self.0.read_exact(&mut picture).unwrap();
        picture
    }
}

/// The events for a viewer.
fn events(to: SocketAddr) -> impl Iterator<Item = Value> {
    let mut stream = BufReader::new(connect(to, &get("/events")));
    let headers = headers(&mut stream);
    assert!(headers.iter().any(|it| it == "content-type: text/event-stream"), "{headers:?}");
    let lines = stream.lines().map_while(Result::ok).filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_str(line.strip_prefix("data: ").unwrap()).unwrap())
}

/// Width and height of a JPEG picture.
fn size(jpeg: &[u8]) -> [u16; 2] {
    assert_eq!((&jpeg[..2], &jpeg[jpeg.len() - 2..]), (&[0xff, 0xd8][..], &[0xff, 0xd9][..]));
    let mut at = 2;
    while jpeg[at + 1] != 0xc0 {
        at += 2 + usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
    }
    let number = |at: usize| u16::from_be_bytes([jpeg[at], jpeg[at + 1]]);
    [number(at + 7), number(at + 5)]
}

fn end(program: Program) -> Vec<Value> {
    program.signal(libc::SIGINT);
    let ended = program.end();
    assert_eq!((ended.status, &ended.errors[..]), (Some(0), &[][..]));
    ended.lines
}

#[test]
fn the_page_has_the_pictures_and_the_counts_of_the_lines() {
    let zones =
        ["--zone", "left=0,0,0.5,1", "--zone", "right=0.5,0,0.5,1", "--line", "mid=0.5,0,0.5,1"];
    let (program, to) = start(&[&[CROWD][..], &zones].concat());
    let page = include_str!("../src/view/page.html");
    let answered = answer(to, &get("/"));
    assert!(answered.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"));
    assert_eq!(answered.split_once("\r\n\r\n").unwrap().1, page);
    for path in ["/", "/?a=b", "/picture", "/events"] {
        let head = answer(to, format!("HEAD {path} HTTP/1.0\r\n\r\n").as_bytes());
        assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    }

    let mut pictures = Pictures::open(to);
    let [first, second] = [pictures.next(), pictures.next()];
    assert_eq!((size(&first), size(&second)), ([640, 480], [640, 480]));
    assert!(first != second, "people walk");

    let found: Vec<Value> = events(to).filter(|event| !event["line"].is_null()).take(3).collect();
    drop(pictures);
    let lines = end(program);
    for event in &found {
        let line = lines.iter().find(|line| line["frame"] == event["line"]["frame"]).unwrap();
        for field in ["zones", "lines", "engine", "provider", "latency", "time"] {
            assert_eq!(event["line"][field], line[field], "{field}");
        }
        assert!(event["line"]["objects"].is_null() && event["failure"].is_null(), "{event}");
        assert!(event["line"]["zones"]["left"]["object"].is_u64(), "{event}");
    }
    let [first, last] =
        [&found[0], &found[2]].map(|event| event["line"]["frame"].as_f64().unwrap());
    assert!(found[2]["rate"].as_f64().unwrap() > 0.0 && first < last);
    // A page that is opened later has the events from the beginning on.
}

#[test]
fn a_new_viewer_gets_the_events_of_the_last_minutes() {
    let (program, to) = start(&[CROWD]);
    let first: Vec<Value> = events(to).take(3).collect();
    let again: Vec<Value> = events(to).take(3).collect();
    assert_eq!(first, again);
    end(program);
}

#[test]
fn large_pictures_are_made_smaller_and_keep_their_shape() {
    for (caps, expected) in
        [("width=1920,height=1080", [1280, 720]), ("width=600,height=1200", [360, 720])]
    {
        let source = format!("bin:videotestsrc is-live=true ! video/x-raw,{caps} ! identity");
        let (program, to) = start(&[&source]);
        assert_eq!(size(&Pictures::open(to).next()), expected);
        program.signal(libc::SIGINT);
        assert_eq!(program.end().status, Some(0));
    }
}

#[test]
fn twenty_viewers_see_pictures_beside_one_that_never_reads_and_the_lines_go_on() {
    let (program, to) = start(&[CROWD]);
    let idle = connect(to, &get("/picture"));
    let viewers: Vec<_> = (0..20)
        .map(|_| {
            std::thread::spawn(move || {
                let mut pictures = Pictures::open(to);
                let events = events(to).take(2).count();
                (0..10).map(|_| size(&pictures.next())).filter(|size| *size == [640, 480]).count()
                    + events
            })
        })
        .collect();
    for viewer in viewers {
        assert_eq!(viewer.join().unwrap(), 12);
    }
    let [first, last] = [0, 20].map(|_| program.line()["frame"].as_u64().unwrap());
    assert!(first < last);
    // The idle viewer does not hold up the end either.
    end(program);
    drop(idle);
}

#[test]
fn the_end_of_the_stream_ends_the_program_in_spite_of_viewers() {
    let (program, to) = start(&[CROWD, "--frames", "100"]);
    let (mut pictures, idle) = (Pictures::open(to), connect(to, &get("/picture")));
    let mut events = events(to);
    assert!(!pictures.next().is_empty() && events.next().is_some());
    let ended = program.end();
    assert_eq!((ended.status, ended.lines.len(), &ended.errors[..]), (Some(0), 100, &[][..]));
    drop(idle);
}

#[test]
fn requests_that_are_not_served_get_a_status_and_do_no_harm() {
    let (program, to) = start(&[CROWD]);
    let long = [b"GET / HTTP/1.1\r\na: ".to_vec(), vec![b'a'; 1 << 20]].concat();
    let many = [b"GET / HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(100), b"\r\n".to_vec()].concat();
    let other = |text: &str| text.replace("\r\n", "\r\nHost: localhost\r\n").into_bytes();
    for (request, expected) in [
        (b"\x16\x03\x01\x02\0\x01\0".to_vec(), "400 Bad Request"),
        (b"hello\r\n\r\n".to_vec(), "400 Bad Request"),
        (b"GET / HTTP/1.1\r\n\xff\0: a\r\n\r\n".to_vec(), "400 Bad Request"),
        (b"GET / HTTP/9.9\r\n\r\n".to_vec(), "400 Bad Request"),
        (long, "431 Request Header Fields Too Large"),
        (many, "431 Request Header Fields Too Large"),
        (other("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"), "405 Method Not Allowed"),
        (other("DELETE /events HTTP/1.1\r\n\r\n"), "405 Method Not Allowed"),
        (other("OPTIONS * HTTP/1.1\r\n\r\n"), "405 Method Not Allowed"),
        (get("/../etc/passwd"), "404 Not Found"),
        (get("/picture/"), "404 Not Found"),
        (get("http://localhost/"), "404 Not Found"),
        // Another site whose name leads to this machine.
        (b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n".to_vec(), "403 Forbidden"),
        // Less than a request.
        (b"GET / HTTP/1.1\r\n".to_vec(), "408 Request Timeout"),
    ] {
        let answered = answer(to, &request);
        let shown = String::from_utf8_lossy(&request[..request.len().min(50)]).into_owned();
        assert!(answered.starts_with(&format!("HTTP/1.1 {expected}\r\n")), "{shown:?}: {answered}");
        assert_eq!(
            answered.contains("Allow: GET, HEAD"),
            expected.starts_with("405"),
            "{answered}"
        );
    }
    drop(connect(to, b"GET /pic"));
    assert!(answer(to, &get("/")).starts_with("HTTP/1.1 200 OK"));
    assert_eq!(size(&Pictures::open(to).next()), [640, 480]);
    end(program);
}

#[test]
fn the_number_of_viewers_is_limited_and_those_who_never_read_lose_their_place() {
    let (program, to) = start(&[CROWD]);
    let viewers: Vec<_> = (0..64).map(|_| Pictures::open(to)).collect();
    assert!(answer(to, &get("/")).starts_with("HTTP/1.1 503 Service Unavailable"));
    let begin = std::time::Instant::now();
    while !answer(to, &get("/")).starts_with("HTTP/1.1 200 OK") {
        assert!(begin.elapsed() < Duration::from_secs(120), "there is room again");
        std::thread::sleep(Duration::from_millis(200));
    }
    drop(viewers);
    end(program);
}

#[test]
fn the_page_says_since_when_and_why_the_source_gives_no_frames() {
    let camera = Camera::off();
    let source = format!("{} ! identity name=password=geheim", camera.source());
    let (program, to) = start(&[&source, "--timeout", "1"]);
    let mut events = events(to);
    let mut wait_for = |is_it: &dyn Fn(&Value) -> bool| events.find(|event| is_it(event)).unwrap();
    let says = |event: &Value, text: &str| {
        event["failure"]["why"].as_str().is_some_and(|why| why.contains(text))
    };
    let first = wait_for(&|event| says(event, "Connection refused") && says(event, "again in 1s"));
    let second = wait_for(&|event| says(event, "again in 2s"));
    assert_eq!(first["failure"]["since"], second["failure"]["since"]);
    assert!(says(&second, "password=***") && !says(&second, "geheim"), "{second}");
    let on = camera.switch_on();
    let sent = std::thread::spawn(move || (on.send(100), on));
    let running = wait_for(&|event| event["failure"].is_null());
    assert!(running["line"]["frame"].is_u64(), "{running}");
    let (connection, on) = sent.join().unwrap();
    drop((connection, on));
    let third = wait_for(&|event| !event["failure"].is_null());
    assert!(third["failure"]["since"].as_f64() > second["failure"]["since"].as_f64(), "{third}");
    program.signal(libc::SIGINT);
    assert_eq!(program.end().status, Some(0));
}

#[test]
fn an_address_that_other_machines_reach_needs_the_token() {
    let folder = Scratch::new();
    let file = folder.join("token").into_os_string().into_string().unwrap();
    std::fs::write(&file, "0123456789abcdef0123\n").unwrap();
    let (program, to) = start_at("0.0.0.0:0", &[CROWD, "--token", &file]);
    let request = |path: &str, authorization: &str| {
        format!("GET {path} HTTP/1.1\r\nHost: camera.example\r\n{authorization}\r\n")
    };
    let basic =
        |text: &str| format!("Authorization: Basic {}\r\n", glib::base64_encode(text.as_bytes()));
    for path in ["/", "/events", "/picture", "/nothing"] {
        for authorization in [
            "",
            &basic("me:"),
            &basic("me:0123456789abcdef012"),
            "Authorization: Bearer 0123456789abcdef0123\r\n",
        ] {
            let answered = answer(to, request(path, authorization).as_bytes());
            assert!(answered.starts_with("HTTP/1.1 401 Unauthorized\r\n"), "{path}: {answered}");
            assert!(answered.contains("\r\nWWW-Authenticate: Basic realm="), "{answered}");
        }
    }
    let right = basic("me:0123456789abcdef0123");
    assert!(answer(to, request("/", &right).as_bytes()).starts_with("HTTP/1.1 200 OK"));
    assert!(answer(to, request("/nothing", &right).as_bytes()).starts_with("HTTP/1.1 404"));
    end(program);
}

#[test]
fn addresses_and_tokens_that_make_no_sense_are_refused() {
    let folder = Scratch::new();
    let short = folder.join("short").into_os_string().into_string().unwrap();
    std::fs::write(&short, "0123456789abcde\n").unwrap();
    let occupied = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = occupied.local_addr().unwrap().to_string();
    for (arguments, expected) in [
        (
            &["--view", "0.0.0.0:8080"][..],
            "--view 0.0.0.0:8080: expected --token FILE, too, since other machines",
        ),
        (&["--view", "[::]:8080"], "--view [::]:8080: expected --token FILE, too"),
        (
            &["--view", "8080"],
            "--view: expected an address and a port, such as 127.0.0.1:8080, got \"8080\"",
        ),
        (&["--view", &occupied], "Address already in use"),
        (&["--token", &short], "--token: expected --view ADDRESS:PORT, too"),
        (
            &["--view", "0.0.0.0:0", "--token", &short],
            "at least 16 characters, such as those of openssl rand -hex 16, got 15",
        ),
        (&["--view", "0.0.0.0:0", "--token", "/no/token"], "--token /no/token: No such file"),
    ] {
        let message = error(&[&["test"], arguments].concat());
        assert!(message.contains(expected), "{arguments:?}: {message}");
    }
    assert_eq!(run(&["test", "--view"]).status, Some(1));
}
