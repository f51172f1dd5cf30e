//! Attaches a real terminal to a session.
//!
//! In the order that data walks, from the session to the screen and back:
//!
//! - [`filter`]: what the terminal may see of the output; [`touched`]: what that changed, to be undone.

pub mod filter;
pub mod touched;
