//! Named special tokens and chat templates of a tokenizer.

use std::path::Path;

use serde_json::{Map, Value};

use crate::error::{Code, Result, TextError};
use crate::files;
use crate::template::MAX_SOURCE_BYTES;

const MAX_CONFIG_BYTES: u64 = 16 << 20;
const DEFAULT_TEMPLATE: &str = "default";
/// Named tokens that transformers gives to every chat template.
const NAMED_TOKENS: [&str; 7] = [
    "bos_token",
    "eos_token",
    "unk_token",
    "sep_token",
    "pad_token",
    "cls_token",
    "mask_token",
];

#[derive(Debug, Default)]
pub struct TokenizerConfig {
    /// `{"bos_token": "<s>", …}`: only those that are set.
    tokens: Map<String, Value>,
    /// Name and source; the one that is used by default is named "default".
    templates: Vec<(String, String)>,
}

impl TokenizerConfig {
    /// All files are optional, but one that is present must be whole.
    pub fn load(folder: &Path) -> Result<Self> {
        let path = folder.join("tokenizer_config.json");
        let main = files::read_json(&path, MAX_CONFIG_BYTES)?.unwrap_or(Value::Null);
        let map = folder.join("special_tokens_map.json");
        let map = files::read_json(&map, MAX_CONFIG_BYTES)?.unwrap_or(Value::Null);
        let mut config = Self::default();
        for name in NAMED_TOKENS {
            let token = token_text(&main[name]).or_else(|| token_text(&map[name]));
            if let Some(text) = token {
                config.tokens.insert(name.to_owned(), Value::from(text));
            }
        }
        config.templates = templates(folder, &main)?;
        Ok(config)
    }

    /// The named tokens as the JSON object that a template's globals are made of.
    pub fn tokens_json(&self) -> String {
        Value::Object(self.tokens.clone()).to_string()
    }

    pub fn template(&self, name: &str) -> Option<&str> {
        let name = if name.is_empty() {
            DEFAULT_TEMPLATE
        } else {
            name
        };
        let found = self.templates.iter().find(|(key, _)| key == name);
        found.map(|(_, source)| source.as_str())
    }
}

/// A token is a string or, as an added token, an object with a `content`.
fn token_text(value: &Value) -> Option<&str> {
    value.as_str().or_else(|| value["content"].as_str())
}

/// The newest place wins: chat_template.jinja, chat_template.json, tokenizer_config.json.
fn templates(folder: &Path, config: &Value) -> Result<Vec<(String, String)>> {
    let jinja = folder.join("chat_template.jinja");
    match files::read(&jinja, MAX_SOURCE_BYTES as u64) {
        Ok(bytes) => {
            let source = String::from_utf8(bytes)
                .map_err(|_| TextError::invalid(format!("{} must be UTF-8", jinja.display())))?;
            return Ok(vec![(DEFAULT_TEMPLATE.to_owned(), source)]);
        }
        Err(error) if error.code != Code::NotFound => return Err(error),
        Err(_) => {}
    }
    let json = folder.join("chat_template.json");
    let own = files::read_json(&json, MAX_CONFIG_BYTES)?.unwrap_or(Value::Null);
    let given = if own["chat_template"].is_null() {
        config
    } else {
        &own
    };
    Ok(named_templates(&given["chat_template"]))
}

/// One template, or a list of `{"name": …, "template": …}`.
fn named_templates(value: &Value) -> Vec<(String, String)> {
    if let Some(source) = value.as_str() {
        return vec![(DEFAULT_TEMPLATE.to_owned(), source.to_owned())];
    }
    let pair = |item: &Value| {
        Some((
            item["name"].as_str()?.to_owned(),
            item["template"].as_str()?.to_owned(),
        ))
    };
    value
        .as_array()
        .map(|items| items.iter().filter_map(pair).collect())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_may_be_texts_or_objects() {
        assert_eq!(token_text(&json!("<s>")), Some("<s>"));
        assert_eq!(
            token_text(&json!({"content": "</s>", "lstrip": false})),
            Some("</s>")
        );
        assert_eq!(token_text(&json!(null)), None);
    }

    #[test]
    fn templates_may_be_one_or_several() {
        assert_eq!(
            named_templates(&json!("x")),
            [("default".to_owned(), "x".to_owned())]
        );
        let several =
            json!([{"name": "default", "template": "a"}, {"name": "tool_use", "template": "b"}]);
        assert_eq!(named_templates(&several).len(), 2);
        assert!(named_templates(&json!(null)).is_empty());
    }
}
