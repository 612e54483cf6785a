// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs the built program as a process, with its lines, signals and exit status.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Timeout that is far longer than any step of these tests.
const PATIENCE: Duration = Duration::from_secs(120);

/// The running program.
pub struct Program {
    child: Child,
    out: Receiver<String>,
    err: Receiver<String>,
}

/// The end of the program.
pub struct Ended {
    /// Exit status; `None` if a signal ended the program.
    pub status: Option<i32>,
    /// JSON lines that were not read before.
    pub lines: Vec<Value>,
    /// Lines on standard error that were not read before.
    pub errors: Vec<String>,
}

impl Program {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_smart-camera"))
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = lines(child.stdout.take().unwrap());
        let err = lines(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// Returns the next line on standard output.
    pub fn line(&self) -> Value {
        parse(&self.out.recv_timeout(PATIENCE).expect("a line comes"))
    }

    /// Returns the next line on standard error.
    pub fn error(&self) -> String {
        self.err.recv_timeout(PATIENCE).expect("a line comes")
    }

    /// Waits until the program catches SIGINT, which it does before the source starts.
    pub fn wait_until_signals_are_handled(&self) {
        let status = format!("/proc/{}/status", self.child.id());
        let start = Instant::now();
        let is_caught = || {
            let status = std::fs::read_to_string(&status).unwrap();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            u64::from_str_radix(caught.trim(), 16).unwrap() >> (libc::SIGINT - 1) & 1 == 1
        };
        while !is_caught() {
            assert!(start.elapsed() < PATIENCE, "the program handles signals");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: the child has not been waited for, so its process id cannot belong to another
        // process.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// Waits for the end of the program.
    pub fn end(mut self) -> Ended {
        let start = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status.code(),
                None => assert!(start.elapsed() < PATIENCE, "the program ends"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let lines = self.out.iter().map(|line| parse(&line)).collect();
        Ended { status, lines, errors: self.err.iter().collect() }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // After a failed test, the program may still run. If it has ended, killing it fails.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the program to its end.
pub fn run(arguments: &[&str]) -> Ended {
    Program::start(arguments).end()
}

fn parse(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn lines(stream: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(stream).lines() {
            // Sending fails after the test has ended.
            let _ = sender.send(line.unwrap());
        }
    });
    receiver
}
