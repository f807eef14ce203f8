//! The error type of the C interface: a code and one line of text.

/// Numbers are those of `penstock_text_code` in `include/penstock_text.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Code {
    InvalidArgument = 1,
    NotFound = 2,
    LimitExceeded = 3,
    Template = 4,
    Internal = 5,
}

#[derive(Debug, Clone)]
pub struct TextError {
    pub code: Code,
    pub message: String,
}

pub type Result<T> = std::result::Result<T, TextError>;

impl TextError {
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidArgument, message)
    }

    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn limit(message: impl Into<String>) -> Self {
        Self::new(Code::LimitExceeded, message)
    }

    pub fn template(message: impl Into<String>) -> Self {
        Self::new(Code::Template, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Code::Internal, message)
    }

    fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: one_line(message.into()),
        }
    }
}

/// Messages end up in logs and HTTP bodies: one line, no control characters.
fn one_line(message: String) -> String {
    if !message.contains(|c: char| c.is_control()) {
        return message;
    }
    message
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("unknown panic")
}
