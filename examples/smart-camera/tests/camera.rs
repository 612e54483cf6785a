// SPDX-License-Identifier: MIT OR Apache-2.0
//! A network camera, as a TCP server that sends raw frames to one client.
//!
//! What is simulated: a camera that is not there yet (connection refused), that goes away (connection closed)
//! and that sends no more (connection open). It is a source of its own process and fails as such; what a USB
//! camera reports when it is unplugged is not shown.

use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const WIDTH: usize = 64;
const HEIGHT: usize = 48;

/// The address of a camera that can be switched on.
pub struct Camera {
    port: u16,
}

/// A camera that is switched on.
pub struct On(TcpListener);

impl Camera {
    /// A camera that is off: nothing else uses its port, and nothing listens there.
    pub fn off() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self { port: listener.local_addr().unwrap().port() }
    }

    /// Its name as the program's SOURCE.
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
    /// Waits for a client and sends it frames, 20 ms apart. The stream ends when the result is dropped.
    pub fn send(&self, frames: usize) -> TcpStream {
        let (mut stream, _) = self.0.accept().unwrap();
        for frame in 0..frames {
            stream.write_all(&[frame as u8; WIDTH * HEIGHT * 3]).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
        stream
    }
}
