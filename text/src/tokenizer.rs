//! A Hugging Face tokenizer folder: `tokenizer.json`, named tokens and chat templates.

use std::panic::catch_unwind;
use std::path::Path;
use std::str::FromStr;

use tokenizers::{PostProcessor, Tokenizer as HfTokenizer, TruncationDirection};

use crate::config::TokenizerConfig;
use crate::error::{panic_message, Result, TextError};
use crate::files;

/// The largest published vocabularies give files of some 35 MB.
const MAX_TOKENIZER_BYTES: u64 = 256 << 20;

pub struct Tokenizer {
    inner: HfTokenizer,
    config: TokenizerConfig,
    decoder: DecoderKind,
    vocabulary: u32,
}

/// Ids of a text and the bytes of it that each id covers.
#[derive(Debug, Default)]
pub struct Encoded {
    pub ids: Vec<u32>,
    pub offsets: Vec<(usize, usize)>,
}

/// The kind of the tokenizer's decoder, which says how to decode token by token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecoderKind {
    /// Each token is a run of bytes; the text is their concatenation.
    ByteLevel,
    /// SentencePiece: replaced characters, `<0xNN>` byte tokens, spaces cut from the very start.
    Pieces {
        replace: Vec<(String, String)>,
        byte_fallback: bool,
        strip_left: usize,
    },
    /// Any other decoder. It decodes a window of tokens, not one token alone.
    Opaque,
}

/// The crate panics where it cannot read a decoder: one that it does not know, or a file that ends in it.
fn parse(json: &str) -> std::result::Result<HfTokenizer, String> {
    match catch_unwind(|| HfTokenizer::from_str(json)) {
        Ok(parsed) => parsed.map_err(|error| error.to_string()),
        Err(panic) => Err(format!("cannot be read: {}", panic_message(&*panic))),
    }
}

impl Tokenizer {
    /// `folder` holds tokenizer.json and, where present, tokenizer_config.json,
    /// special_tokens_map.json, chat_template.jinja or chat_template.json.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer.json");
        let json = files::read(&path, MAX_TOKENIZER_BYTES)?;
        let json = String::from_utf8(json)
            .map_err(|_| TextError::invalid(format!("{} must be UTF-8", path.display())))?;
        let mut inner = parse(&json)
            .map_err(|error| TextError::invalid(format!("{}: {error}", path.display())))?;
        // Limits belong to the server; a truncation saved in the file would cut prompts silently.
        inner
            .with_truncation(None)
            .map_err(|error| TextError::invalid(format!("{}: {error}", path.display())))?;
        inner.with_padding(None);
        let vocabulary = vocabulary_size(&inner);
        let decoder = DecoderKind::of(&inner);
        Ok(Self {
            inner,
            config: TokenizerConfig::load(folder)?,
            decoder,
            vocabulary,
        })
    }

    pub fn config(&self) -> &TokenizerConfig {
        &self.config
    }

    pub fn decoder_kind(&self) -> &DecoderKind {
        &self.decoder
    }

    /// Largest id + 1, added tokens included. The model may have more embedding rows.
    pub fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    pub fn encode(&self, text: &str, add_special_tokens: bool, offsets: bool) -> Result<Encoded> {
        let encoding = if offsets {
            self.inner.encode(text, add_special_tokens)
        } else {
            self.inner.encode_fast(text, add_special_tokens)
        };
        let encoding = encoding.map_err(|error| TextError::invalid(error.to_string()))?;
        let offsets = if offsets {
            encoding.get_offsets().to_vec()
        } else {
            Vec::new()
        };
        Ok(Encoded {
            ids: encoding.get_ids().to_vec(),
            offsets,
        })
    }

    /// A text, or a pair of texts, as the tokenizer joins them. With `most` above 0 tokens are cut
    /// from the end of the longer text until all fit. Returns the ids and how many of them come
    /// before the second part.
    pub fn encode_pair(
        &self,
        text: &str,
        pair: Option<&str>,
        add_special_tokens: bool,
        most: usize,
    ) -> Result<(Vec<u32>, usize)> {
        let invalid = |error: tokenizers::Error| TextError::invalid(error.to_string());
        let mut first = self.inner.encode_fast(text, false).map_err(invalid)?;
        let mut second = match pair {
            Some(pair) => Some(self.inner.encode_fast(pair, false).map_err(invalid)?),
            None => None,
        };
        if most > 0 {
            let added = match self.inner.get_post_processor() {
                Some(processor) if add_special_tokens => processor.added_tokens(pair.is_some()),
                _ => 0,
            };
            let room = most.saturating_sub(added);
            let other = second.as_ref().map_or(0, |part| part.len());
            let (a, b) = cut_longest(first.len(), other, room);
            first.truncate(a, 0, TruncationDirection::Right);
            if let Some(part) = &mut second {
                part.truncate(b, 0, TruncationDirection::Right);
            }
        }
        let whole = self
            .inner
            .post_process(first, second, add_special_tokens)
            .map_err(invalid)?;
        let parts = whole.get_type_ids();
        let first_part = parts.iter().position(|&part| part > 0);
        Ok((
            whole.get_ids().to_vec(),
            first_part.unwrap_or(whole.get_ids().len()),
        ))
    }

    /// Ids outside the vocabulary decode to nothing.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> Result<String> {
        self.inner
            .decode(ids, skip_special)
            .map_err(|error| TextError::invalid(error.to_string()))
    }

    /// The vocabulary's spelling of a token, not its text.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.id_to_token(id)
    }

    /// Whether the token is an added token. Its text is used as it is by every decoder.
    pub fn is_added(&self, id: u32) -> bool {
        let added = self.inner.get_added_vocabulary();
        added.get_added_tokens_decoder().contains_key(&id)
    }

    pub fn is_special(&self, id: u32) -> bool {
        let added = self.inner.get_added_vocabulary();
        added
            .get_added_tokens_decoder()
            .get(&id)
            .is_some_and(|token| token.special)
    }
}

/// The lengths of two texts that together have at most `room` tokens.
fn cut_longest(a: usize, b: usize, room: usize) -> (usize, usize) {
    if a + b <= room {
        return (a, b);
    }
    let half = room / 2;
    if a.min(b) <= half {
        return if a < b { (a, room - a) } else { (room - b, b) };
    }
    (room - half, half)
}

fn vocabulary_size(tokenizer: &HfTokenizer) -> u32 {
    let largest = tokenizer.get_vocab(true).into_values().max();
    largest.map_or(0, |id| id.saturating_add(1))
}

impl DecoderKind {
    fn of(tokenizer: &HfTokenizer) -> Self {
        let decoder = tokenizer
            .get_decoder()
            .and_then(|d| serde_json::to_value(d).ok());
        decoder
            .and_then(|json| Self::from_json(&json))
            .unwrap_or(DecoderKind::Opaque)
    }

    fn from_json(decoder: &serde_json::Value) -> Option<Self> {
        let steps = match decoder["type"].as_str()? {
            "Sequence" => decoder["decoders"].as_array()?.as_slice(),
            _ => std::slice::from_ref(decoder),
        };
        if let [only] = steps {
            if only["type"] == "ByteLevel" {
                return Some(DecoderKind::ByteLevel);
            }
        }
        Self::pieces(steps)
    }

    /// Replace* ByteFallback? Fuse? Strip(left)?, in this order; anything else is opaque.
    fn pieces(steps: &[serde_json::Value]) -> Option<Self> {
        let mut steps = steps.iter().peekable();
        let mut replace = Vec::new();
        while let Some(step) = steps.next_if(|step| step["type"] == "Replace") {
            let from = step["pattern"]["String"].as_str()?;
            replace.push((from.to_owned(), step["content"].as_str()?.to_owned()));
        }
        let byte_fallback = steps
            .next_if(|step| step["type"] == "ByteFallback")
            .is_some();
        let fused = steps.next_if(|step| step["type"] == "Fuse").is_some();
        let mut strip_left = 0;
        if let Some(strip) = steps.next_if(|step| fused && step["type"] == "Strip") {
            if strip["content"] != " " || strip["stop"] != 0 {
                return None;
            }
            strip_left = usize::try_from(strip["start"].as_u64()?).ok()?;
        }
        if steps.next().is_some() || !(byte_fallback || fused) {
            return None;
        }
        Some(DecoderKind::Pieces {
            replace,
            byte_fallback,
            strip_left,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(json: &str) -> Option<DecoderKind> {
        DecoderKind::from_json(&serde_json::from_str(json).unwrap())
    }

    #[test]
    fn decoders_of_known_families_are_recognised() {
        let byte_level =
            r#"{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":true,"use_regex":true}"#;
        assert_eq!(kind(byte_level), Some(DecoderKind::ByteLevel));
        let llama2 = r#"{"type":"Sequence","decoders":[
            {"type":"Replace","pattern":{"String":"▁"},"content":" "},{"type":"ByteFallback"},
            {"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]}"#;
        let replace = vec![("▁".to_owned(), " ".to_owned())];
        assert_eq!(
            kind(llama2),
            Some(DecoderKind::Pieces {
                replace,
                byte_fallback: true,
                strip_left: 1
            })
        );
    }

    #[test]
    fn other_decoders_are_opaque() {
        let word_piece = r###"{"type":"WordPiece","prefix":"##","cleanup":true}"###;
        assert_eq!(kind(word_piece), None);
        let right = r#"{"type":"Sequence","decoders":[{"type":"ByteFallback"},{"type":"Fuse"},
            {"type":"Strip","content":" ","start":0,"stop":1}]}"#;
        assert_eq!(kind(right), None);
    }
}
