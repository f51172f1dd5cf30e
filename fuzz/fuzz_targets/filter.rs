//! Checks that the filter's output does not depend on how its input is split.
#![no_main]

use bowline_client::filter::Filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let filtered = |len: usize| {
        let (mut filter, mut out) = (Filter::new(), Vec::new());
        data.chunks(len).for_each(|chunk| filter.filter(chunk, &mut out));
        out
    };
    assert_eq!(filtered(1), filtered(data.len().max(1)));
});
