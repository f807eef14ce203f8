//! What is inside this library.

use llguidance::api::ParserLimits;
use toktrie::SimpleVob;

const LOCK_FILE: &str = include_str!("../Cargo.lock");
const SHOWN: [&str; 4] = ["tokenizers", "minijinja", "llguidance", "toktrie"];

/// "tokenizers 0.22.2, minijinja 2.24.0, …" and the grammar engine's work limit per step.
pub fn describe() -> String {
    let versions: Vec<String> = SHOWN
        .iter()
        .map(|name| format!("{name} {}", locked_version(name)))
        .collect();
    let fuel = ParserLimits::default().step_lexer_fuel;
    let word_bits = SimpleVob::alloc(1).as_slice().len() * 32;
    format!(
        "{}; grammar step fuel {fuel}, mask word {word_bits} bits",
        versions.join(", ")
    )
}

fn locked_version(package: &str) -> &'static str {
    let entry = format!("name = \"{package}\"\nversion = \"");
    LOCK_FILE
        .split_once(&entry)
        .and_then(|(_, rest)| rest.split_once('"'))
        .map_or("unknown", |(version, _)| version)
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_every_library_with_its_version() {
        let text = super::describe();
        assert!(
            text.contains("tokenizers 0.22.") && !text.contains("unknown"),
            "{text}"
        );
    }
}
