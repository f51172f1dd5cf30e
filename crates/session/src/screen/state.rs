//! The terminal itself: the emulator's grids, and beside them what the emulator keeps private or does not keep.

use std::mem;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{CharsetIndex, Handler, Mode, NamedMode, NamedPrivateMode, PrivateMode};
use bowline_proto::size::Size;

use super::device::DeviceString;
use super::events::Events;
use super::limits::{HISTORY_MAX, REPLIES_MAX};
use super::links::LinkBudget;
use super::modes::Modes;
use super::palette::Theme;
use super::repair;
use super::tell::Draft;
use super::urls::Urls;

/// Everything but the parser.
pub(super) struct State {
    pub(super) term: Term<VoidListener>,
    pub(super) size: Size,
    pub(super) modes: Modes,
    /// The scroll region: its first row, and the row after its last.
    pub(super) region: (usize, usize),
    pub(super) tabs: Vec<bool>,
    pub(super) charset: CharsetIndex,
    pub(super) title: String,
    pub(super) titles: Vec<String>,
    /// The last thing parsed was a character, so the cell before the cursor is what REP repeats.
    pub(super) printed: bool,
    /// A mode is on under which printing needs more care than the emulator takes.
    pub(super) careful: bool,
    /// The command being parsed is too long and will be ignored.
    pub(super) discard: bool,
    pub(super) device: DeviceString,
    pub(super) theme: Theme,
    pub(super) replies: Vec<u8>,
    pub(super) events: Events,
    pub(super) draft: Draft,
    pub(super) link_budget: LinkBudget,
    pub(super) urls: Urls,
}

/// A size as the emulator asks for it.
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
    pub(super) fn new(size: Size, history: usize) -> State {
        let config = Config { scrolling_history: history.min(HISTORY_MAX), ..Config::default() };
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
            careful: false,
            discard: false,
            device: DeviceString::default(),
            theme: Theme::default(),
            replies: Vec::new(),
            events: Events::default(),
            draft: Draft::default(),
            link_budget: LinkBudget::default(),
            urls: Urls::default(),
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

    /// Row and column of the cursor.
    pub(super) fn cursor(&self) -> (usize, usize) {
        let point = self.grid().cursor.point;
        (usize::try_from(point.line.0).unwrap_or(0), point.column.0)
    }

    /// Puts the cursor somewhere on the screen, which ends a pending wrap.
    pub(super) fn place(&mut self, row: usize, col: usize) {
        let (row, col) = (row.min(self.rows() - 1), col.min(self.cols() - 1));
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.point.line = Line(row as i32);
        cursor.point.column = Column(col);
        cursor.input_needs_wrap = false;
    }

    /// The rows that absolute positions count from and are held in.
    pub(super) fn bounds(&self) -> (usize, usize) {
        if self.modes.origin { self.region } else { (0, self.rows()) }
    }

    /// An absolute position, as CUP gives it, from 0.
    pub(super) fn go(&mut self, row: usize, col: usize) {
        let (top, bottom) = self.bounds();
        self.place((top + row).min(bottom - 1), col);
    }

    pub(super) fn reply(&mut self, answer: &str) {
        if self.replies.len() + answer.len() <= REPLIES_MAX {
            self.replies.extend_from_slice(answer.as_bytes());
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
        self.update_careful();
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
        self.update_careful();
        self.go(0, 0);
    }

    pub(super) fn set_autowrap(&mut self, on: bool) {
        self.modes.autowrap = on;
        let mode = PrivateMode::Named(NamedPrivateMode::LineWrap);
        if on {
            self.term.set_private_mode(mode)
        } else {
            self.term.unset_private_mode(mode)
        }
        self.update_careful();
    }

    pub(super) fn set_insert(&mut self, on: bool) {
        self.modes.insert = on;
        let mode = Mode::Named(NamedMode::Insert);
        if on {
            self.term.set_mode(mode)
        } else {
            self.term.unset_mode(mode)
        }
        self.update_careful();
    }

    fn update_careful(&mut self) {
        self.careful = self.modes.insert || !self.modes.autowrap || self.region.1 < self.rows();
    }

    /// Shows the alternate screen, blank, with the cursor where it was.
    pub(super) fn enter_alt(&mut self) {
        if self.is_alt() {
            return;
        }
        let pending = mem::take(&mut self.term.grid_mut().cursor.input_needs_wrap);
        self.term.swap_alt();
        let grid = self.term.grid_mut();
        // A change of size while it was hidden miscounted its cells, so that blanking it left some out.
        for line in 0..grid.screen_lines() as i32 {
            let _ = grid[Line(line)].last_mut();
        }
        grid.reset_region(..);
        // What an earlier visit saved is forgotten, so that the alternate screen has no past while it is hidden.
        grid.saved_cursor = grid.cursor.clone();
        grid.cursor.input_needs_wrap = pending;
    }

    /// Shows the main screen again, with the cursor it had.
    pub(super) fn leave_alt(&mut self) {
        if !self.is_alt() {
            return;
        }
        self.term.swap_alt();
        self.hold_cursor();
        let grid = self.term.grid_mut();
        grid.saved_cursor = grid.cursor.clone();
    }

    pub(super) fn save_cursor(&mut self) {
        self.term.save_cursor_position();
        self.term.grid_mut().saved_cursor.input_needs_wrap = false;
    }

    pub(super) fn restore_cursor(&mut self) {
        self.term.restore_cursor_position();
        self.hold_cursor();
    }

    /// Holds a cursor that came from elsewhere inside the rows it may be in.
    fn hold_cursor(&mut self) {
        let (row, col) = self.cursor();
        let (top, bottom) = self.bounds();
        self.place(row.clamp(top, bottom - 1), col);
    }

    /// RIS: as new, but for history's bound, the theme and what has been reported.
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
        self.update_careful();
    }

    /// DECSTR: modes, region, attributes, charsets and the saved cursor as new; text and cursor stay.
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
        self.update_careful();
        self.set_charset(CharsetIndex::G0);
        let cursor = &mut self.term.grid_mut().cursor;
        cursor.template = Cell::default();
        cursor.charsets = Default::default();
        self.place(row, col);
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

    /// Works on the main grid, also while the alternate one shows.
    pub(super) fn with_main<R>(&mut self, work: impl FnOnce(&mut Grid<Cell>) -> R) -> R {
        if !self.is_alt() {
            return work(self.term.grid_mut());
        }
        // Going back to the alternate screen blanks it and forgets the main screen's saved cursor: a stand-in
        // takes the blanking, and while the alternate screen shows that cursor has no meaning.
        let stand_in = Grid::new(self.rows(), self.cols(), 0);
        let alt = mem::replace(self.term.grid_mut(), stand_in);
        self.term.swap_alt();
        let result = work(self.term.grid_mut());
        self.term.swap_alt();
        *self.term.grid_mut() = alt;
        result
    }

    /// The row and column of the cell that was printed last.
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

/// A stop every eight columns.
pub(super) fn default_tabs(cols: usize) -> Vec<bool> {
    (0..cols).map(|col| col % 8 == 0).collect()
}
