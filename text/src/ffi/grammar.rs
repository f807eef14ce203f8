use std::sync::Arc;

use super::tokenizer::{leak, Handle};
use super::{free, guard, object, put, set_unless_zero, slice, text, Bytes, Tokens};
use crate::error::{Result, TextError};
use crate::grammar::{Grammar, Kind, Limits, Matcher, Vocabulary};

/// `penstock_grammar_limits`; 0 = the default.
#[repr(C)]
pub struct GrammarLimits {
    source_bytes: usize,
    compile_fuel: u64,
    mask_fuel: u64,
}

impl GrammarLimits {
    fn or_defaults(&self) -> Limits {
        let mut limits = Limits::default();
        set_unless_zero(&mut limits.source_bytes, self.source_bytes);
        set_unless_zero(&mut limits.compile_fuel, self.compile_fuel);
        set_unless_zero(&mut limits.mask_fuel, self.mask_fuel);
        limits
    }
}

#[no_mangle]
pub unsafe extern "C" fn penstock_vocabulary_new(
    tokenizer: *const Handle,
    rows: u32,
    eos_ids: *const u32,
    eos_count: usize,
    prepared: i32,
    vocabulary: *mut *mut Vocabulary,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let tokenizer = Arc::clone(&object(tokenizer)?.0);
        let eos_ids = slice(eos_ids, eos_count)?;
        let made = Vocabulary::new(tokenizer, rows, eos_ids, prepared != 0)?;
        put(vocabulary, Box::into_raw(Box::new(made)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_vocabulary_free(vocabulary: *mut Vocabulary) {
    free(vocabulary);
}

#[no_mangle]
pub unsafe extern "C" fn penstock_grammar_compile(
    vocabulary: *const Vocabulary,
    kind: i32,
    source: *const u8,
    source_size: usize,
    limits: *const GrammarLimits,
    grammar: *mut *mut Grammar,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let source = text("it", source, source_size)?;
        let limits = limits
            .as_ref()
            .map_or_else(Limits::default, GrammarLimits::or_defaults);
        let made = object(vocabulary)?.compile(Kind::from_number(kind)?, source, &limits)?;
        put(grammar, Box::into_raw(Box::new(made)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_grammar_free(grammar: *mut Grammar) {
    free(grammar);
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_new(
    grammar: *const Grammar,
    matcher: *mut *mut Matcher,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let made = object(grammar)?.matcher()?;
        put(matcher, Box::into_raw(Box::new(made)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_free(matcher: *mut Matcher) {
    free(matcher);
}

unsafe fn exclusive<'a>(matcher: *mut Matcher) -> Result<&'a mut Matcher> {
    matcher
        .as_mut()
        .ok_or_else(|| TextError::invalid("matcher must not be NULL"))
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_mask(
    matcher: *mut Matcher,
    words: *mut u32,
    word_count: usize,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        if words.is_null() {
            return Err(TextError::invalid("output must not be NULL"));
        }
        let mask = exclusive(matcher)?.mask()?;
        let out = std::slice::from_raw_parts_mut(words, word_count);
        out.fill(0);
        let from = mask.as_slice();
        let count = from.len().min(word_count);
        out[..count].copy_from_slice(&from[..count]);
        Ok(())
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_accept(
    matcher: *mut Matcher,
    ids: *const u32,
    size: usize,
    error: *mut Bytes,
) -> i32 {
    guard(error, || exclusive(matcher)?.accept(slice(ids, size)?))
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_forced(
    matcher: *mut Matcher,
    words: *const u32,
    word_count: usize,
    context: *const u32,
    context_size: usize,
    most: usize,
    tokens: *mut Tokens,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let (mask, context) = (slice(words, word_count)?, slice(context, context_size)?);
        let ids = exclusive(matcher)?.forced(mask, context, most)?;
        let (size, offsets) = (ids.len(), std::ptr::null_mut());
        let ids = leak(ids);
        put(tokens, Tokens { ids, size, offsets })
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_matcher_state(
    matcher: *mut Matcher,
    accepting: *mut i32,
    complete: *mut i32,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let matcher = exclusive(matcher)?;
        put(accepting, i32::from(matcher.accepting()))?;
        put(complete, i32::from(matcher.complete()))
    })
}
