use std::path::Path;
use std::sync::Arc;

use super::{free, guard, object, put, slice, text, Bytes, Tokens};
use crate::error::TextError;
use crate::tokenizer::Tokenizer;

/// `penstock_tokenizer`
pub struct Handle(pub(super) Arc<Tokenizer>);

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_load(
    folder: *const u8,
    folder_size: usize,
    tokenizer: *mut *mut Handle,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let folder = text("tokenizer folder", folder, folder_size)?;
        let loaded = Tokenizer::load(Path::new(folder))?;
        put(tokenizer, Box::into_raw(Box::new(Handle(Arc::new(loaded)))))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_free(tokenizer: *mut Handle) {
    free(tokenizer);
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_vocabulary(tokenizer: *const Handle) -> u32 {
    tokenizer.as_ref().map_or(0, |handle| handle.0.vocabulary())
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_is_special(tokenizer: *const Handle, id: u32) -> i32 {
    tokenizer
        .as_ref()
        .map_or(0, |handle| i32::from(handle.0.is_special(id)))
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_encode(
    tokenizer: *const Handle,
    input: *const u8,
    input_size: usize,
    add_special_tokens: i32,
    with_offsets: i32,
    tokens: *mut Tokens,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let input = text("text", input, input_size)?;
        let handle = object(tokenizer)?;
        let encoded = handle
            .0
            .encode(input, add_special_tokens != 0, with_offsets != 0)?;
        let size = encoded.ids.len();
        let offsets = match with_offsets {
            0 => std::ptr::null_mut(),
            _ => leak(
                encoded
                    .offsets
                    .into_iter()
                    .flat_map(|(a, b)| [a, b])
                    .collect(),
            ),
        };
        put(
            tokens,
            Tokens {
                ids: leak(encoded.ids),
                size,
                offsets,
            },
        )
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_encode_pair(
    tokenizer: *const Handle,
    input: *const u8,
    input_size: usize,
    pair: *const u8,
    pair_size: usize,
    add_special_tokens: i32,
    most: usize,
    tokens: *mut Tokens,
    first_part: *mut usize,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let input = text("text", input, input_size)?;
        let second = match pair.is_null() {
            true => None,
            false => Some(text("pair", pair, pair_size)?),
        };
        let handle = object(tokenizer)?;
        let (ids, first) = handle
            .0
            .encode_pair(input, second, add_special_tokens != 0, most)?;
        put(first_part, first)?;
        let size = ids.len();
        put(
            tokens,
            Tokens {
                ids: leak(ids),
                size,
                offsets: std::ptr::null_mut(),
            },
        )
    })
}

pub(super) fn leak<T>(values: Vec<T>) -> *mut T {
    Box::leak(values.into_boxed_slice()).as_mut_ptr()
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_decode(
    tokenizer: *const Handle,
    ids: *const u32,
    size: usize,
    skip_special: i32,
    output: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let decoded = object(tokenizer)?
            .0
            .decode(slice(ids, size)?, skip_special != 0)?;
        put(output, Bytes::new(decoded))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_token(
    tokenizer: *const Handle,
    id: u32,
    token: *mut Bytes,
    special: *mut i32,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let tokenizer = &object(tokenizer)?.0;
        let spelling = tokenizer.token(id).ok_or_else(|| {
            let limit = tokenizer.vocabulary();
            TextError::not_found(format!("token id must be below {limit}. Given: {id}"))
        })?;
        put(special, i32::from(tokenizer.is_special(id)))?;
        put(token, Bytes::new(spelling))
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_named_tokens_json(
    tokenizer: *const Handle,
    json: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        put(
            json,
            Bytes::new(object(tokenizer)?.0.config().tokens_json()),
        )
    })
}

#[no_mangle]
pub unsafe extern "C" fn penstock_tokenizer_chat_template(
    tokenizer: *const Handle,
    name: *const u8,
    name_size: usize,
    source: *mut Bytes,
    error: *mut Bytes,
) -> i32 {
    guard(error, || {
        let name = text("template name", name, name_size)?;
        let found = object(tokenizer)?.0.config().template(name);
        let found = found.ok_or_else(|| TextError::not_found("the model has no chat template"))?;
        put(source, Bytes::new(found.to_owned()))
    })
}
