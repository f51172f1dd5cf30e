//! What reaches the real terminal does not depend on how its bytes were cut.
#![no_main]

use bowline_client::filter::Filter;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let filtered = |pieces: usize| {
        let (mut filter, mut out) = (Filter::new(), Vec::new());
        data.chunks(pieces).for_each(|piece| filter.filter(piece, &mut out));
        out
    };
    assert_eq!(filtered(1), filtered(data.len().max(1)));
});
