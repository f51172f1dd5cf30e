//! Operating system commands (OSC): title, colours, links, working directory, notifications.

use alacritty_terminal::term::cell::Hyperlink;
use alacritty_terminal::vte::ansi::Handler;

use super::events::clean;
use super::limits::{LINK_ID_MAX, LINK_URI_MAX, TITLE_MAX};
use super::links;
use super::palette::{self, FOREGROUND};
use super::state::State;

/// The number of palette colours.
const PALETTE: usize = 256;

impl State {
    /// Runs one command. `end` is its terminator, which a reply uses, too.
    pub(super) fn osc(&mut self, params: &[&[u8]], end: &str) {
        let [name, args @ ..] = params else { return };
        match (*name, args) {
            (b"0" | b"2", [_, ..]) => self.set_title(clean(&joined(args), TITLE_MAX)),
            (b"4", _) => args.chunks_exact(2).for_each(|pair| self.palette_colour(pair[0], pair[1], end)),
            (b"8", [params, uri @ ..]) => self.link(params, &joined(uri)),
            (b"10", _) => self.default_colours(0, args, end),
            (b"11", _) => self.default_colours(1, args, end),
            (b"12", _) => self.default_colours(2, args, end),
            (b"104", [] | [b""]) => (0..PALETTE).for_each(|index| self.term.reset_color(index)),
            (b"104", _) => args.iter().filter_map(|arg| index(arg)).for_each(|index| self.term.reset_color(index)),
            (b"110", _) => self.term.reset_color(FOREGROUND),
            (b"111", _) => self.term.reset_color(FOREGROUND + 1),
            (b"112", _) => self.term.reset_color(FOREGROUND + 2),
            (b"7", _) => self.working_directory(&joined(args)),
            (b"9" | b"99" | b"777", _) => self.notification(name, args),
            _ => {}
        }
    }

    fn palette_colour(&mut self, number: &[u8], value: &[u8], end: &str) {
        let Some(index) = index(number) else { return };
        self.colour(index, value, &format!("4;{index}"), end);
    }

    /// OSC 10, 11 and 12: sets or queries the default colours from `first` on, one per value.
    fn default_colours(&mut self, first: usize, values: &[&[u8]], end: &str) {
        for (offset, value) in (first..3).zip(values) {
            self.colour(FOREGROUND + offset, value, &(10 + offset).to_string(), end);
        }
    }

    fn colour(&mut self, index: usize, value: &[u8], name: &str, end: &str) {
        if value == b"?" {
            let colour = self.term.colors()[index].unwrap_or_else(|| self.theme.colour(index));
            self.reply(&format!("\x1b]{name};{}{end}", palette::write(colour)));
        } else if let Some(colour) = palette::parse(value) {
            self.term.set_color(index, colour);
        }
    }

    /// OSC 8: starts or ends a link.
    fn link(&mut self, params: &[u8], uri: &str) {
        let id = params
            .split(|&b| b == b':')
            .find_map(|part| part.strip_prefix(b"id="))
            .and_then(|id| std::str::from_utf8(id).ok())
            .filter(|id| id.len() <= LINK_ID_MAX && !id.chars().any(char::is_control))
            .unwrap_or_default();
        let fits = !uri.is_empty() && uri.len() <= LINK_URI_MAX && !uri.chars().any(char::is_control);
        let link = (fits && self.admit_link(uri.len() + id.len())).then(|| Hyperlink::new(Some(id), uri.to_owned()));
        if link.is_some() {
            self.report_url(uri);
        }
        self.term.grid_mut().cursor.template.set_hyperlink(link);
    }

    fn admit_link(&mut self, len: usize) -> bool {
        let mut budget = std::mem::take(&mut self.link_budget);
        let admitted = budget.admit(len, || {
            let shown = links::count_bytes(self.term.grid_mut());
            let hidden = if self.is_alt() { self.with_main(links::count_bytes) } else { 0 };
            shown + hidden
        });
        self.link_budget = budget;
        admitted
    }
}

/// Joins arguments with semicolons again, at which the parser splits them.
pub(super) fn joined(args: &[&[u8]]) -> String {
    String::from_utf8_lossy(&args.join(&b';')).into_owned()
}

fn index(number: &[u8]) -> Option<usize> {
    let number = std::str::from_utf8(number).ok()?;
    number.parse().ok().filter(|&n: &usize| n < PALETTE)
}
