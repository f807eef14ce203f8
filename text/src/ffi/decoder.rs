use super::tokenizer::Handle;
use super::{free, guard, object, put, slice, Bytes};
use crate::decoder::IncrementalDecoder;
use crate::error::{Result, TextError};

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_new(
    tokenizer: *const Handle,
    skip_special: i32,
    context: *const u32,
    context_size: usize,
    decoder: *mut *mut IncrementalDecoder,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let tokenizer = object(tokenizer)?.0.clone();
        let context = slice(context, context_size)?;
        let made = IncrementalDecoder::new(tokenizer, skip_special != 0, context)?;
        put(decoder, Box::into_raw(Box::new(made)))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_free(decoder: *mut IncrementalDecoder) {
    free(decoder);
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_push(
    decoder: *mut IncrementalDecoder,
    id: u32,
    text: *mut *const u8,
    text_size: *mut usize,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        put_text(exclusive(decoder)?.push(id)?, text, text_size)
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_peek(
    decoder: *const IncrementalDecoder,
    id: u32,
    text: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(error, || put(text, Bytes::new(object(decoder)?.peek(id)?)))
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_is_settled(decoder: *const IncrementalDecoder) -> i32 {
    decoder
        .as_ref()
        .map_or(0, |decoder| i32::from(decoder.is_settled()))
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_settled_text(
    tokenizer: *const Handle,
    id: u32,
    text: *mut Bytes,
    settled: *mut i32,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let given = IncrementalDecoder::settled_text(&object(tokenizer)?.0, id)?;
        put(settled, i32::from(given.is_some()))?;
        put(text, Bytes::new(given.unwrap_or_default()))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_decoder_finish(
    decoder: *mut IncrementalDecoder,
    text: *mut *const u8,
    text_size: *mut usize,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        put_text(exclusive(decoder)?.finish()?, text, text_size)
    })
}

unsafe fn exclusive<'a>(decoder: *mut IncrementalDecoder) -> Result<&'a mut IncrementalDecoder> {
    decoder
        .as_mut()
        .ok_or_else(|| TextError::invalid("decoder must not be NULL"))
}

unsafe fn put_text(given: &str, text: *mut *const u8, size: *mut usize) -> Result<()> {
    put(text, given.as_ptr())?;
    put(size, given.len())
}
