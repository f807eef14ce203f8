//! Filters, tests and functions of Jinja2; those whose printing differs from Python's are our own.

use std::borrow::Cow;

use minijinja::value::{Kwargs, Rest, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State};

use crate::python::{self, JsonStyle};

const MAX_INDENT: usize = 64;

pub fn add_to(environment: &mut Environment) {
    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| python::to_str(value));
    environment.add_filter("join", join);
    environment.add_filter("int", to_int);
    environment.add_filter("float", to_float);
    add_lazy_filters(environment);
    environment.add_test("iterable", |value: &Value| {
        !value.is_none() && value.try_iter().is_ok()
    });
}

/// In Jinja2 these give generators, which can be looped over but not printed as JSON.
fn add_lazy_filters(environment: &mut Environment) {
    use minijinja::filters;
    type Name<'a> = Option<Cow<'a, str>>;
    environment.add_filter("map", |state: &State, value: Value, args: Rest<Value>| {
        filters::map(state, value, args).map(python::generator)
    });
    environment.add_filter(
        "select",
        |s: &State, v: Value, test: Name, args: Rest<Value>| {
            filters::select(s, v, test, args).map(python::generator)
        },
    );
    environment.add_filter(
        "reject",
        |s: &State, v: Value, test: Name, args: Rest<Value>| {
            filters::reject(s, v, test, args).map(python::generator)
        },
    );
    environment.add_filter(
        "selectattr",
        |s: &State, v: Value, attribute: Cow<'_, str>, test: Name, args: Rest<Value>| {
            filters::selectattr(s, v, attribute, test, args).map(python::generator)
        },
    );
    environment.add_filter(
        "rejectattr",
        |s: &State, v: Value, attribute: Cow<'_, str>, test: Name, args: Rest<Value>| {
            filters::rejectattr(s, v, attribute, test, args).map(python::generator)
        },
    );
}

/// transformers' own `tojson`: `json.dumps` without HTML escapes.
fn to_json(value: &Value, positional: Rest<Value>, named: Kwargs) -> Result<String, Error> {
    let argument = |index: usize, name: &str| -> Result<Option<Value>, Error> {
        match positional.get(index) {
            Some(value) => Ok(Some(value.clone())),
            None => named.get::<Option<Value>>(name),
        }
    };
    let ensure_ascii = argument(0, "ensure_ascii")?.is_some_and(|value| value.is_true());
    let indent = indent_text(argument(1, "indent")?)?;
    let (item_separator, key_separator) = separators(argument(2, "separators")?, &indent)?;
    let sort_keys = argument(3, "sort_keys")?.is_some_and(|value| value.is_true());
    named.assert_all_used()?;
    let style = JsonStyle {
        indent,
        item_separator,
        key_separator,
        sort_keys,
        ensure_ascii,
    };
    python::dumps(value, &style).map_err(|what| Error::new(ErrorKind::InvalidOperation, what))
}

fn indent_text(value: Option<Value>) -> Result<Option<String>, Error> {
    match value {
        Some(value) if !value.is_none() => match value.as_str() {
            Some(text) => Ok(Some(text.chars().take(MAX_INDENT).collect())),
            None => Ok(Some(" ".repeat(usize::try_from(value)?.min(MAX_INDENT)))),
        },
        _ => Ok(None),
    }
}

fn separators(value: Option<Value>, indent: &Option<String>) -> Result<(String, String), Error> {
    match value {
        Some(pair) if !pair.is_none() => {
            let items: Vec<Value> = pair.try_iter()?.collect();
            match items.as_slice() {
                [item, key] => Ok((python::to_str(item), python::to_str(key))),
                _ => Err(Error::new(
                    ErrorKind::InvalidOperation,
                    "separators must be a pair",
                )),
            }
        }
        _ => Ok((
            if indent.is_some() { "," } else { ", " }.to_owned(),
            ": ".to_owned(),
        )),
    }
}

fn join(
    value: &Value,
    separator: Option<String>,
    attribute: Option<String>,
) -> Result<String, Error> {
    let separator = separator.unwrap_or_default();
    if value.is_undefined() {
        return Ok(String::new());
    }
    let mut out = String::new();
    for (index, item) in value.try_iter()?.enumerate() {
        if index > 0 {
            out.push_str(&separator);
        }
        match &attribute {
            Some(name) if item.kind() == ValueKind::Map => {
                out.push_str(&python::to_str(&item.get_attr(name)?));
            }
            _ => out.push_str(&python::to_str(&item)),
        }
    }
    Ok(out)
}

/// `int(value)`, else `int(float(value))`, else the default.
fn to_int(value: &Value, default: Option<Value>) -> Value {
    let whole = match value.as_str() {
        Some(text) => text.trim().parse::<i64>().ok(),
        None if value.kind() == ValueKind::Bool => Some(i64::from(value.is_true())),
        None => i64::try_from(value.clone()).ok(),
    };
    let truncated = || float_of(value).filter(|x| x.abs() < 9e18).map(|x| x as i64);
    match whole.or_else(truncated) {
        Some(number) => Value::from(number),
        None => default.unwrap_or_else(|| Value::from(0)),
    }
}

/// `float(value)`, else the default.
fn to_float(value: &Value, default: Option<Value>) -> Value {
    match float_of(value) {
        Some(number) => Value::from(number),
        None => default.unwrap_or_else(|| Value::from(0.0)),
    }
}

fn float_of(value: &Value) -> Option<f64> {
    match value.as_str() {
        Some(text) => text.trim().parse().ok(),
        None if value.kind() == ValueKind::Bool => Some(f64::from(u8::from(value.is_true()))),
        None if value.kind() == ValueKind::Number => f64::try_from(value.clone()).ok(),
        None => None,
    }
}
