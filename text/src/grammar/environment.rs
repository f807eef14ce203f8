//! The tokenizer as the grammar engine sees it.

use std::sync::Arc;

use toktrie::{TokRxInfo, TokTrie, TokenId, TokenizerEnv};

use super::words::token_words;
use crate::error::{Result, TextError};
use crate::tokenizer::Tokenizer;

/// A trie holds token ids in 24 bits.
const MAX_ROWS: u32 = 1 << 24;

/// The tokenization is declared as not canonical. Otherwise the engine would follow a forced run of
/// bytes to its end for each mask, and such a run may be a million bytes long. The model chooses
/// among all spellings of a text, as in TGI.
pub struct VocabularyEnvironment {
    tokenizer: Arc<Tokenizer>,
    trie: TokTrie,
}

impl VocabularyEnvironment {
    pub fn new(tokenizer: Arc<Tokenizer>, rows: u32, eos_ids: &[u32]) -> Result<Self> {
        if rows == 0 || rows >= MAX_ROWS {
            return Err(TextError::invalid(format!(
                "vocabulary must be 1 to {}. Given: {rows}",
                MAX_ROWS - 1
            )));
        }
        let Some(&eos) = eos_ids.first() else {
            return Err(TextError::invalid(
                "grammars need a model with an end-of-sequence token",
            ));
        };
        if let Some(wrong) = eos_ids.iter().find(|&&id| id >= rows) {
            return Err(TextError::invalid(format!(
                "end-of-sequence token ids must be below {rows}. Given: {wrong}"
            )));
        }
        let words = token_words(&tokenizer, rows)?;
        let trie = TokTrie::from(&TokRxInfo::new(rows, eos), &words).with_eos_tokens(eos_ids);
        Ok(Self { tokenizer, trie })
    }

    /// The tokenizer's own tokens for `text`, if they decode to exactly that text.
    fn exact(&self, text: &str) -> Option<Vec<TokenId>> {
        let ids = self.tokenizer.encode(text, false, false).ok()?.ids;
        let same = self.bytes_of(&ids) == text.as_bytes();
        same.then_some(ids)
    }

    /// Not `decode`, which would drop special tokens.
    fn bytes_of(&self, ids: &[TokenId]) -> Vec<u8> {
        ids.iter()
            .flat_map(|&id| self.trie.token(id))
            .copied()
            .collect()
    }
}

impl TokenizerEnv for VocabularyEnvironment {
    fn tok_trie(&self) -> &TokTrie {
        &self.trie
    }

    /// A special token that is spelled out in the text counts as text and is split greedily.
    fn tokenize_bytes(&self, bytes: &[u8]) -> Vec<TokenId> {
        self.trie.tokenize_with_greedy_fallback(bytes, |text| {
            self.exact(text)
                .unwrap_or_else(|| self.trie.greedy_tokenize(text.as_bytes()))
        })
    }

    fn tokenize_is_canonical(&self) -> bool {
        false
    }
}
