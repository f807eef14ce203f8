//! The bytes of every token, for a trie over the vocabulary.

use toktrie::TokTrie;

use crate::decoder::{byte_of, byte_token};
use crate::error::{Result, TextError};
use crate::tokenizer::{DecoderKind, Tokenizer};

/// One entry for each of the model's `vocabulary` rows; empty for rows that no token has (padding).
/// A special token carries the trie's marker, so no text can mean it.
pub fn token_words(tokenizer: &Tokenizer, vocabulary: u32) -> Result<Vec<Vec<u8>>> {
    if *tokenizer.decoder_kind() == DecoderKind::Opaque {
        return Err(TextError::invalid(
            "grammars need a byte-level or SentencePiece tokenizer; this one has another decoder",
        ));
    }
    Ok((0..vocabulary)
        .map(|id| token_word(tokenizer, id))
        .collect())
}

fn token_word(tokenizer: &Tokenizer, id: u32) -> Vec<u8> {
    let Some(token) = tokenizer.token(id) else {
        return Vec::new();
    };
    if tokenizer.is_special(id) {
        return [&[TokTrie::SPECIAL_TOKEN_MARKER], token.as_bytes()].concat();
    }
    match tokenizer.decoder_kind() {
        _ if tokenizer.is_added(id) => token.into_bytes(),
        DecoderKind::ByteLevel => {
            let bytes: Option<Vec<u8>> = token.chars().map(byte_of).collect();
            bytes.unwrap_or_else(|| token.into_bytes())
        }
        DecoderKind::Pieces {
            replace,
            byte_fallback,
            ..
        } => {
            let text = replace
                .iter()
                .fold(token, |text, (from, to)| text.replace(from.as_str(), to));
            match byte_token(&text).filter(|_| *byte_fallback) {
                Some(byte) => vec![byte],
                None => text.into_bytes(),
            }
        }
        DecoderKind::Opaque => Vec::new(),
    }
}
