//! The C interface. `include/penstock_text.h` is its documentation; names and layouts match it. It
//! also says what a caller of each exported function must guarantee.
#![allow(clippy::missing_safety_doc)]

mod decoder;
mod grammar;
mod template;
mod tokenizer;

use std::panic::{catch_unwind, AssertUnwindSafe};

use crate::error::{panic_message, Result, TextError};

/// `penstock_bytes`
#[repr(C)]
pub struct Bytes {
    data: *mut u8,
    size: usize,
}

impl Bytes {
    fn new(text: String) -> Self {
        let bytes = Box::leak(text.into_bytes().into_boxed_slice());
        Self {
            data: bytes.as_mut_ptr(),
            size: bytes.len(),
        }
    }
}

/// `penstock_tokens`
#[repr(C)]
pub struct Tokens {
    ids: *mut u32,
    size: usize,
    offsets: *mut usize,
}

/// Runs one exported function: its error or panic becomes a code and a message.
fn guard(error: *mut Bytes, body: impl FnOnce() -> Result<()>) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(body));
    let failure = match outcome {
        Ok(Ok(())) => return 0,
        Ok(Err(failure)) => failure,
        Err(panic) => TextError::internal(format!("text library: {}", panic_message(&*panic))),
    };
    let code = failure.code as i32;
    if !error.is_null() {
        // SAFETY: the caller gives a writable penstock_bytes.
        unsafe { error.write(Bytes::new(failure.message)) };
    }
    code
}

/// Ends an object made by `Box::into_raw`.
fn free<T>(object: *mut T) {
    if !object.is_null() {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: by contract the pointer came from us and is not used again.
            drop(unsafe { Box::from_raw(object) });
        }));
    }
}

/// # Safety
/// `data` points to `size` elements that live and stay unchanged for `'a`, or `size` is 0.
unsafe fn slice<'a, T>(data: *const T, size: usize) -> Result<&'a [T]> {
    if size == 0 {
        return Ok(&[]);
    }
    if data.is_null() || size > isize::MAX as usize / std::mem::size_of::<T>() {
        return Err(TextError::invalid(
            "pointer is NULL or size is out of range",
        ));
    }
    Ok(std::slice::from_raw_parts(data, size))
}

/// # Safety
/// The same as for `slice`.
unsafe fn text<'a>(field: &str, data: *const u8, size: usize) -> Result<&'a str> {
    std::str::from_utf8(slice(data, size)?).map_err(|error| {
        TextError::invalid(format!(
            "{field} must be valid UTF-8. Given: a bad byte at offset {}",
            error.valid_up_to()
        ))
    })
}

/// # Safety
/// `pointer` is NULL or points to a live object that does not change for `'a`.
unsafe fn object<'a, T>(pointer: *const T) -> Result<&'a T> {
    pointer
        .as_ref()
        .ok_or_else(|| TextError::invalid("object must not be NULL"))
}

/// 0 stands for the default.
fn set_unless_zero<T: Default + PartialEq>(limit: &mut T, given: T) {
    if given != T::default() {
        *limit = given;
    }
}

/// # Safety
/// `pointer` is NULL or points to writable memory for a `T`.
unsafe fn put<T>(pointer: *mut T, value: T) -> Result<()> {
    if pointer.is_null() {
        return Err(TextError::invalid("output must not be NULL"));
    }
    pointer.write(value);
    Ok(())
}

/// # Safety
/// `bytes` is NULL, zeroed or was filled by this library and not freed yet.
#[no_mangle]
pub unsafe extern "C" fn penstock_bytes_free(bytes: *mut Bytes) {
    if let Some(bytes) = bytes.as_mut() {
        if !bytes.data.is_null() {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                bytes.data, bytes.size,
            )));
        }
        *bytes = Bytes {
            data: std::ptr::null_mut(),
            size: 0,
        };
    }
}

/// # Safety
/// `tokens` is NULL, zeroed or was filled by this library and not freed yet.
#[no_mangle]
pub unsafe extern "C" fn penstock_tokens_free(tokens: *mut Tokens) {
    if let Some(tokens) = tokens.as_mut() {
        if !tokens.ids.is_null() {
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                tokens.ids,
                tokens.size,
            )));
        }
        if !tokens.offsets.is_null() {
            let size = 2 * tokens.size;
            drop(Box::from_raw(std::ptr::slice_from_raw_parts_mut(
                tokens.offsets,
                size,
            )));
        }
        *tokens = Tokens {
            ids: std::ptr::null_mut(),
            size: 0,
            offsets: std::ptr::null_mut(),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_code_and_one_line() {
        let mut error = Bytes {
            data: std::ptr::null_mut(),
            size: 0,
        };
        let code = guard(&mut error, || panic!("first\nsecond"));
        assert_eq!(code, crate::error::Code::Internal as i32);
        let message = unsafe { text("error", error.data, error.size) }.unwrap();
        assert_eq!(message, "text library: first second");
        unsafe { penstock_bytes_free(&mut error) };
        assert!(error.data.is_null());
    }

    #[test]
    fn null_and_zeroed_arguments_are_refused_or_ignored() {
        unsafe {
            assert!(put(std::ptr::null_mut(), 1).is_err());
            penstock_bytes_free(std::ptr::null_mut());
            penstock_tokens_free(std::ptr::null_mut());
            assert!(slice::<u32>(std::ptr::null(), 3).is_err());
            assert!(slice::<u32>(std::ptr::null(), 0).is_ok());
            assert!(text("prompt", [0xff_u8].as_ptr(), 1)
                .unwrap_err()
                .message
                .contains("prompt"));
        }
    }
}
