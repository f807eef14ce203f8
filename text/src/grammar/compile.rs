//! From a source text to the engine's grammar, and from its errors to one line for a client.

use llguidance::api::TopLevelGrammar;
use llguidance::JsonCompileOptions;
use serde_json::{json, Value};

use super::Limits;
use crate::error::{Code, Result, TextError};

/// Numbers are those of `penstock_grammar_kind` in `include/penstock_text.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    JsonSchema,
    Regex,
    Lark,
}

impl Kind {
    pub fn from_number(number: i32) -> Result<Self> {
        match number {
            1 => Ok(Kind::JsonSchema),
            2 => Ok(Kind::Regex),
            3 => Ok(Kind::Lark),
            _ => Err(TextError::invalid(format!(
                "grammar kind must be 1, 2 or 3. Given: {number}"
            ))),
        }
    }
}

pub fn parse(kind: Kind, source: &str, limits: &Limits) -> Result<TopLevelGrammar> {
    if source.len() > limits.source_bytes {
        return Err(TextError::limit(format!(
            "it must have at most {} bytes. Given: {}",
            limits.source_bytes,
            source.len()
        )));
    }
    match kind {
        Kind::JsonSchema => Ok(TopLevelGrammar::from_json_schema(schema(source)?)),
        Kind::Regex => Ok(TopLevelGrammar::from_regex(&from_python(without_anchors(
            source,
        )))),
        Kind::Lark => Ok(TopLevelGrammar::from_lark(lark(source)?)),
    }
}

fn schema(source: &str) -> Result<Value> {
    let schema: Value = serde_json::from_str(source)
        .map_err(|error| TextError::invalid(format!("it is not JSON: {error}")))?;
    bounded(schema, &mut 0)
}

/// Bounds the schemas in a Lark grammar, all together, like a schema alone.
fn lark(source: &str) -> Result<String> {
    const JSON: &str = "%json";
    let mut squares = 0;
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find(JSON) {
        let (before, after) = rest.split_at(at + JSON.len());
        out.push_str(before);
        rest = after;
        let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
        // The engine reports what is no object.
        if let Some(Ok(value @ Value::Object(_))) = values.next() {
            rest = &after[values.byte_offset()..];
            out.push(' ');
            out.push_str(&bounded(value, &mut squares)?.to_string());
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Adds our whitespace rule to the schema: at most one blank after `,` and `:`, as in TGI. A weak
/// model would otherwise fill its whole answer with blanks.
fn bounded(schema: Value, squares: &mut usize) -> Result<Value> {
    let mut schema = match schema {
        Value::Bool(true) => json!({}),
        Value::Object(_) => schema,
        _ => return Err(TextError::invalid("a schema must be an object or true")),
    };
    check_cost(&schema, squares)?;
    let options = JsonCompileOptions {
        whitespace_pattern: Some(" ".to_owned()),
        ..JsonCompileOptions::default()
    };
    options.apply_to(&mut schema);
    Ok(schema)
}

/// The engine's time for an object is quadratic in its properties, and that for `multipleOf` grows
/// with the number; neither spends fuel.
const MAX_PROPERTIES: usize = 500;
const MAX_SQUARED_PROPERTIES: usize = 500_000;
const MAX_MULTIPLE: f64 = 1000.0;
const MIN_MULTIPLE: f64 = 0.001;

fn check_cost(schema: &Value, squares: &mut usize) -> Result<()> {
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(elements) => open.extend(elements),
            Value::Object(members) => {
                if let Some(count) = members.get("properties").and_then(Value::as_object) {
                    *squares += count.len() * count.len();
                    check_properties(count.len(), *squares)?;
                }
                check_multiple(members.get("multipleOf"))?;
                open.extend(members.values());
            }
            _ => {}
        }
    }
    Ok(())
}

fn check_properties(count: usize, squares: usize) -> Result<()> {
    if count > MAX_PROPERTIES {
        return Err(TextError::limit(format!(
            "an object must have at most {MAX_PROPERTIES} properties. Given: {count}"
        )));
    }
    if squares > MAX_SQUARED_PROPERTIES {
        return Err(TextError::limit("it has too many large objects"));
    }
    Ok(())
}

fn check_multiple(multiple: Option<&Value>) -> Result<()> {
    match multiple.and_then(Value::as_f64) {
        Some(step) if !(MIN_MULTIPLE..=MAX_MULTIPLE).contains(&step) => Err(TextError::limit(
            format!("`multipleOf` must be {MIN_MULTIPLE} to {MAX_MULTIPLE}. Given: {step}"),
        )),
        _ => Ok(()),
    }
}

/// The whole output must match, so a leading `^` and a trailing `$` change nothing. The engine has
/// no anchors.
pub fn without_anchors(source: &str) -> &str {
    let source = source.strip_prefix('^').unwrap_or(source);
    match source.strip_suffix('$') {
        Some(rest) if trailing_backslashes(rest).is_multiple_of(2) => rest,
        _ => source,
    }
}

/// Translates Python's expressions to the engine's syntax. `\d`, `\w` and `\s` mean ASCII, as in
/// TGI and in JSON Schema. The engine allows a class inside a class, so the same text works in both
/// places. `{,5}` is `{0,5}`.
pub fn from_python(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars();
    let mut in_class = false;
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            in_class = c == '[' || (in_class && c != ']');
            if c == '{' && !in_class && is_upper_bound(chars.as_str()) {
                out.push('0');
            }
            continue;
        }
        match chars.next() {
            Some('d') => out.push_str("[0-9]"),
            Some('D') => out.push_str("[^0-9]"),
            Some('w') => out.push_str("[0-9A-Za-z_]"),
            Some('W') => out.push_str("[^0-9A-Za-z_]"),
            Some('s') => out.push_str(r"[ \t\n\r\f\v]"),
            Some('S') => out.push_str(r"[^ \t\n\r\f\v]"),
            Some(other) => out.extend(['\\', other]),
            None => out.push('\\'),
        }
    }
    out
}

/// Whether a text that follows `{` is `,5}`.
fn is_upper_bound(rest: &str) -> bool {
    let Some((digits, _)) = rest.strip_prefix(',').and_then(|rest| rest.split_once('}')) else {
        return false;
    };
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn trailing_backslashes(text: &str) -> usize {
    text.bytes().rev().take_while(|&byte| byte == b'\\').count()
}

/// Removes the engine's positions, which refer to its own grammar, and joins the lines.
fn words_only(text: &str) -> String {
    let text = text.split("| start:").next().unwrap_or(text);
    let text = match text.rsplit_once("error: ") {
        Some((_, said)) => said,
        None => text,
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").trim_end_matches(" 1").to_owned()
}

/// The engine's message without its decorations. A reached limit keeps its code.
pub fn explain(message: &str) -> TextError {
    let text = message
        .split("\n<state>")
        .next()
        .unwrap_or(message)
        .trim_end_matches("<non-verbose/>")
        .trim();
    const LIMITS: [&str; 6] = [
        "too many",
        "too large",
        "too complex",
        "too big",
        "fuel",
        "limit",
    ];
    let text = words_only(text);
    let lower = text.to_lowercase();
    let is_limit = LIMITS.iter().any(|word| lower.contains(word));
    let shown: String = text.chars().take(300).collect();
    TextError {
        code: if is_limit {
            Code::LimitExceeded
        } else {
            Code::InvalidArgument
        },
        ..TextError::invalid(shown)
    }
}
