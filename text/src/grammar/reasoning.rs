//! Reasoning before the text that a grammar is about: free text between markers, at most a number
//! of tokens. No part of it is the grammar's concern, so an engine never sees it.

use std::sync::Arc;

use serde_json::Value;
use toktrie::{SimpleVob, TokEnv, TokTrie, TokenId};

use super::compile::Kind;
use crate::error::{Result, TextError};
use crate::tokenizer::Tokenizer;

struct Markers {
    open: Vec<u8>,
    close: Vec<u8>,
    /// Writes the closing marker when the budget is spent.
    forced: Vec<TokenId>,
}

/// What follows our directive `%reasoning`, if the Lark grammar begins with it.
pub fn directive(kind: Kind, source: &str) -> Option<&str> {
    (kind == Kind::Lark)
        .then(|| source.strip_prefix("%reasoning "))
        .flatten()
}

/// What the directive says in JSON: `{"markers": [{"open", "close", "forced"}], "opened",
/// "budget", "kind", "source"}`. `opened` is the index of the markers that the prompt has opened;
/// without it the model may open the first ones itself. `kind` and `source` are the grammar of what
/// follows the reasoning; without them any text may follow.
pub struct Rules {
    markers: Vec<Markers>,
    opened: Option<usize>,
    budget: Option<u64>,
    /// Tokens that hold a closing marker and text after it. No grammar engine can consume them.
    straddling: Vec<TokenId>,
}

/// The rules and the grammar that follows the reasoning.
pub struct Source {
    pub rules: Rules,
    pub grammar: Option<(Kind, String)>,
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| TextError::invalid(format!("`{key}` must be a string")))
}

impl Source {
    pub fn read(source: &str, tokenizer: &Tokenizer, env: &TokEnv) -> Result<Self> {
        let value: Value = serde_json::from_str(source)
            .map_err(|error| TextError::invalid(format!("it is not JSON: {error}")))?;
        let list = value.get("markers").and_then(Value::as_array);
        let mut markers = Vec::new();
        for each in list.into_iter().flatten() {
            let forced = tokenizer.encode(text(each, "forced")?, false, false)?.ids;
            markers.push(Markers {
                open: text(each, "open")?.into(),
                close: text(each, "close")?.into(),
                forced,
            });
        }
        let opened = value.get("opened").and_then(Value::as_u64);
        let opened = opened.and_then(|place| usize::try_from(place).ok());
        if markers.is_empty() || opened.is_some_and(|place| place >= markers.len()) {
            return Err(TextError::invalid("reasoning must have markers"));
        }
        let grammar = match value.get("kind").and_then(Value::as_i64) {
            None | Some(0) => None,
            Some(kind) => {
                let kind = i32::try_from(kind).unwrap_or(0);
                Some((Kind::from_number(kind)?, text(&value, "source")?.to_owned()))
            }
        };
        let mut rules = Rules {
            markers,
            opened,
            budget: value.get("budget").and_then(Value::as_u64),
            straddling: Vec::new(),
        };
        if grammar.is_some() {
            rules.straddling = rules.find_straddling(env.tok_trie());
        }
        Ok(Self { rules, grammar })
    }
}

impl Rules {
    fn find_straddling(&self, trie: &TokTrie) -> Vec<TokenId> {
        let holds = |id: &TokenId| {
            let bytes = bytes_of(trie, *id);
            self.markers
                .iter()
                .any(|each| find(bytes, &each.close).is_some_and(|end| !blank(&bytes[end..])))
        };
        (0..trie.vocab_size() as TokenId).filter(holds).collect()
    }
}

/// The bytes that a token adds to the text; a special token adds its name.
fn bytes_of(trie: &TokTrie, id: TokenId) -> &[u8] {
    let bytes = trie.token(id);
    match bytes.split_first() {
        Some((&TokTrie::SPECIAL_TOKEN_MARKER, name)) if !name.is_empty() => name,
        _ => bytes,
    }
}

fn blank(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Where the first occurrence of `marker` ends.
fn find(bytes: &[u8], marker: &[u8]) -> Option<usize> {
    bytes
        .windows(marker.len())
        .position(|window| window == marker)
        .map(|begin| begin + marker.len())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The text so far may be the beginning of an opening marker.
    Beginning,
    Reasoning,
    /// The next one of the forced tokens.
    Closing(usize),
    After,
}

/// The state of one output before the grammar.
pub struct Progress {
    rules: Arc<Rules>,
    env: TokEnv,
    stage: Stage,
    text: Vec<u8>,
    spent: u64,
    /// The index of the open marker.
    place: usize,
}

/// What a token means.
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    Reasoning,
    /// It may begin an opening marker, or be the grammar's first token.
    Undecided,
    /// The reasoning was opened, so what was undecided was not the grammar's.
    Opened,
    /// The grammar's, as is all that follows.
    Grammar,
}

impl Progress {
    pub fn new(rules: Arc<Rules>, env: TokEnv) -> Self {
        let mut progress = Self {
            stage: Stage::Beginning,
            text: Vec::new(),
            spent: 0,
            place: rules.opened.unwrap_or(0),
            rules,
            env,
        };
        if progress.rules.opened.is_some() {
            progress.open();
        }
        progress
    }

    pub fn is_over(&self) -> bool {
        self.stage == Stage::After
    }

    pub fn may_be_over(&self) -> bool {
        matches!(self.stage, Stage::Beginning | Stage::After)
    }

    fn open(&mut self) {
        self.stage = Stage::Reasoning;
        self.close_if_spent();
    }

    fn close_if_spent(&mut self) {
        let spent = self.rules.budget.is_some_and(|most| self.spent >= most);
        if spent && !self.rules.markers[self.place].forced.is_empty() {
            self.stage = Stage::Closing(0);
        }
    }

    /// Changes the grammar's mask to that of the output. Without a grammar it allows everything.
    pub fn apply(&self, mask: &mut SimpleVob, has_grammar: bool) {
        match self.stage {
            Stage::After => {}
            Stage::Closing(next) => {
                mask.set_all(false);
                mask.allow_token(self.rules.markers[self.place].forced[next]);
            }
            Stage::Beginning if has_grammar => self.allow_opening(mask),
            Stage::Reasoning if has_grammar => self.allow_reasoning(mask),
            _ => mask.set_all(true),
        }
    }

    fn allow_opening(&self, mask: &mut SimpleVob) {
        let trie = self.env.tok_trie();
        for markers in &self.rules.markers {
            let Some(rest) = markers.open.strip_prefix(self.text.as_slice()) else {
                continue;
            };
            for id in 0..trie.vocab_size() as TokenId {
                let bytes = bytes_of(trie, id);
                if !bytes.is_empty() && (rest.starts_with(bytes) || bytes.starts_with(rest)) {
                    mask.allow_token(id);
                }
            }
        }
    }

    /// All but the end of the output and tokens with text of the grammar.
    fn allow_reasoning(&self, mask: &mut SimpleVob) {
        let trie = self.env.tok_trie();
        mask.set_all(true);
        for &id in trie.eos_tokens().iter().chain(&self.rules.straddling) {
            mask.disallow_token(id);
        }
        for markers in &self.rules.markers {
            for size in 1..markers.close.len() {
                let (begun, rest) = markers.close.split_at(size);
                if !self.text.ends_with(begun) {
                    continue;
                }
                for id in 0..trie.vocab_size() as TokenId {
                    let after = bytes_of(trie, id).strip_prefix(rest);
                    if after.is_some_and(|after| !blank(after)) {
                        mask.disallow_token(id);
                    }
                }
            }
        }
    }

    pub fn accept(&mut self, token: TokenId) -> Result<Step> {
        let env = Arc::clone(&self.env);
        let bytes = bytes_of(env.tok_trie(), token);
        match self.stage {
            Stage::After => Ok(Step::Grammar),
            Stage::Closing(next) => self.accept_forced(token, next),
            Stage::Reasoning => {
                self.spent += 1;
                self.read(bytes);
                Ok(Step::Reasoning)
            }
            Stage::Beginning => Ok(self.begin(bytes)),
        }
    }

    fn accept_forced(&mut self, token: TokenId, next: usize) -> Result<Step> {
        let forced = &self.rules.markers[self.place].forced;
        if forced[next] != token {
            return Err(TextError::invalid("the reasoning must be closed"));
        }
        let done = next + 1 == forced.len();
        self.stage = if done {
            Stage::After
        } else {
            Stage::Closing(next + 1)
        };
        Ok(Step::Reasoning)
    }

    fn begin(&mut self, bytes: &[u8]) -> Step {
        let blanks = self.text.is_empty() && blank(bytes);
        if blanks {
            return Step::Undecided;
        }
        self.text.extend_from_slice(bytes);
        let begun = self.text.trim_ascii_start();
        for (place, markers) in self.rules.markers.iter().enumerate() {
            if let Some(rest) = begun.strip_prefix(markers.open.as_slice()) {
                let rest = rest.to_vec();
                self.place = place;
                self.text.clear();
                self.open();
                if self.stage == Stage::Reasoning {
                    self.read(&rest);
                }
                return Step::Opened;
            }
        }
        if self
            .rules
            .markers
            .iter()
            .any(|each| each.open.starts_with(begun))
        {
            return Step::Undecided;
        }
        self.stage = Stage::After;
        Step::Grammar
    }

    /// Searches for the closing marker in the text that comes.
    fn read(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        let markers = &self.rules.markers;
        if markers
            .iter()
            .any(|each| find(&self.text, &each.close).is_some())
        {
            self.stage = Stage::After;
            return;
        }
        let longest = markers
            .iter()
            .map(|each| each.close.len())
            .max()
            .unwrap_or(0);
        let keep = self.text.len().min(longest);
        self.text.drain(..self.text.len() - keep);
        self.close_if_spent();
    }
}
