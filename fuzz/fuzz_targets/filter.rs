//! Checks that the filter's output does not depend on how its input is split, that it is valid UTF-8, and that no write to
//! the clipboard in it is too long.
#![no_main]

use bowline_client::filter::{Filter, MAX_CLIPBOARD};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let filtered = |len: usize| {
        let (mut filter, mut out) = (Filter::new(), Vec::new());
        data.chunks(len).for_each(|chunk| filter.filter(chunk, &mut out));
        out
    };
    let out = filtered(data.len().max(1));
    assert_eq!(filtered(1), out);
    let text = std::str::from_utf8(&out).expect("the terminal gets valid UTF-8");
    for write in text.split("\x1b]52;").skip(1) {
        let end = write.find(|c: char| c.is_control()).unwrap_or(write.len());
        assert!(end < MAX_CLIPBOARD);
    }
});
