// SPDX-License-Identifier: MIT OR Apache-2.0
//! Messages that DeepStream's payload generator, compiled from its published source, makes of
//! objects: of objects that the tests fill in (`objects`), and of objects that `nmsfilter` attaches
//! (`inside::messages`).

pub mod library;
mod objects;

use library::Nvmsgconv;

use crate::libraries::{Libraries, nvidia_headers, nvidia_libraries};

#[test]
fn messages_have_the_objects_that_the_element_attaches() {
    if let (Some(headers), Some(folder)) = (nvidia_headers(), Nvmsgconv::build()) {
        let variables = [(library::FOLDER, folder.to_str().unwrap())];
        Libraries::with_nvidias_headers(&headers).run("inside::messages::", &variables);
    }
}

#[test]
fn messages_have_the_objects_with_nvidias_libraries() {
    let Some(libraries) = nvidia_libraries() else { return };
    if let (Some(headers), Some(folder)) = (nvidia_headers(), Nvmsgconv::build()) {
        let variables = [(library::FOLDER, folder.to_str().unwrap())];
        Libraries::with_nvidias_libraries(&headers, &libraries)
            .run("inside::messages::", &variables);
    }
}
