//! The terminal, taken over while a page is shown.

use std::io::{self, Stdout, Write};
use std::time::Duration;

use anyhow::Context;
use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyModifiers};
use crossterm::style::Print;
use crossterm::terminal::{
    self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode,
    enable_raw_mode,
};
use crossterm::{execute, queue};
use platform::Clock;

/// A terminal that shows one page. Dropping it gives the terminal back as it was.
pub(super) struct Screen {
    out: Stdout,
}

impl Screen {
    pub(super) fn open() -> anyhow::Result<Self> {
        enable_raw_mode().context("the terminal cannot be used; say --once")?;
        let mut screen = Self { out: io::stdout() };
        execute!(screen.out, EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Shows these lines, as far as there is room for them.
    pub(super) fn draw(&mut self, page: &str) -> anyhow::Result<()> {
        let (columns, rows) = terminal::size()?;
        for (line, row) in page.lines().zip(0..rows) {
            let shown: String = line.chars().take(columns.into()).collect();
            queue!(self.out, MoveTo(0, row), Print(shown), Clear(ClearType::UntilNewLine))?;
        }
        queue!(self.out, Clear(ClearType::FromCursorDown))?;
        self.out.flush()?;
        Ok(())
    }

    /// Waits for so long, unless somebody wants to end it: then true.
    pub(super) fn wait_for_end(&self, clock: &Clock, time: Duration) -> anyhow::Result<bool> {
        let until = clock.now().after(time);
        loop {
            let left = until.since(clock.now());
            if !event::poll(left)? {
                return Ok(false);
            }
            if let Event::Key(key) = event::read()?
                && ends(key)
            {
                return Ok(true);
            }
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Nobody is left to be told when the terminal has gone.
        drop(execute!(self.out, Show, LeaveAlternateScreen));
        drop(disable_raw_mode());
    }
}

fn ends(key: KeyEvent) -> bool {
    let is_interrupt =
        key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
    is_interrupt || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q_escape_and_interrupts_end_it() {
        for (code, modifiers, expected) in [
            (KeyCode::Char('q'), KeyModifiers::NONE, true),
            (KeyCode::Esc, KeyModifiers::NONE, true),
            (KeyCode::Char('c'), KeyModifiers::CONTROL, true),
            (KeyCode::Char('c'), KeyModifiers::NONE, false),
            (KeyCode::Enter, KeyModifiers::NONE, false),
        ] {
            assert_eq!(ends(KeyEvent::new(code, modifiers)), expected, "{code:?}");
        }
    }
}
