// SPDX-License-Identifier: MIT OR Apache-2.0
//! Destinations for the lines of `detectionjson`: a file, a TCP socket, and an MQTT broker
//! (Mosquitto).

use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::pipeline::{parse, run, watch};
use crate::support::scratch::Scratch;
use crate::support::skip::skip;

/// Timeout that is far longer than any step of these tests.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of frames. Their lines differ.
const FRAMES: usize = 50;

fn source() -> String {
    format!(
        "crowdtestsrc num-buffers={FRAMES} people=20 ! video/x-raw,width=320,height=240 ! nmsfilter
           ! detectionjson name=json source=crowd"
    )
}

/// Runs a pipeline, and returns the lines that leave `detectionjson`.
fn run_lines(pipeline: &gst::Pipeline) -> Vec<String> {
    let lines = watch(pipeline, "json", |line| {
        String::from_utf8(line.map_readable().unwrap().to_vec()).expect("a line is UTF-8")
    });
    assert_eq!(run(pipeline).error, None);
    let lines = std::mem::take(&mut *lines.lock().unwrap());
    assert_eq!(lines.len(), FRAMES);
    for (index, line) in lines.iter().enumerate() {
        let frame: Value = serde_json::from_str(line).expect("a line is JSON");
        assert!(!frame["objects"].as_array().unwrap().is_empty(), "line {index}");
    }
    lines
}

#[test]
fn a_file_has_a_line_for_each_frame() {
    let folder = Scratch::new();
    let file = folder.join("out.ndjson");
    let location = file.display();
    let lines = run_lines(&parse(&format!("{} ! filesink location={location}", source())));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), lines.concat());
}

#[test]
fn a_tcp_socket_gets_a_line_for_each_frame() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let reader = std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        BufReader::new(stream).lines().collect::<Result<Vec<String>, _>>().unwrap()
    });
    let sink = format!("tcpclientsink host=127.0.0.1 port={port}");
    let lines = run_lines(&parse(&format!("{} ! {sink}", source())));
    let read = reader.join().unwrap();
    assert!(read.iter().eq(lines.iter().map(|line| line.trim_end_matches('\n'))));
}

/// A process that is killed at the end of the test.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // Killing fails if the process has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a program. Returns `None` if it is not installed.
fn start(program: &str, arguments: &[&str]) -> Option<Process> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().ok().map(Process)
}

/// Starts a broker on a free port of this machine. Returns `None` if Mosquitto is not installed.
fn broker(folder: &Scratch) -> Option<(Process, String)> {
    // Debian installs Mosquitto in a folder that only root has in its path.
    let programs = ["mosquitto", "/usr/sbin/mosquitto"];
    // Another process can take the free port before the broker opens it, so there are several
    // attempts.
    for _ in 0..5 {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let config = folder.join("mosquitto.conf");
        let text = format!("listener {port} 127.0.0.1\nallow_anonymous true\npersistence false\n");
        std::fs::write(&config, text).unwrap();
        let arguments = ["-c", config.to_str().unwrap()];
        let mut broker = programs.iter().find_map(|program| start(program, &arguments))?;
        let begin = Instant::now();
        while broker.0.try_wait().unwrap().is_none() {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
                return Some((broker, port.to_string()));
            }
            assert!(begin.elapsed() < PATIENCE, "the broker listens");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    panic!("the broker ended at once");
}

/// Returns the lines that a process prints.
fn printed(process: &mut Process) -> Receiver<String> {
    let (sender, receiver) = channel();
    let lines = BufReader::new(process.0.stdout.take().unwrap()).lines();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            // Sending fails after the test has ended.
            let _ = sender.send(line);
        }
    });
    receiver
}

/// `mosquitto_pub -l` publishes each line of its standard input, and a subscriber receives the
/// messages.
#[test]
fn a_broker_of_mqtt_gets_a_message_for_each_frame() {
    let folder = Scratch::new();
    let Some((_broker, port)) = broker(&folder) else {
        skip("mosquitto");
        return;
    };
    let to_broker = ["-h", "127.0.0.1", "-p", &port, "-q", "1", "-t"];
    let clients = |program: &str, rest: &[&str]| start(program, &[&to_broker[..], rest].concat());
    let (Some(mut subscriber), Some(mut ready), Some(mut publisher)) = (
        clients("mosquitto_sub", &["cameras/#"]),
        clients("mosquitto_pub", &["cameras/ready", "-l"]),
        clients("mosquitto_pub", &["cameras/north", "-l"]),
    ) else {
        skip("mosquitto-clients");
        return;
    };
    let messages = printed(&mut subscriber);
    // Nothing tells when the subscription is established, so messages are published until one
    // arrives.
    let mut input = ready.0.stdin.take().unwrap();
    let begin = Instant::now();
    loop {
        input.write_all(b"ready\n").unwrap();
        if messages.recv_timeout(Duration::from_millis(100)).is_ok() {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "the subscriber gets messages");
    }
    drop(input);
    assert!(ready.0.wait().unwrap().success());

    // This is equivalent to the shell command PIPELINE ! fdsink | mosquitto_pub -l.
    let input = publisher.0.stdin.take().unwrap();
    let lines = run_lines(&parse(&format!("{} ! fdsink fd={}", source(), input.as_raw_fd())));
    drop(input);
    assert!(publisher.0.wait().unwrap().success());
    let mut received = std::iter::from_fn(|| messages.recv_timeout(PATIENCE).ok())
        .filter(|message| message != "ready");
    for (index, line) in lines.iter().enumerate() {
        assert_eq!(received.next().as_deref(), Some(line.trim_end_matches('\n')), "{index}");
    }
}
