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
    lead: Option<Lead>,
}

/// A character that no token joins to others. Before a text it stands for the text that it follows,
/// because a tokenizer may add a blank at the beginning.
struct Lead {
    text: &'static str,
    ids: Vec<TokenId>,
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
        let mut made = Self {
            tokenizer,
            trie,
            lead: None,
        };
        made.lead = made.find_lead();
        Ok(made)
    }

    /// None: no text in the middle of another can be tokenized as it is there.
    fn find_lead(&self) -> Option<Lead> {
        const TRIAL: &str = "a{";
        ["", "\u{2}"].into_iter().find_map(|text| {
            let ids = self.tokenizer.encode(text, false, false).ok()?.ids;
            let lead = Lead { text, ids };
            self.after(&lead, TRIAL).map(|_| lead)
        })
    }

    fn after(&self, lead: &Lead, text: &str) -> Option<Vec<TokenId>> {
        let whole = [lead.text, text].concat();
        let ids = self.tokenizer.encode(&whole, false, false).ok()?.ids;
        let rest = ids.strip_prefix(lead.ids.as_slice())?;
        (self.bytes_of(rest) == text.as_bytes()).then(|| rest.to_vec())
    }

    /// The tokenizer's own tokens for `text` where it follows the context, up to byte `end` of it
    /// and at most `most`. None if no token begins where the context ends, and if the tokenizer
    /// cannot spell the text.
    pub fn tokens_after(
        &self,
        context: &[TokenId],
        text: &str,
        end: usize,
        most: usize,
    ) -> Option<Vec<TokenId>> {
        let mut whole = self.text_of(context);
        let begin = whole.len();
        whole.extend_from_slice(text.as_bytes());
        let ids = self.after(self.lead.as_ref()?, std::str::from_utf8(&whole).ok()?)?;
        let mut found = Vec::new();
        let mut at = 0;
        for id in ids {
            let next = at + self.trie.token_len(id);
            if at < begin && next > begin {
                return None;
            }
            if next > begin + end || found.len() == most {
                break;
            }
            if at >= begin {
                found.push(id);
            }
            at = next;
        }
        Some(found)
    }

    /// The text of the last tokens that are no special ones, from its first whole character on.
    fn text_of(&self, context: &[TokenId]) -> Vec<u8> {
        let special = |&&id: &&TokenId| {
            let bytes = self.trie.token(id);
            bytes.is_empty() || bytes[0] == TokTrie::SPECIAL_TOKEN_MARKER
        };
        let plain = context.iter().rev().take_while(|id| !special(id)).count();
        let bytes = self.bytes_of(&context[context.len() - plain..]);
        let is_inside = |&&byte: &&u8| byte & 0xC0 == 0x80;
        let cut = bytes.iter().take_while(is_inside).count();
        bytes[cut..].to_vec()
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
