//! The terminal's state: the emulator's grids, and what the emulator keeps private or does not support.

use std::mem;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, Mode, NamedMode, NamedPrivateMode, PrivateMode};
use bowline_proto::size::Size;

use super::dcs::DeviceString;
use super::events::Events;
use super::limits::{REPLIES_MAX, SCROLLBACK_MAX};
use super::links::LinkBudget;
use super::modes::Modes;
use super::notify::PartialNotification;
use super::palette::Theme;
use super::repair;
use super::url_finder::UrlFinder;

/// The whole state except for the parser's.
pub(super) struct State {
    pub(super) term: Term<VoidListener>,
    pub(super) size: Size,
    pub(super) modes: Modes,
    /// The scroll region: its first row, and the row after its last one.
    pub(super) region: (usize, usize),
    pub(super) tabs: Vec<bool>,
    pub(super) charset: CharsetIndex,
    pub(super) title: String,
    /// The title stack.
    pub(super) titles: Vec<String>,
    /// The last thing parsed was a character, so REP repeats the cell before the cursor.
    pub(super) printed: bool,
    /// The current modes or scroll region need `print_slow`: the emulator's own printing gets them wrong.
    pub(super) slow_print: bool,
    /// The operating system command being parsed is too long, and is ignored at its end.
    pub(super) discard_osc: bool,
    pub(super) device_string: DeviceString,
    pub(super) theme: Theme,
    pub(super) replies: Vec<u8>,
    pub(super) events: Events,
    pub(super) partial_notification: PartialNotification,
    pub(super) link_budget: LinkBudget,
    pub(super) urls: UrlFinder,
}

/// Adapts a size to the emulator's trait.
struct Area(Size);

impl Dimensions for Area {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }
    fn screen_lines(&self) -> usize {
        usize::from(self.0.rows())
    }
    fn columns(&self) -> usize {
        usize::from(self.0.cols())
    }
}

impl State {
    pub(super) fn new(size: Size, scrollback: usize) -> State {
        let config = Config { scrolling_history: scrollback.min(SCROLLBACK_MAX), ..Config::default() };
        State {
            term: Term::new(config, &Area(size), VoidListener),
            size,
            modes: Modes::default(),
            region: (0, usize::from(size.rows())),
            tabs: default_tabs(usize::from(size.cols())),
            charset: CharsetIndex::G0,
            title: String::new(),
            titles: Vec::new(),
            printed: false,
            slow_print: false,
            discard_osc: false,
            device_string: DeviceString::default(),
            theme: Theme::default(),
            replies: Vec::new(),
            events: Events::default(),
            partial_notification: PartialNotification::default(),
            link_budget: LinkBudget::default(),
            urls: UrlFinder::default(),
        }
    }

    pub(super) fn cols(&self) -> usize {
        usize::from(self.size.cols())
    }

    pub(super) fn rows(&self) -> usize {
        usize::from(self.size.rows())
    }

    pub(super) fn is_alt(&self) -> bool {
        self.term.mode().contains(TermMode::ALT_SCREEN)
    }

    pub(super) fn grid(&self) -> &Grid<Cell> {
        self.term.grid()
    }

    /// The cursor's row and column.
    pub(super) fn cursor(&self) -> (usize, usize) {
        let point = self.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
    }

    /// Moves the cursor, clamped to the screen, and cancels a pending wrap.
    pub(super) fn set_cursor(&mut self, row: usize, col: usize) {
        let (row, col) = (row.min(self.rows() - 1), col.min(self.cols() - 1));
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.line = Line(row as i32);
        cursor.point.column = Column(col);
        cursor.input_needs_wrap = false;
    }

    /// The rows that CUP addresses: the scroll region in origin mode, otherwise the whole screen.
    pub(super) fn addressable_rows(&self) -> (usize, usize) {
        if self.modes.origin { self.region } else { (0, self.rows()) }
    }

    /// CUP: moves the cursor to a row and column, counted from 0 at the start of the addressable rows.
    pub(super) fn address_cursor(&mut self, row: usize, col: usize) {
        let (top, bottom) = self.addressable_rows();
        self.set_cursor((top + row).min(bottom - 1), col);
    }

    /// Queues a reply to a query, or drops it if there are too many.
    pub(super) fn reply(&mut self, reply: &str) {
        if self.replies.len() + reply.len() <= REPLIES_MAX {
            self.replies.extend_from_slice(reply.as_bytes());
        }
    }

    pub(super) fn resize(&mut self, size: Size) {
        if size == self.size {
            return;
        }
        self.term.resize(Area(size));
        if size.cols() != self.size.cols() {
            let kept = self.tabs.len().min(usize::from(size.cols()));
            let mut tabs = default_tabs(usize::from(size.cols()));
            tabs[..kept].copy_from_slice(&self.tabs[..kept]);
            self.tabs = tabs;
        }
        self.size = size;
        self.region = (0, self.rows());
        self.printed = false;
        self.update_slow_print();
        repair::grid(self.term.grid_mut());
        self.with_main(repair::grid);
    }

    pub(super) fn set_region(&mut self, top: usize, bottom: usize) {
        let bottom = bottom.min(self.rows());
        if bottom <= top + 1 {
            return;
        }
        self.region = (top, bottom);
        self.term.set_scrolling_region(top + 1, Some(bottom));
        self.update_slow_print();
        self.address_cursor(0, 0);
    }

    pub(super) fn set_autowrap(&mut self, on: bool) {
        self.modes.autowrap = on;
        let mode = PrivateMode::Named(NamedPrivateMode::LineWrap);
        if on {
            self.term.set_private_mode(mode)
        } else {
            self.term.unset_private_mode(mode)
        }
        self.update_slow_print();
    }

    pub(super) fn set_insert(&mut self, on: bool) {
        self.modes.insert = on;
        let mode = Mode::Named(NamedMode::Insert);
        if on {
            self.term.set_mode(mode)
        } else {
            self.term.unset_mode(mode)
        }
        self.update_slow_print();
    }

    fn update_slow_print(&mut self) {
        self.slow_print = self.modes.insert || !self.modes.autowrap || self.region.1 < self.rows();
    }

    /// Switches to the alternate screen, blank, with the cursor at the same position.
    pub(super) fn enter_alt(&mut self) {
        if self.is_alt() {
            return;
        }
        let pending = mem::take(&mut self.term.grid_mut().cursor.input_needs_wrap);
        self.term.swap_alt();
        let grid = self.term.grid_mut();
        // A resize while it was hidden miscounts the cells in use, and blanking would leave some out.
        // Accessing the last cell of each row corrects the count.
        for line in 0..grid.screen_lines() as i32 {
            let _ = grid[Line(line)].last_mut();
        }
        grid.reset_region(..);
        // Drop the cursor that was saved on an earlier visit: a snapshot has no state of a hidden alternate screen.
        grid.saved_cursor = grid.cursor.clone();
        grid.cursor.input_needs_wrap = pending;
    }

    /// Switches back to the main screen, with the cursor it had.
    pub(super) fn leave_alt(&mut self) {
        if !self.is_alt() {
            return;
        }
        self.term.swap_alt();
        self.clamp_cursor();
        let grid = self.term.grid_mut();
        grid.saved_cursor = grid.cursor.clone();
    }

    pub(super) fn save_cursor(&mut self) {
        self.term.save_cursor_position();
        self.term.grid_mut().saved_cursor.input_needs_wrap = false;
    }

    pub(super) fn restore_cursor(&mut self) {
        self.term.restore_cursor_position();
        self.clamp_cursor();
    }

    /// Moves a restored cursor into the addressable rows.
    fn clamp_cursor(&mut self) {
        let (row, col) = self.cursor();
        let (top, bottom) = self.addressable_rows();
        self.set_cursor(row.clamp(top, bottom - 1), col);
    }

    /// RIS: resets everything but the history limit, the theme and the events.
    pub(super) fn reset(&mut self) {
        self.term.reset_state();
        for index in 0..alacritty_terminal::term::color::COUNT {
            self.term.reset_color(index);
        }
        self.modes = Modes::default();
        self.region = (0, self.rows());
        self.tabs = default_tabs(self.cols());
        self.charset = CharsetIndex::G0;
        self.titles.clear();
        self.set_title(String::new());
        self.update_slow_print();
    }

    /// DECSTR: resets most modes, region, attributes, charsets and the saved cursor; text and cursor position stay.
    pub(super) fn soft_reset(&mut self) {
        let kept = Modes {
            mouse: self.modes.mouse,
            mouse_coding: self.modes.mouse_coding,
            alternate_scroll: self.modes.alternate_scroll,
            colour_scheme: self.modes.colour_scheme,
            modify_other_keys: self.modes.modify_other_keys,
            newline: self.modes.newline,
            cursor_blink: self.modes.cursor_blink,
            cursor_style: self.modes.cursor_style,
            ..Modes::default()
        };
        self.modes = kept;
        self.set_autowrap(true);
        self.set_insert(false);
        let (row, col) = self.cursor();
        self.region = (0, self.rows());
        self.term.set_scrolling_region(1, None);
        self.update_slow_print();
        self.set_charset(CharsetIndex::G0);
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.template = Cell::default();
        cursor.charsets = Default::default();
        self.set_cursor(row, col);
        self.term.grid_mut().saved_cursor = Default::default();
    }

    pub(super) fn set_charset(&mut self, charset: CharsetIndex) {
        self.charset = charset;
        self.term.set_active_charset(charset);
    }

    pub(super) fn set_title(&mut self, title: String) {
        if title != self.title {
            self.title = title;
            self.events.title(&self.title);
        }
    }

    /// Runs `work` on the main grid, even while the alternate one is shown.
    pub(super) fn with_main<R>(&mut self, work: impl FnOnce(&mut Grid<Cell>) -> R) -> R {
        if !self.is_alt() {
            return work(self.term.grid_mut());
        }
        // Switching back to the alternate screen blanks it, so an empty grid replaces it meanwhile. It
        // also drops the main screen's saved cursor, which has no meaning while the alternate screen is
        // shown.
        let placeholder = Grid::new(self.rows(), self.cols(), 0);
        let alt = mem::replace(self.term.grid_mut(), placeholder);
        self.term.swap_alt();
        let result = work(self.term.grid_mut());
        self.term.swap_alt();
        *self.term.grid_mut() = alt;
        result
    }

    /// The row and column of the cell that was printed last, if the last thing parsed was a character.
    pub(super) fn printed_cell(&self) -> Option<(usize, usize)> {
        if !self.printed {
            return None;
        }
        let (row, col) = self.cursor();
        let last = if self.grid().cursor.input_needs_wrap { col } else { col.checked_sub(1)? };
        let cell = &self.grid()[Line(row as i32)][Column(last)];
        let wide = cell.flags.contains(Flags::WIDE_CHAR_SPACER);
        Some((row, if wide { last.checked_sub(1)? } else { last }))
    }
}

/// A tab stop every eight columns.
pub(super) fn default_tabs(cols: usize) -> Vec<bool> {
    (0..cols).map(|col| col % 8 == 0).collect()
}
