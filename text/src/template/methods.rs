//! Python's methods of str, list and dict that minijinja-contrib does not have or that count bytes
//! there.

use minijinja::value::{from_args, Value, ValueKind};
use minijinja::{Error, ErrorKind, State};
use minijinja_contrib::pycompat::unknown_method_callback;

const MAX_PADDED: usize = 4_096;

/// From which end of the text a search begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Left,
    Right,
}

impl End {
    fn find(self, text: &str, what: &str) -> Option<usize> {
        match self {
            End::Left => text.find(what),
            End::Right => text.rfind(what),
        }
    }
}

pub fn call(state: &State, value: &Value, method: &str, args: &[Value]) -> Result<Value, Error> {
    let own = match (value.kind(), value.as_str()) {
        (_, Some(text)) => string_method(text, method, args)?,
        (ValueKind::Seq, _) => list_method(value, method, args)?,
        _ => None,
    };
    match own {
        Some(result) => Ok(result),
        None => unknown_method_callback(state, value, method, args),
    }
}

fn string_method(text: &str, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    Ok(Some(match method {
        "strip" => strip(text, args, true, true)?,
        "lstrip" => strip(text, args, true, false)?,
        "rstrip" => strip(text, args, false, true)?,
        "find" | "index" => position(text, method, args, End::Left)?,
        "rfind" | "rindex" => position(text, method, args, End::Right)?,
        "removeprefix" => {
            let (prefix,): (&str,) = from_args(args)?;
            Value::from(text.strip_prefix(prefix).unwrap_or(text))
        }
        "removesuffix" => {
            let (suffix,): (&str,) = from_args(args)?;
            Value::from(text.strip_suffix(suffix).unwrap_or(text))
        }
        "rsplit" => return rsplit(text, args),
        "partition" => partition(text, args, End::Left)?,
        "rpartition" => partition(text, args, End::Right)?,
        "ljust" | "rjust" | "zfill" => pad(text, method, args)?,
        "isdigit" | "isnumeric" | "isdecimal" | "isalpha" | "isalnum" | "isspace"
            if text.is_empty() =>
        {
            Value::from(false)
        }
        _ => return Ok(None),
    }))
}

/// Rust's white space and the four separators that Python adds to it.
fn is_python_space(c: char) -> bool {
    c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c)
}

fn strip(text: &str, args: &[Value], left: bool, right: bool) -> Result<Value, Error> {
    let (chars,): (Option<&str>,) = from_args(args)?;
    let drop = |c: char| chars.map_or_else(|| is_python_space(c), |set| set.contains(c));
    let text = if left {
        text.trim_start_matches(drop)
    } else {
        text
    };
    Ok(Value::from(if right {
        text.trim_end_matches(drop)
    } else {
        text
    }))
}

/// Positions count characters, not bytes.
fn position(text: &str, method: &str, args: &[Value], end: End) -> Result<Value, Error> {
    let (what,): (&str,) = from_args(args)?;
    match end.find(text, what) {
        Some(byte) => Ok(Value::from(text[..byte].chars().count())),
        None if method.ends_with("find") => Ok(Value::from(-1)),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            "substring not found",
        )),
    }
}

fn rsplit(text: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    let (separator, limit): (Option<&str>, Option<i64>) = from_args(args)?;
    let (Some(separator), Some(limit @ 0..)) = (separator, limit) else {
        return match separator {
            Some(separator) => Ok(Some(text.split(separator).map(Value::from).collect())),
            None => Ok(Some(text.split_whitespace().map(Value::from).collect())),
        };
    };
    let pieces = usize::try_from(limit)
        .unwrap_or(usize::MAX)
        .saturating_add(1);
    let mut parts: Vec<Value> = text.rsplitn(pieces, separator).map(Value::from).collect();
    parts.reverse();
    Ok(Some(Value::from(parts)))
}

fn partition(text: &str, args: &[Value], end: End) -> Result<Value, Error> {
    let (separator,): (&str,) = from_args(args)?;
    let parts = match end.find(text, separator) {
        Some(at) => [&text[..at], separator, &text[at + separator.len()..]],
        None if end == End::Right => ["", "", text],
        None => [text, "", ""],
    };
    Ok(Value::from(parts.map(Value::from).to_vec()))
}

fn pad(text: &str, method: &str, args: &[Value]) -> Result<Value, Error> {
    let (width, fill): (usize, Option<&str>) = from_args(args)?;
    let fill = if method == "zfill" {
        "0"
    } else {
        fill.unwrap_or(" ")
    };
    let missing = width.min(MAX_PADDED).saturating_sub(text.chars().count());
    let padding = fill.repeat(missing);
    Ok(Value::from(if method == "ljust" {
        format!("{text}{padding}")
    } else {
        padding + text
    }))
}

fn list_method(value: &Value, method: &str, args: &[Value]) -> Result<Option<Value>, Error> {
    if method != "index" {
        return Ok(None);
    }
    let (what,): (&Value,) = from_args(args)?;
    match value.try_iter()?.position(|item| item == *what) {
        Some(index) => Ok(Some(Value::from(index))),
        None => Err(Error::new(
            ErrorKind::InvalidOperation,
            "value is not in list",
        )),
    }
}
