//! Tokenizers, chat templates and grammars of Penstock with one C interface
//! (`include/penstock_text.h`). One static library: two Rust libraries in a binary would collide.
//!
//! Nothing here logs, reads a clock, opens a socket or starts a thread; no panic crosses the border.

mod config;
mod decoder;
mod error;
mod ffi;
mod files;
mod grammar;
mod python;
mod template;
mod tokenizer;
