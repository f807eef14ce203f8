//! Grammars: which tokens may come next so that the whole output matches a JSON schema, a regular
//! expression or a Lark grammar. A thin layer over llguidance, which uses derivatives and an Earley
//! parser. It compiles no automaton in advance, so compiling is fast. Counted work ("fuel") bounds
//! compiling and each mask, not a clock.

mod compile;
mod engine;
mod environment;
mod reasoning;
mod words;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::ParserFactory;
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv, TokTrie, TokenizerEnv};

use crate::error::{Result, TextError};
use crate::tokenizer::Tokenizer;
use engine::Engine;
use environment::VocabularyEnvironment;
use reasoning::{Progress, Step};

pub use compile::Kind;

/// Bounds on compiling and on each mask. They count work, so they are the same on every machine.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub source_bytes: usize,
    pub compile_fuel: u64,
    pub mask_fuel: u64,
    pub mask_items: usize,
    pub lexer_states: usize,
    pub grammar_symbols: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            source_bytes: 256 << 10,
            compile_fuel: 500_000,
            mask_fuel: 100_000,
            mask_items: 50_000,
            lexer_states: 25_000,
            grammar_symbols: 500_000,
        }
    }
}

/// A tokenizer's vocabulary as a trie of bytes; what all grammars of a model share.
pub struct Vocabulary {
    factory: ParserFactory,
    tokenizer: Arc<Tokenizer>,
    environment: Arc<VocabularyEnvironment>,
}

impl Vocabulary {
    /// `rows`: number of logits of the model, which may exceed the tokens of the tokenizer.
    /// `eos_ids` end an output that the grammar accepts. `prepared` builds tables that make masks
    /// cheaper. Compiling and checking need no tables.
    pub fn new(
        tokenizer: Arc<Tokenizer>,
        rows: u32,
        eos_ids: &[u32],
        prepared: bool,
    ) -> Result<Self> {
        let environment = Arc::new(VocabularyEnvironment::new(
            Arc::clone(&tokenizer),
            rows,
            eos_ids,
        )?);
        let shared: TokEnv = environment.clone();
        let slices = if prepared {
            SlicedBiasComputer::general_slices()
        } else {
            Vec::new()
        };
        let mut factory = ParserFactory::new(&shared, InferenceCapabilities::default(), &slices)
            .map_err(|error| TextError::internal(error.to_string()))?;
        factory.quiet();
        Ok(Self {
            factory,
            tokenizer,
            environment,
        })
    }

    /// Compiles a grammar and checks it by computing its first mask.
    pub fn compile(&self, kind: Kind, source: &str, limits: &Limits) -> Result<Grammar> {
        let Some(rules) = reasoning::directive(kind, source) else {
            return Ok(Grammar {
                start: Some(Mutex::new(self.engine(kind, source, limits)?)),
                forces: may_force(kind, source),
                reasoning: None,
                environment: Arc::clone(&self.environment),
            });
        };
        let shared: TokEnv = self.environment.clone();
        let read = reasoning::Source::read(rules, &self.tokenizer, &shared)?;
        let mut forces = false;
        let start = match read.grammar {
            Some((kind, source)) => {
                forces = may_force(kind, &source);
                Some(Mutex::new(self.engine(kind, &source, limits)?))
            }
            None => None,
        };
        Ok(Grammar {
            start,
            forces,
            reasoning: Some(Arc::new(read.rules)),
            environment: Arc::clone(&self.environment),
        })
    }

    fn engine(&self, kind: Kind, source: &str, limits: &Limits) -> Result<Engine> {
        let grammar = compile::parse(kind, source, limits)?;
        let parser_limits = ParserLimits {
            initial_lexer_fuel: limits.compile_fuel,
            step_lexer_fuel: limits.mask_fuel,
            step_max_items: limits.mask_items,
            max_lexer_states: limits.lexer_states,
            max_grammar_size: limits.grammar_symbols,
            precompute_large_lexemes: false,
            verbose_errors: false,
            ..ParserLimits::default()
        };
        let parser = self
            .factory
            .create_parser_from_init_ext(
                llguidance::api::GrammarInit::Serialized(grammar),
                llguidance::Logger::new(0, 0),
                InferenceCapabilities::default(),
                parser_limits,
            )
            .map_err(|error| compile::explain(&error.to_string()))?;
        let start = Engine::new(parser);
        let mut first = start.clone();
        first.mask()?;
        if first.complete() && !first.accepting() {
            return Err(TextError::invalid("nothing matches it"));
        }
        Ok(start)
    }
}

/// A compiled grammar. Matchers of one grammar share what they learn about it.
pub struct Grammar {
    /// None: the text after the reasoning is free.
    start: Option<Mutex<Engine>>,
    forces: bool,
    reasoning: Option<Arc<reasoning::Rules>>,
    environment: Arc<VocabularyEnvironment>,
}

/// A lexeme of at most some tokens depends on which tokens spell a text. Forced text is not split
/// into tokens yet.
fn may_force(kind: Kind, source: &str) -> bool {
    kind != Kind::Lark || !source.contains("max_tokens")
}

impl Grammar {
    pub fn matcher(&self) -> Result<Matcher> {
        let broken = || TextError::internal("the grammar is broken");
        let engine = match &self.start {
            Some(start) => Some(start.lock().map_err(|_| broken())?.clone()),
            None => None,
        };
        let progress = self
            .reasoning
            .as_ref()
            .map(|rules| Progress::new(Arc::clone(rules), self.environment.clone()));
        Ok(Matcher {
            fits: engine.is_some(),
            forces: self.forces,
            start: progress.as_ref().and(engine.clone()),
            engine,
            progress,
            environment: Arc::clone(&self.environment),
        })
    }
}

/// The state of one output in its grammar.
pub struct Matcher {
    /// None: no text is refused.
    engine: Option<Engine>,
    /// The engine before the first token, for an output that begins with reasoning.
    start: Option<Engine>,
    /// What is undecided between the beginning of reasoning and of the grammar fits the grammar.
    fits: bool,
    forces: bool,
    progress: Option<Progress>,
    environment: Arc<VocabularyEnvironment>,
}

impl Matcher {
    /// Tokens that may come next, one bit each; EOS tokens where the output may end here.
    pub fn mask(&mut self) -> Result<SimpleVob> {
        let before = self
            .progress
            .as_ref()
            .filter(|progress| !progress.is_over());
        let needs_grammar = self.fits && before.is_none_or(Progress::may_be_over);
        let mut mask = match &mut self.engine {
            Some(engine) if needs_grammar => engine.mask()?,
            _ => self.environment.tok_trie().alloc_token_set(),
        };
        match before {
            Some(progress) => progress.apply(&mut mask, self.engine.is_some()),
            None if self.engine.is_none() => mask.set_all(true),
            None => {}
        }
        Ok(mask)
    }

    /// Appends `tokens` to the output. An EOS token ends it.
    pub fn accept(&mut self, tokens: &[u32]) -> Result<()> {
        let Some(progress) = &mut self.progress else {
            return self.accept_in_grammar(tokens);
        };
        let mut rest = tokens;
        while let (false, Some((&token, after))) = (progress.is_over(), rest.split_first()) {
            let step = progress.accept(token)?;
            match step {
                Step::Reasoning => {}
                Step::Opened => {
                    self.engine = self.start.clone();
                    self.fits = self.engine.is_some();
                }
                Step::Undecided => {
                    if let (true, Some(engine)) = (self.fits, &self.engine) {
                        let mut next = engine.clone();
                        self.fits = next.accept(&[token]).is_ok();
                        self.engine = Some(next);
                    }
                }
                Step::Grammar => return self.accept_in_grammar(rest),
            }
            rest = after;
        }
        self.accept_in_grammar(rest)
    }

    fn accept_in_grammar(&mut self, tokens: &[u32]) -> Result<()> {
        let Some(engine) = &mut self.engine else {
            return Ok(());
        };
        if tokens.is_empty() {
            return Ok(());
        }
        engine.accept(tokens)
    }

    /// The tokens that must come next where the grammar leaves one text, at most `most`, in the
    /// tokenizer's own spelling. `mask` is that of this state, `context` the last tokens of the
    /// prompt and the output. See `Engine::forced`.
    pub fn forced(&mut self, mask: &[u32], context: &[u32], most: usize) -> Result<Vec<u32>> {
        let before = self.progress.as_ref();
        if !self.forces || before.is_some_and(|before| !before.is_over()) {
            return Ok(Vec::new());
        }
        match &mut self.engine {
            Some(engine) if one_first_byte(mask, self.environment.tok_trie()) => {
                engine.forced(&self.environment, context, most)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The output may end here.
    pub fn accepting(&mut self) -> bool {
        let open = self
            .progress
            .as_ref()
            .is_some_and(|before| !before.may_be_over());
        match &mut self.engine {
            Some(engine) => !open && self.fits && engine.accepting(),
            None => true,
        }
    }

    /// Nothing but the end may follow.
    pub fn complete(&self) -> bool {
        let open = self
            .progress
            .as_ref()
            .is_some_and(|before| !before.is_over());
        let engine = self.engine.as_ref();
        !open && engine.is_some_and(Engine::complete)
    }
}

/// Whether all tokens of the mask begin with the same byte. The first few tokens decide this in nearly
/// all states.
fn one_first_byte(mask: &[u32], trie: &TokTrie) -> bool {
    let mut first = None;
    for (place, &word) in mask.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let id = 32 * place as u32 + rest.trailing_zeros();
            rest &= rest - 1;
            let byte = trie.token(id).first().copied();
            if byte.is_none() || first.is_some_and(|first| Some(first) != byte) {
                return false;
            }
            first = byte;
        }
    }
    first.is_some_and(|byte| byte != TokTrie::SPECIAL_TOKEN_MARKER)
}
