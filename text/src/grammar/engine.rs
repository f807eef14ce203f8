//! The engine of one output, and the text that it forces.

use std::panic::AssertUnwindSafe;

use llguidance::api::StopReason;
use llguidance::derivre::NextByte;
use llguidance::earley::{Parser, ParserRecognizer};
use llguidance::{panic_utils, TokenParser};
use toktrie::{Recognizer, SimpleVob, TokTrie, TokenId, TokenizerEnv};

use super::compile;
use super::environment::VocabularyEnvironment;
use crate::error::{Result, TextError};

/// A parser whose failures are errors of ours. After one of them every call fails.
#[derive(Clone)]
pub struct Engine {
    parser: TokenParser,
    failed: Option<TextError>,
}

impl Engine {
    pub fn new(mut parser: TokenParser) -> Self {
        if parser.is_fresh() {
            parser.start_without_prompt();
        }
        Self {
            parser,
            failed: None,
        }
    }

    fn run<T>(&mut self, f: impl FnOnce(&mut TokenParser) -> anyhow::Result<T>) -> Result<T> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let parser = &mut self.parser;
        panic_utils::catch_unwind(AssertUnwindSafe(|| f(parser))).map_err(|error| {
            let error = compile::explain(&self.parser.augment_err(error));
            self.failed = Some(error.clone());
            error
        })
    }

    /// The tokens that the grammar allows next. When the text is complete and nothing may follow,
    /// these are the end tokens.
    pub fn mask(&mut self) -> Result<SimpleVob> {
        self.run(|parser| match parser.stop_reason() {
            StopReason::NotStopped => parser.compute_mask(),
            _ => Ok(parser.token_env.tok_trie().eos_token_set()),
        })
    }

    pub fn accept(&mut self, tokens: &[TokenId]) -> Result<()> {
        self.run(|parser| {
            for &token in tokens {
                let back = parser.consume_token(token)?;
                anyhow::ensure!(back == 0, "unexpected backtracking");
            }
            parser.check_stop().map(|_| ())
        })
    }

    pub fn accepting(&mut self) -> bool {
        self.run(|parser| Ok(parser.is_accepting()))
            .unwrap_or(false)
    }

    /// Nothing but the end may follow.
    pub fn complete(&self) -> bool {
        self.failed.is_none() && self.parser.stopped()
    }

    /// The tokens that must come next, at most `most`, after an output that ends with `context`.
    /// They are those of the tokenizer for the whole text. It stops where a token that may follow
    /// could begin before the end of the forced text. Empty as well if the tokenizer joins the end
    /// of the context with what follows, because a token that was given out stays.
    pub fn forced(
        &mut self,
        words: &VocabularyEnvironment,
        context: &[TokenId],
        most: usize,
    ) -> Result<Vec<TokenId>> {
        self.run(|parser| {
            if parser.stop_reason() != StopReason::NotStopped {
                return Ok(Vec::new());
            }
            let no_token = words.tok_trie().eos_token();
            let mut ahead = parser.parser.clone();
            let bytes = forced_bytes(&mut ahead, no_token);
            let text = whole_text(&bytes);
            if text.is_empty() {
                return Ok(Vec::new());
            }
            if text.len() < bytes.len() {
                ahead = parser.parser.clone();
                ahead.apply_token(text.as_bytes(), no_token)?;
            }
            let end = text.len() - open_bytes(&mut ahead, words.tok_trie(), text.as_bytes());
            if end == 0 {
                return Ok(Vec::new());
            }
            let tokens = words.tokens_after(context, text, end, most);
            Ok(tokens.unwrap_or_default())
        })
    }
}

/// Enough for the rows of one step. A longer text is forced in parts.
const MOST_FORCED_BYTES: usize = 128;

/// The bytes that must follow. The parser moves after them. They are applied one by one, so the
/// token that they are said to be must be another.
fn forced_bytes(parser: &mut Parser, no_token: TokenId) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < MOST_FORCED_BYTES && !parser.is_accepting() {
        let Some(byte) = parser.with_recognizer(forced_byte) else {
            break;
        };
        // A special token is no text.
        if byte == TokTrie::SPECIAL_TOKEN_MARKER || parser.apply_token(&[byte], no_token).is_err() {
            break;
        }
        bytes.push(byte);
    }
    bytes
}

fn forced_byte(state: &mut ParserRecognizer) -> Option<u8> {
    let lexer_state = state.lexer_state();
    let hint = state.lexer_mut().next_byte(lexer_state);
    if let NextByte::ForcedByte(byte) = hint {
        return Some(byte);
    }
    let likely = hint.some_bytes().to_vec();
    let all = (0..=u8::MAX).map(|offset| b' '.wrapping_add(offset));
    state.trie_started("forced_byte");
    let mut found = None;
    for byte in likely.into_iter().chain(all) {
        if found == Some(byte) || !state.try_push_byte(byte) {
            continue;
        }
        state.pop_bytes(1);
        if found.is_some() {
            found = None;
            break;
        }
        found = Some(byte);
    }
    state.trie_finished();
    found
}

/// The text up to the last whole character.
fn whole_text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// How many of the last bytes may be the beginning of a longer token, which a text that follows
/// would complete. The parser has read all of `bytes`.
fn open_bytes(parser: &mut Parser, trie: &TokTrie, bytes: &[u8]) -> usize {
    let longest = bytes.len().min(trie.max_token_len());
    (1..=longest)
        .rev()
        .find(|&size| {
            let begun = &bytes[bytes.len() - size..];
            parser.with_recognizer(|state| trie.has_valid_extensions(state, begun))
        })
        .unwrap_or(0)
}
