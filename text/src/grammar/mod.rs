//! Grammars: which tokens may come next so that the whole output matches a JSON schema, a regular
//! expression or a Lark grammar. A thin layer over llguidance, which uses derivatives and an Earley
//! parser. It compiles no automaton in advance, so compiling is fast. Counted work ("fuel") bounds
//! compiling and each mask, not a clock.

mod compile;
mod environment;
mod words;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex};

use llguidance::api::ParserLimits;
use llguidance::earley::SlicedBiasComputer;
use llguidance::{Matcher as Engine, ParserFactory};
use toktrie::{InferenceCapabilities, SimpleVob, TokEnv};

use crate::error::{Result, TextError};
use crate::tokenizer::Tokenizer;
use environment::VocabularyEnvironment;

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
        let environment: TokEnv = Arc::new(VocabularyEnvironment::new(tokenizer, rows, eos_ids)?);
        let slices = if prepared {
            SlicedBiasComputer::general_slices()
        } else {
            Vec::new()
        };
        let mut factory =
            ParserFactory::new(&environment, InferenceCapabilities::default(), &slices)
                .map_err(|error| TextError::internal(error.to_string()))?;
        factory.quiet();
        Ok(Self { factory })
    }

    /// Compiles a grammar and checks it by computing its first mask.
    pub fn compile(&self, kind: Kind, source: &str, limits: &Limits) -> Result<Grammar> {
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
        let mut start = Engine::new(Ok(parser));
        start
            .clone()
            .compute_mask_or_eos()
            .map_err(|error| compile::explain(&error.to_string()))?;
        if start.is_stopped() && !start.is_accepting().unwrap_or(false) {
            return Err(TextError::invalid("nothing matches it"));
        }
        Ok(Grammar {
            start: Mutex::new(start),
        })
    }
}

/// A compiled grammar. Matchers of one grammar share what they learn about it.
pub struct Grammar {
    start: Mutex<Engine>,
}

impl Grammar {
    pub fn matcher(&self) -> Result<Matcher> {
        let start = self
            .start
            .lock()
            .map_err(|_| TextError::internal("the grammar is broken"))?;
        Ok(Matcher {
            engine: start.clone(),
        })
    }
}

/// The state of one output in its grammar.
pub struct Matcher {
    engine: Engine,
}

impl Matcher {
    /// Tokens that may come next, one bit each; EOS tokens where the output may end here.
    pub fn mask(&mut self) -> Result<SimpleVob> {
        self.engine
            .compute_mask_or_eos()
            .map_err(|error| compile::explain(&error.to_string()))
    }

    /// Appends `tokens` to the output. An EOS token ends it.
    pub fn accept(&mut self, tokens: &[u32]) -> Result<()> {
        self.engine
            .consume_tokens(tokens)
            .map_err(|error| compile::explain(&error.to_string()))
    }

    /// The output may end here.
    pub fn accepting(&mut self) -> bool {
        self.engine.is_accepting().unwrap_or(false)
    }

    /// Nothing but the end may follow.
    pub fn complete(&self) -> bool {
        self.engine.is_stopped() && !self.engine.is_error()
    }
}
