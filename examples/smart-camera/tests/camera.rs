// SPDX-License-Identifier: MIT OR Apache-2.0
//! Simulates a network camera with a TCP server that sends raw frames to one client.
//!
//! The camera can be missing (connection refused), go away (connection closed), or stop sending
//! (connection open). The program runs it as a source that starts a process, and sees the failures
//! of that process. A USB camera that is unplugged may report other errors, which are not
//! simulated.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const WIDTH: usize = 64;
const HEIGHT: usize = 48;

/// The address of a camera, which can be switched on.
pub struct Camera {
    port: u16,
}

/// A camera that is switched on.
pub struct On(TcpListener);

impl Camera {
    /// Makes a camera that is off. Its port is reserved, but nothing listens on it.
    pub fn off() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { port: listener.local_addr().unwrap().port() }
    }

    /// Returns the value of the program's argument SOURCE.
    pub fn source(&self) -> String {
        let port = self.port;
        format!(
            "bin:tcpclientsrc host=127.0.0.1 port={port} ! rawvideoparse format=rgb width={WIDTH} \
             height={HEIGHT} framerate=25/1"
        )
    }

    pub fn switch_on(&self) -> On {
        On(TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).unwrap())
    }
}

impl On {
    /// Waits for a client and sends it frames, one every 20 ms. The stream ends when the result is
    /// dropped.
    pub fn send(&self, frames: usize) -> TcpStream {
        let (mut stream, _) = self.0.accept().unwrap();
        for frame in 0..frames {
            stream.write_all(&[frame as u8; WIDTH * HEIGHT * 3]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        stream
    }
}
