use super::*;
use crate::error::Code;

fn refusal(kind: Kind, source: &str) -> TextError {
    compile::parse(kind, source, &Limits::default()).unwrap_err()
}

#[test]
fn sources_that_would_cost_too_much_are_refused_before_the_engine_sees_them() {
    let long = "a".repeat(300_000);
    assert_eq!(refusal(Kind::Regex, &long).code, Code::LimitExceeded);
    let properties: Vec<String> = (0..501).map(|i| format!("\"p{i}\":{{}}")).collect();
    let wide = format!("{{\"properties\":{{{}}}}}", properties.join(","));
    let error = refusal(Kind::JsonSchema, &wide);
    assert_eq!(error.code, Code::LimitExceeded);
    assert!(error.message.contains("Given: 501"), "{}", error.message);
    let object = format!("{{\"properties\":{{{}}}}}", properties[..400].join(","));
    let many = format!("{{\"anyOf\":[{}]}}", vec![object; 4].join(","));
    assert_eq!(
        refusal(Kind::JsonSchema, &many).message,
        "it has too many large objects"
    );
    let error = refusal(Kind::JsonSchema, r#"{"multipleOf":99991}"#);
    assert!(error.message.contains("multipleOf"), "{}", error.message);
}

#[test]
fn schemas_in_a_lark_grammar_have_the_same_bounds() {
    let wide = "start: %json {\"multipleOf\":99991}";
    assert_eq!(refusal(Kind::Lark, wide).code, Code::LimitExceeded);
    let properties: Vec<String> = (0..400).map(|i| format!("\"p{i}\":{{}}")).collect();
    let object = format!("%json {{\"properties\":{{{}}}}}", properties.join(","));
    let many = format!("start: {}", vec![object; 4].join(" | "));
    assert_eq!(refusal(Kind::Lark, &many).code, Code::LimitExceeded);
    assert!(compile::parse(Kind::Lark, "start: %json {} \"x\"", &Limits::default()).is_ok());
}

#[test]
fn sources_that_are_no_schema_are_refused_with_the_position() {
    let error = refusal(Kind::JsonSchema, "{\"a\":");
    assert_eq!(error.code, Code::InvalidArgument);
    assert!(
        error.message.contains("line 1 column 5"),
        "{}",
        error.message
    );
    assert_eq!(refusal(Kind::JsonSchema, "3").code, Code::InvalidArgument);
    assert!(compile::parse(Kind::JsonSchema, "true", &Limits::default()).is_ok());
}

#[test]
fn classes_are_ascii_and_anchors_change_nothing() {
    assert_eq!(
        compile::from_python(r"\d\\d[\W]"),
        r"[0-9]\\d[[^0-9A-Za-z_]]"
    );
    assert_eq!(compile::without_anchors(r"^a\\$"), r"a\\");
    assert_eq!(compile::without_anchors(r"a\$"), r"a\$");
}

#[test]
fn an_upper_bound_alone_is_as_in_python() {
    assert_eq!(
        compile::from_python(r"a{,3}[{,3}]\{,3}b{,}"),
        r"a{0,3}[{,3}]\{,3}b{,}"
    );
}

#[test]
fn the_engines_messages_become_one_line_and_limits_keep_their_code() {
    let error = compile::explain("lexer error: too many states: 9 >= 9\n<state>\nTokens\n</state>");
    assert_eq!(error.code, Code::LimitExceeded);
    assert_eq!(error.message, "too many states: 9 >= 9");
    let error = compile::explain(
        "at 1(8): invalid regex \"(\" (in regex): regex parse error:     (     ^ \
         error: unclosed group    1 | start: /(/",
    );
    assert_eq!(error.message, "unclosed group");
    assert_eq!(
        compile::explain("unclosed group").code,
        Code::InvalidArgument
    );
}
