//! Chat templates: Jinja2 as Hugging Face transformers runs it, with limits.
//!
//! A compiled template is immutable; rendering takes all its inputs as arguments, the clock too, so
//! it can run on many threads at once.

mod budget;
mod clock;
mod filters;
mod methods;
mod operators;
mod program;

use std::sync::Arc;

use minijinja::value::Value;
use minijinja::{Environment, ErrorKind, UndefinedBehavior};

use budget::Budget;
use program::Program;

use crate::error::{Result, TextError};
use crate::python;

/// Source text of a template, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Nested macros and loops.
const MAX_RECURSION: usize = 128;
/// Bytes that blocks, macros and joined texts may have together, as a multiple of the output's bound.
const WORK_FACTOR: u64 = 4;

/// Bounds of one rendering.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// JSON texts together, in bytes.
    pub input_bytes: usize,
    /// Rendered text, in bytes.
    pub output_bytes: usize,
    /// Template instructions.
    pub steps: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            input_bytes: 32 << 20,
            output_bytes: 32 << 20,
            steps: 1_000_000,
        }
    }
}

/// What one rendering sees. JSON texts keep the client's order of keys.
#[derive(Debug, Default)]
pub struct Conversation<'a> {
    pub messages_json: &'a str,
    /// Absent: `tools` is None in the template.
    pub tools_json: Option<&'a str>,
    /// An object of further variables; it cannot replace the named ones.
    pub kwargs_json: Option<&'a str>,
    pub add_generation_prompt: bool,
    /// Local wall-clock time that `strftime_now` prints, in seconds since 1970.
    pub now_seconds: i64,
}

pub struct ChatTemplate {
    program: Program,
    environment: Environment<'static>,
    globals: Vec<(String, Value)>,
}

impl ChatTemplate {
    /// `globals_json`: an object of variables that every rendering sees (bos_token, eos_token, …).
    pub fn compile(source: &str, globals_json: &str) -> Result<Self> {
        if source.len() > MAX_SOURCE_BYTES {
            return Err(TextError::limit(format!(
                "chat_template must have at most {MAX_SOURCE_BYTES} bytes. Given: {}",
                source.len()
            )));
        }
        let globals = parse_object("template globals", globals_json)?;
        let program = Program::compile(prepare(source))
            .map_err(|error| TextError::template(error.to_string()))?;
        Ok(Self {
            program,
            environment: environment(),
            globals,
        })
    }

    pub fn render(&self, conversation: &Conversation, limits: &Limits) -> Result<String> {
        let context = self.context(conversation, limits)?;
        let budget = Arc::new(Budget::new(limits.output_bytes as u64 * WORK_FACTOR));
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(limits.steps));
        spend_from(&mut environment, &budget);
        let rendered = self.program.run(&environment, context);
        let too_long = rendered
            .as_ref()
            .is_ok_and(|text| text.len() > limits.output_bytes);
        if too_long || budget.is_spent() {
            return Err(TextError::limit(format!(
                "rendered chat template must have at most {} bytes",
                limits.output_bytes
            )));
        }
        rendered.map_err(|error| match root(&error).kind() {
            ErrorKind::OutOfFuel => TextError::limit(format!(
                "chat template must end within {} steps",
                limits.steps
            )),
            // minijinja's own text, which clients of other servers know: "syntax error: roles must
            // alternate (in <string>:1)".
            _ => TextError::template(error.to_string()),
        })
    }

    fn context(&self, conversation: &Conversation, limits: &Limits) -> Result<Value> {
        let given = conversation.messages_json.len()
            + conversation.tools_json.map_or(0, str::len)
            + conversation.kwargs_json.map_or(0, str::len);
        if given > limits.input_bytes {
            return Err(TextError::limit(format!(
                "messages, tools and template arguments must have at most {} bytes. Given: {given}",
                limits.input_bytes
            )));
        }
        let mut variables: indexmap::IndexMap<String, Value> =
            self.globals.iter().cloned().collect();
        variables.insert("documents".into(), Value::from(()));
        if let Some(json) = conversation.kwargs_json {
            variables.extend(parse_object("chat_template_kwargs", json)?);
        }
        let tools = match conversation.tools_json {
            Some(json) => parse("tools", json)?,
            None => Value::from(()),
        };
        variables.insert(
            "messages".into(),
            parse("messages", conversation.messages_json)?,
        );
        variables.insert("tools".into(), tools);
        let prompt = Value::from(conversation.add_generation_prompt);
        variables.insert("add_generation_prompt".into(), prompt);
        let now = conversation.now_seconds;
        let strftime = move |format: &str| clock::strftime(format, now);
        variables.insert("strftime_now".into(), Value::from_function(strftime));
        variables.insert(
            "raise_exception".into(),
            Value::from_function(raise_exception),
        );
        Ok(Value::from_iter(variables))
    }
}

/// The switches that transformers sets on Jinja2.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    filters::add_to(&mut environment);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_recursion_limit(MAX_RECURSION);
    environment.set_unknown_method_callback(methods::call);
    environment
}

/// What one rendering makes is counted: output, captured blocks and joined texts.
fn spend_from(environment: &mut Environment, budget: &Arc<Budget>) {
    let own = budget.clone();
    environment.add_filter(program::ADD, move |a: &Value, b: &Value| {
        operators::add(a, b, &own)
    });
    let own = budget.clone();
    environment.add_filter(program::CONCAT, move |a: &Value, b: &Value| {
        operators::concat(a, b, &own)
    });
    environment.add_filter(program::LOOP_OVER, operators::loop_over);
    let own = budget.clone();
    environment.set_formatter(move |out, _, value| {
        let text = python::to_str(value);
        own.take(text.len())?;
        out.write_str(&text).map_err(minijinja::Error::from)
    });
}

fn raise_exception(message: &str) -> std::result::Result<Value, minijinja::Error> {
    Err(minijinja::Error::new(
        ErrorKind::SyntaxError,
        message.to_owned(),
    ))
}

/// Line ends become "\n", as Jinja2's lexer makes them, and `{% generation %}`, which marks
/// assistant text for training, prints nothing.
fn prepare(source: &str) -> String {
    let source = source.replace("\r\n", "\n").replace('\r', "\n");
    let tag = regex::Regex::new(r"(\{%[-+]?\s*)(end)?generation(\s*[-+]?%\})");
    let Ok(tag) = tag else {
        return source.to_owned();
    };
    tag.replace_all(&source, |groups: &regex::Captures| {
        let word = if groups.get(2).is_some() {
            "endif"
        } else {
            "if true"
        };
        format!("{}{word}{}", &groups[1], &groups[3])
    })
    .into_owned()
}

fn parse(field: &str, json: &str) -> Result<Value> {
    serde_json::from_str(json)
        .map(python::from_json)
        .map_err(|error| TextError::invalid(format!("{field} must be valid JSON: {error}")))
}

fn parse_object(field: &str, json: &str) -> Result<Vec<(String, Value)>> {
    let parsed: serde_json::Map<String, serde_json::Value> = serde_json::from_str(json)
        .map_err(|error| TextError::invalid(format!("{field} must be a JSON object: {error}")))?;
    Ok(parsed
        .into_iter()
        .map(|(key, value)| (key, python::from_json(value)))
        .collect())
}

/// The error that started it: an error inside a macro or block is wrapped on its way out.
fn root(error: &minijinja::Error) -> &minijinja::Error {
    let mut deepest = error;
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        if let Some(inner) = inner.downcast_ref::<minijinja::Error>() {
            deepest = inner;
        }
        source = inner.source();
    }
    deepest
}

#[cfg(test)]
mod tests;
