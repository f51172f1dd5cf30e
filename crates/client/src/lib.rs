//! Attaches a real terminal to a session.
//!
//! In the order that data walks, from the session to the screen and back:
//!
//! - [`filter`]: what the terminal may see of the output; [`touched`]: what that changed, to be undone;
//! - [`keys`]: what of the typing is for the viewer itself.

pub mod filter;
pub mod keys;
pub mod touched;
