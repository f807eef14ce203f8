//! `+`, `~` and `for` as Python does them.

use minijinja::value::{Value, ValueKind};
use minijinja::{Error, ErrorKind};

use super::budget::Budget;
use crate::python;

/// Bytes that an item of a joined list counts for.
const ITEM_BYTES: usize = 24;

/// Adds numbers and joins texts and lists; all else is an error. A text that is joined with one
/// marked as safe is escaped for HTML, as in markupsafe.
pub fn add(left: &Value, right: &Value, budget: &Budget) -> Result<Value, Error> {
    if let (Some(a), Some(b)) = (left.as_str(), right.as_str()) {
        budget.take(a.len() + b.len())?;
        if left.is_safe() || right.is_safe() {
            return Ok(Value::from_safe_string(
                escaped(left, a) + &escaped(right, b),
            ));
        }
        return Ok(Value::from([a, b].concat()));
    }
    if is_list(left) && is_list(right) {
        budget.take((left.len().unwrap_or(0) + right.len().unwrap_or(0)) * ITEM_BYTES)?;
        return Ok(left.try_iter()?.chain(right.try_iter()?).collect());
    }
    sum(left, right).ok_or_else(|| {
        let (left, right) = (left.kind(), right.kind());
        Error::new(
            ErrorKind::InvalidOperation,
            format!("tried to use + operator on unsupported types {left} and {right}"),
        )
    })
}

fn is_list(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

fn sum(left: &Value, right: &Value) -> Option<Value> {
    let is_number = |value: &Value| matches!(value.kind(), ValueKind::Number | ValueKind::Bool);
    if !is_number(left) || !is_number(right) {
        return None;
    }
    let whole = |value: &Value| i128::try_from(value.clone()).ok();
    let float = |value: &Value| f64::try_from(value.clone()).ok();
    let is_whole = |value: &Value| value.is_integer() || value.kind() == ValueKind::Bool;
    if is_whole(left) && is_whole(right) {
        return whole(left)?.checked_add(whole(right)?).map(from_whole);
    }
    Some(Value::from(float(left)? + float(right)?))
}

fn from_whole(value: i128) -> Value {
    i64::try_from(value).map_or_else(|_| Value::from(value), Value::from)
}

fn escaped(value: &Value, text: &str) -> String {
    if value.is_safe() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            c => out.push(c),
        }
    }
    out
}

/// `str(left) + str(right)`; undefined is the empty text.
pub fn concat(left: &Value, right: &Value, budget: &Budget) -> Result<String, Error> {
    let joined = python::to_str(left) + &python::to_str(right);
    budget.take(joined.len())?;
    Ok(joined)
}

/// None cannot be looped over.
pub fn loop_over(value: &Value) -> Result<Value, Error> {
    if value.is_none() {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            "none is not iterable",
        ));
    }
    Ok(value.clone())
}
