// SPDX-License-Identifier: MIT OR Apache-2.0
//! The destination of the lines. In: the argument of `--output`. Out: a writer.

use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;

use crate::Error;

/// Prefix of a TCP server's address.
const TCP: &str = "tcp://";

/// Returns the name of the file, if the output is a file.
pub fn file(output: Option<&str>) -> Option<&str> {
    output.filter(|output| !output.starts_with(TCP))
}

/// Prints a line. A reader that has what it wants, such as `head`, closes the pipe, which is no error.
pub fn print(text: &str) -> Result<(), Error> {
    match writeln!(io::stdout(), "{text}") {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Opens an output: a TCP server, a file to which lines are appended, or standard output.
pub fn open(output: Option<&str>) -> Result<Box<dyn Write + Send>, Error> {
    let Some(output) = output else { return Ok(Box::new(io::stdout())) };
    let opened: io::Result<Box<dyn Write + Send>> = match output.strip_prefix(TCP) {
        Some(address) => TcpStream::connect(address).map(|stream| Box::new(stream) as _),
        None => {
            File::options().append(true).create(true).open(output).map(|file| Box::new(file) as _)
        }
    };
    opened.map_err(|error| format!("--output {output}: {error}").into())
}
