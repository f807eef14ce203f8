//! Text of a growing list of tokens, one token at a time.
//!
//! The generated text continues the prompt, so the first token is decoded after the last prompt
//! tokens. They decide, for example, whether SentencePiece's leading space stays. No text is
//! returned while it ends in U+FFFD, as in transformers and TGI, because the next token may
//! complete the character. Work per token does not depend on the length of the text.

use std::sync::Arc;

use crate::error::Result;
use crate::tokenizer::{DecoderKind, Tokenizer};

/// After this many tokens an incomplete character stays U+FFFD and is returned.
const MAX_HELD_TOKENS: usize = 32;
/// Tokens of context that an opaque decoder decodes again with every new token.
const WINDOW: usize = 6;
const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

#[derive(Clone)]
pub struct IncrementalDecoder {
    tokenizer: Arc<Tokenizer>,
    skip_special: bool,
    state: State,
    held_tokens: usize,
    text: String,
}

#[derive(Clone)]
enum State {
    Bytes(ByteState),
    Pieces(PieceState),
    Window(WindowState),
}

impl IncrementalDecoder {
    /// `context`: the last tokens of the prompt (a handful is enough), oldest first.
    pub fn new(tokenizer: Arc<Tokenizer>, skip_special: bool, context: &[u32]) -> Result<Self> {
        let state = match tokenizer.decoder_kind() {
            DecoderKind::ByteLevel => State::Bytes(ByteState::default()),
            DecoderKind::Pieces { strip_left, .. } => State::Pieces(PieceState {
                strip_left: *strip_left,
                ..PieceState::default()
            }),
            DecoderKind::Opaque => State::Window(WindowState::default()),
        };
        let text = String::new();
        let mut decoder = Self {
            tokenizer,
            skip_special,
            state,
            held_tokens: 0,
            text,
        };
        decoder.start(context)?;
        Ok(decoder)
    }

    fn start(&mut self, context: &[u32]) -> Result<()> {
        for &id in context {
            self.absorb(id)?;
        }
        match &mut self.state {
            State::Bytes(bytes) => bytes.end_context(),
            State::Pieces(pieces) => pieces.end_context(),
            State::Window(window) => window.end_context(&self.tokenizer, self.skip_special)?,
        }
        Ok(())
    }

    /// The text that token `id` made printable: whole characters, possibly none.
    pub fn push(&mut self, id: u32) -> Result<&str> {
        self.text.clear();
        self.absorb(id)?;
        self.held_tokens += 1;
        let force = self.held_tokens >= MAX_HELD_TOKENS;
        let taken = match &mut self.state {
            State::Bytes(bytes) => bytes.take(force, &mut self.text),
            State::Pieces(pieces) => pieces.take(force, &mut self.text),
            State::Window(window) => {
                window.take(force, &self.tokenizer, self.skip_special, &mut self.text)?
            }
        };
        if taken {
            self.held_tokens = 0;
        }
        Ok(&self.text)
    }

    /// The text that `push(id)` and then `finish()` would return. Nothing changes.
    pub fn peek(&self, id: u32) -> Result<String> {
        let mut next = self.clone();
        let mut text = next.push(id)?.to_owned();
        text.push_str(next.finish()?);
        Ok(text)
    }

    /// No text is pending, and the next token's text does not depend on earlier tokens.
    pub fn is_settled(&self) -> bool {
        match &self.state {
            State::Bytes(bytes) => bytes.bytes.is_empty(),
            State::Pieces(pieces) => pieces.is_settled(),
            State::Window(_) => false,
        }
    }

    /// The text that a settled decoder with special tokens returns for `id`, if it stays settled.
    pub fn settled_text(tokenizer: &Arc<Tokenizer>, id: u32) -> Result<Option<String>> {
        let mut decoder = Self::new(Arc::clone(tokenizer), false, &[])?;
        if let State::Pieces(pieces) = &mut decoder.state {
            pieces.strip_left = 0;
        }
        let text = decoder.push(id)?.to_owned();
        Ok(decoder.is_settled().then_some(text))
    }

    /// The pending text. An incomplete character becomes U+FFFD. No token may follow.
    pub fn finish(&mut self) -> Result<&str> {
        self.text.clear();
        match &mut self.state {
            State::Bytes(bytes) => bytes.finish(&mut self.text),
            State::Pieces(pieces) => pieces.finish(&mut self.text),
            State::Window(window) => {
                window.take(true, &self.tokenizer, self.skip_special, &mut self.text)?;
            }
        }
        self.held_tokens = 0;
        Ok(&self.text)
    }

    fn absorb(&mut self, id: u32) -> Result<()> {
        if let State::Window(window) = &mut self.state {
            window.ids.push(id);
            return Ok(());
        }
        if self.skip_special && self.tokenizer.is_special(id) {
            return Ok(());
        }
        let Some(token) = self.tokenizer.token(id) else {
            return Ok(());
        };
        match &mut self.state {
            State::Bytes(bytes) => bytes.absorb(&token),
            State::Pieces(pieces) => pieces.absorb(token, self.tokenizer.decoder_kind()),
            State::Window(_) => {}
        }
        Ok(())
    }
}

/// GPT-2's alphabet: the byte that a character of a byte-level token represents.
pub(crate) fn byte_of(c: char) -> Option<u8> {
    match c as u32 {
        code @ (0x21..=0x7e | 0xa1..=0xac | 0xae..=0xff) => Some(code as u8),
        code @ 0x100..=0x120 => Some((code - 0x100) as u8),
        code @ 0x121..=0x142 => Some((code - 0x121 + 0x7f) as u8),
        0x143 => Some(0xad),
        _ => None,
    }
}

/// Bytes that were not returned yet. The text is `String::from_utf8_lossy` of all bytes.
#[derive(Clone, Default)]
struct ByteState {
    bytes: Vec<u8>,
    /// The number of bytes at the front that belong to an incomplete character of the context.
    context: usize,
}

impl ByteState {
    fn absorb(&mut self, token: &str) {
        let start = self.bytes.len();
        for c in token.chars() {
            match byte_of(c) {
                Some(byte) => self.bytes.push(byte),
                None => {
                    // An added token: its text is used as it is.
                    self.bytes.truncate(start);
                    self.bytes.extend_from_slice(token.as_bytes());
                    return;
                }
            }
        }
    }

    fn end_context(&mut self) {
        let whole = self.bytes.len() - incomplete_tail(&self.bytes);
        self.bytes.drain(..whole);
        self.context = self.bytes.len();
    }

    fn take(&mut self, force: bool, out: &mut String) -> bool {
        if self.bytes.len() == self.context {
            return true;
        }
        self.drop_broken_context();
        let tail = incomplete_tail(&self.bytes);
        let whole = self.bytes.len() - tail;
        let text = String::from_utf8_lossy(&self.bytes[..whole]);
        if !force && (tail > 0 || text.ends_with(REPLACEMENT)) {
            return false;
        }
        out.push_str(&text);
        self.bytes.drain(..whole);
        self.context = 0;
        true
    }

    fn finish(&mut self, out: &mut String) {
        if self.bytes.len() > self.context {
            self.drop_broken_context();
            out.push_str(&String::from_utf8_lossy(&self.bytes));
        }
        self.bytes.clear();
    }

    /// If the first new byte does not continue the context's character, that character is U+FFFD
    /// and belongs to the prompt.
    fn drop_broken_context(&mut self) {
        if self.context == 0 {
            return;
        }
        if let Err(error) = std::str::from_utf8(&self.bytes) {
            if error.valid_up_to() == 0 && error.error_len() == Some(self.context) {
                self.bytes.drain(..self.context);
                self.context = 0;
            }
        }
    }
}

/// Length of the unfinished character at the end: 0 to 3.
fn incomplete_tail(bytes: &[u8]) -> usize {
    let longest = bytes.len().min(3);
    (1..=longest)
        .find(|&length| {
            let tail = &bytes[bytes.len() - length..];
            tail[0] >= 0xc0
                && std::str::from_utf8(tail)
                    .is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
        })
        .unwrap_or(0)
}

/// SentencePiece: pieces of text and runs of byte tokens.
///
/// A run that is not UTF-8 is one U+FFFD per byte. Complete characters at the front of such a run
/// may have been returned before its first invalid byte. They stay, although decoding all tokens at
/// once would lose them.
#[derive(Clone, Default)]
struct PieceState {
    text: String,
    run: Vec<u8>,
    /// The number of bytes at the front of the run that belong to an incomplete character of the
    /// context.
    context: usize,
    run_is_broken: bool,
    strip_left: usize,
}

impl PieceState {
    fn absorb(&mut self, token: String, kind: &DecoderKind) {
        let DecoderKind::Pieces {
            replace,
            byte_fallback,
            ..
        } = kind
        else {
            return;
        };
        let token = replace.iter().fold(token, |token, (from, to)| {
            if token.contains(from.as_str()) {
                token.replace(from.as_str(), to)
            } else {
                token
            }
        });
        match byte_token(&token).filter(|_| *byte_fallback) {
            Some(byte) => self.absorb_byte(byte),
            None => {
                self.end_run();
                self.append(&token);
            }
        }
    }

    fn absorb_byte(&mut self, byte: u8) {
        self.run.push(byte);
        let character = match std::str::from_utf8(&self.run) {
            Ok(character) if !self.run_is_broken => Some(character.to_owned()),
            Err(error) if !self.run_is_broken && error.error_len().is_none() => return,
            _ => None,
        };
        match character {
            Some(character) => {
                self.append(&character);
                self.run.clear();
                self.context = 0;
            }
            None => {
                self.run_is_broken = true;
                self.replace_run();
            }
        }
    }

    fn end_run(&mut self) {
        self.replace_run();
        self.run_is_broken = false;
    }

    /// U+FFFD for every byte of the run that is not the prompt's.
    fn replace_run(&mut self) {
        for _ in self.context..self.run.len() {
            self.append("\u{fffd}");
        }
        self.run.clear();
        self.context = 0;
    }

    fn append(&mut self, text: &str) {
        let mut rest = text;
        while self.strip_left > 0 && !rest.is_empty() {
            match rest.strip_prefix(' ') {
                Some(stripped) => {
                    rest = stripped;
                    self.strip_left -= 1;
                }
                None => self.strip_left = 0,
            }
        }
        self.text.push_str(rest);
    }

    fn is_settled(&self) -> bool {
        let held = !self.text.is_empty() || !self.run.is_empty();
        !held && !self.run_is_broken && self.strip_left == 0
    }

    fn end_context(&mut self) {
        self.text.clear();
        self.context = self.run.len();
    }

    fn take(&mut self, force: bool, out: &mut String) -> bool {
        if !force && (self.run.len() > self.context || self.text.ends_with(REPLACEMENT)) {
            return false;
        }
        out.push_str(&self.text);
        self.text.clear();
        true
    }

    fn finish(&mut self, out: &mut String) {
        self.end_run();
        out.push_str(&self.text);
        self.text.clear();
    }
}

/// Such as `<0x0A>`.
pub(crate) fn byte_token(token: &str) -> Option<u8> {
    let hex = token.strip_prefix("<0x")?.strip_suffix('>')?;
    if hex.len() != 2 {
        None
    } else {
        u8::from_str_radix(hex, 16).ok()
    }
}

/// Decodes `ids[prefix..]` with and without the new tokens; the difference is the new text.
#[derive(Clone, Default)]
struct WindowState {
    ids: Vec<u32>,
    /// The text of the tokens that was returned already.
    known: String,
    known_tokens: usize,
}

impl WindowState {
    fn end_context(&mut self, tokenizer: &Tokenizer, skip_special: bool) -> Result<()> {
        self.ids.drain(..self.ids.len().saturating_sub(WINDOW));
        self.known = tokenizer.decode(&self.ids, skip_special)?;
        self.known_tokens = self.ids.len();
        Ok(())
    }

    fn take(
        &mut self,
        force: bool,
        tokenizer: &Tokenizer,
        skip_special: bool,
        out: &mut String,
    ) -> Result<bool> {
        let text = tokenizer.decode(&self.ids, skip_special)?;
        if !force && text.ends_with(REPLACEMENT) {
            return Ok(false);
        }
        let mut from = self.known.len().min(text.len());
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        out.push_str(&text[from..]);
        self.ids
            .drain(..self.known_tokens.min(self.ids.len().saturating_sub(WINDOW)));
        self.known = tokenizer.decode(&self.ids, skip_special)?;
        self.known_tokens = self.ids.len();
        Ok(true)
    }
}

#[cfg(test)]
mod tests;
