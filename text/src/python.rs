//! How Python prints values: `str()`, `repr()` and `json.dumps(ensure_ascii=False)`.
//!
//! Chat templates were written against Python's Jinja2, so these spellings are part of the prompt
//! that a model was trained on.

use std::fmt::Write;
use std::sync::{Arc, LazyLock};

use indexmap::IndexMap;
use minijinja::value::{Enumerator, Object, ObjectRepr, Value, ValueKind};
use regex::Regex;

/// Nesting of values that is printed; deeper ones are refused.
const MAX_DEPTH: usize = 128;

/// A JSON object as a template value that prints as a Python dict.
#[derive(Debug)]
struct Dict(IndexMap<String, Value>);

impl Object for Dict {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().map(|key| Value::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&to_str(&Value::from_dyn_object(self.clone())))
    }
}

/// A JSON array as a template value that prints as a Python list.
#[derive(Debug)]
struct List(Vec<Value>);

impl Object for List {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_usize()?).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.0.len())
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&to_str(&Value::from_dyn_object(self.clone())))
    }
}

/// What Jinja2's lazy filters give: it can be looped over but has no JSON form.
#[derive(Debug)]
struct Generator(Vec<Value>);

impl Object for Generator {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.clone())
    }
}

pub fn generator(items: Vec<Value>) -> Value {
    Value::from_object(Generator(items))
}

/// A JSON value as `json.loads` would give it to a template.
pub fn from_json(json: serde_json::Value) -> Value {
    match json {
        serde_json::Value::Null => Value::from(()),
        serde_json::Value::Bool(value) => Value::from(value),
        serde_json::Value::Number(number) => {
            if let Some(value) = number.as_i64() {
                Value::from(value)
            } else if let Some(value) = number.as_u64() {
                Value::from(value)
            } else {
                Value::from(number.as_f64().unwrap_or(f64::NAN))
            }
        }
        serde_json::Value::String(text) => Value::from(text),
        serde_json::Value::Array(items) => {
            Value::from_object(List(items.into_iter().map(from_json).collect()))
        }
        serde_json::Value::Object(map) => Value::from_object(Dict(
            map.into_iter().map(|(k, v)| (k, from_json(v))).collect(),
        )),
    }
}

/// Python's `str(value)`. Undefined prints as nothing, as in Jinja2.
pub fn to_str(value: &Value) -> String {
    let mut out = String::new();
    match value.as_str() {
        Some(text) => out.push_str(text),
        None if value.is_undefined() => {}
        None => write_repr(value, &mut out, 0),
    }
    out
}

fn write_repr(value: &Value, out: &mut String, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("...");
        return;
    }
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::String => write_quoted(value.as_str().unwrap_or_default(), out),
        ValueKind::Number => out.push_str(&number(value, "nan", "inf")),
        ValueKind::Seq | ValueKind::Iterable => {
            write_joined(value, out, ('[', ']'), |item, out| {
                write_repr(item, out, depth + 1)
            });
        }
        ValueKind::Map
            if value
                .as_object()
                .is_some_and(|o| o.enumerator_len().is_some()) =>
        {
            write_joined(value, out, ('{', '}'), |key, out| {
                write_repr(key, out, depth + 1);
                out.push_str(": ");
                write_repr(&value.get_item(key).unwrap_or_default(), out, depth + 1);
            });
        }
        _ => {
            let _ = write!(out, "{value}");
        }
    }
}

fn write_joined(
    value: &Value,
    out: &mut String,
    brackets: (char, char),
    mut each: impl FnMut(&Value, &mut String),
) {
    out.push(brackets.0);
    if let Ok(items) = value.try_iter() {
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            each(&item, out);
        }
    }
    out.push(brackets.1);
}

/// `repr(str)`: single quotes unless the text has only single ones in it.
fn write_quoted(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if is_printable(c) => out.push(c),
            c => write_escape(c, out),
        }
    }
    out.push(quote);
}

fn write_escape(c: char, out: &mut String) {
    let _ = match c as u32 {
        code @ 0..=0xff => write!(out, "\\x{code:02x}"),
        code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\U{code:08x}"),
    };
}

/// Python's `str.isprintable` for one character.
fn is_printable(c: char) -> bool {
    static OTHER_OR_SEPARATOR: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"[\p{C}\p{Z}]").expect("a constant pattern"));
    match c {
        ' '..='~' => true,
        _ => !OTHER_OR_SEPARATOR.is_match(c.encode_utf8(&mut [0; 4])),
    }
}

fn number(value: &Value, nan: &str, inf: &str) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    match f64::try_from(value.clone()) {
        Ok(x) if x.is_nan() => nan.to_owned(),
        Ok(x) if x.is_infinite() => format!("{}{inf}", if x < 0.0 { "-" } else { "" }),
        Ok(x) => float_repr(x),
        Err(_) => value.to_string(),
    }
}

/// `repr(float)`: shortest digits, an exponent below 1e-4 and from 1e16 on.
fn float_repr(x: f64) -> String {
    let scientific = format!("{x:e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if x == 0.0 || (-4..16).contains(&exponent) {
        let plain = x.to_string();
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// Layout of `dumps`, as the keyword arguments of Hugging Face's `tojson` give it.
pub struct JsonStyle {
    pub indent: Option<String>,
    pub item_separator: String,
    pub key_separator: String,
    pub sort_keys: bool,
    pub ensure_ascii: bool,
}

/// `json.dumps(value)`; the error names the type that JSON cannot carry.
pub fn dumps(value: &Value, style: &JsonStyle) -> Result<String, String> {
    let mut out = String::new();
    write_json(value, style, 0, &mut out)?;
    Ok(out)
}

fn write_json(
    value: &Value,
    style: &JsonStyle,
    depth: usize,
    out: &mut String,
) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("value is nested deeper than {MAX_DEPTH}"));
    }
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value, "NaN", "Infinity")),
        ValueKind::String => {
            write_json_string(value.as_str().unwrap_or_default(), style.ensure_ascii, out);
        }
        _ if value.downcast_object_ref::<Generator>().is_some() => {
            return Err("object of type generator is not JSON serializable".to_owned());
        }
        ValueKind::Seq | ValueKind::Iterable => {
            write_json_items(value, style, depth, ('[', ']'), out)?;
        }
        ValueKind::Map => write_json_items(value, style, depth, ('{', '}'), out)?,
        kind => return Err(format!("object of type {kind} is not JSON serializable")),
    }
    Ok(())
}

fn write_json_items(
    value: &Value,
    style: &JsonStyle,
    depth: usize,
    brackets: (char, char),
    out: &mut String,
) -> Result<(), String> {
    let is_map = brackets.0 == '{';
    let mut items: Vec<Value> = value.try_iter().map_err(|e| e.to_string())?.collect();
    if is_map && style.sort_keys {
        items.sort();
    }
    out.push(brackets.0);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item_separator);
        }
        write_line_break(style, depth + 1, out);
        if is_map {
            write_json_key(item, style, out)?;
            out.push_str(&style.key_separator);
            write_json(
                &value.get_item(item).unwrap_or_default(),
                style,
                depth + 1,
                out,
            )?;
        } else {
            write_json(item, style, depth + 1, out)?;
        }
    }
    if !items.is_empty() {
        write_line_break(style, depth, out);
    }
    out.push(brackets.1);
    Ok(())
}

fn write_line_break(style: &JsonStyle, depth: usize, out: &mut String) {
    if let Some(indent) = &style.indent {
        out.push('\n');
        for _ in 0..depth {
            out.push_str(indent);
        }
    }
}

fn write_json_key(key: &Value, style: &JsonStyle, out: &mut String) -> Result<(), String> {
    if let Some(text) = key.as_str() {
        write_json_string(text, style.ensure_ascii, out);
        return Ok(());
    }
    let mut text = String::new();
    write_json(key, style, MAX_DEPTH, &mut text)?;
    write_json_string(&text, style.ensure_ascii, out);
    Ok(())
}

fn write_json_string(text: &str, ensure_ascii: bool, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' || (ensure_ascii && !c.is_ascii()) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(json: &str) -> String {
        to_str(&from_json(serde_json::from_str(json).unwrap()))
    }

    #[test]
    fn values_print_as_in_python() {
        assert_eq!(
            printed(r#"[1, 1.0, true, null, "a"]"#),
            "[1, 1.0, True, None, 'a']"
        );
        assert_eq!(
            printed(r#"{"a": {"b": []}, "c": {}}"#),
            "{'a': {'b': []}, 'c': {}}"
        );
        assert_eq!(printed("\"plain\""), "plain");
        assert_eq!(
            printed(r#"["it's", "\"", "'\"", "a\nb\\"]"#),
            r#"["it's", '"', '\'"', 'a\nb\\']"#
        );
        assert_eq!(
            printed(r#"["é", "😀", "\u00a0", "\u200d"]"#),
            "['é', '😀', '\\xa0', '\\u200d']"
        );
    }

    #[test]
    fn floats_print_as_in_python() {
        let cases = [
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e300, "1.5e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (-2.5, "-2.5"),
            (0.0, "0.0"),
        ];
        for (value, expected) in cases {
            assert_eq!(to_str(&Value::from(value)), expected);
        }
        assert_eq!(to_str(&Value::from(f64::NEG_INFINITY)), "-inf");
    }

    #[test]
    fn dumps_refuses_what_json_cannot_carry() {
        let style = JsonStyle {
            indent: None,
            item_separator: ", ".into(),
            key_separator: ": ".into(),
            sort_keys: false,
            ensure_ascii: false,
        };
        assert!(dumps(&Value::UNDEFINED, &style).is_err());
        let text = "{\"k\":[1,\"é\\u0001\",{}]}";
        let value = from_json(serde_json::from_str(text).unwrap());
        assert_eq!(
            dumps(&value, &style).unwrap(),
            "{\"k\": [1, \"é\\u0001\", {}]}"
        );
    }
}
