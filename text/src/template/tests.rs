use super::*;

fn render_with(source: &str, conversation: &Conversation) -> Result<String> {
    let globals = r#"{"bos_token": "<s>", "eos_token": "</s>"}"#;
    ChatTemplate::compile(source, globals)?.render(conversation, &Limits::default())
}

fn render(source: &str) -> String {
    let conversation = Conversation {
        messages_json: r#"[{"role": "user", "content": "é日本x"}]"#,
        ..Conversation::default()
    };
    render_with(source, &conversation).unwrap()
}

#[test]
fn positions_count_characters() {
    assert_eq!(render("{{ messages[0].content.find('x') }}"), "3");
    assert_eq!(
        render("{{ messages[0].content[messages[0].content.find('x'):] }}"),
        "x"
    );
}

#[test]
fn python_methods() {
    assert_eq!(render("{{ 'a.b.c'.rsplit('.', 1) }}"), "['a.b', 'c']");
    assert_eq!(render("{{ 'k=v=w'.partition('=') }}"), "['k', '=', 'v=w']");
    assert_eq!(render("{{ 'k=v=w'.rpartition('=') }}"), "['k=v', '=', 'w']");
    assert_eq!(render("{{ '7'.zfill(3) }}|{{ 'a'.ljust(3) }}|"), "007|a  |");
    assert_eq!(
        render("{{ 'xxaxx'.strip('x') }}{{ ' b '.lstrip() }}|"),
        "ab |"
    );
    assert_eq!(
        render("{{ 'abc'.removeprefix('a').removesuffix('c') }}"),
        "b"
    );
    assert_eq!(
        render("{{ ''.isdigit() }} {{ [1, 2].index(2) }}"),
        "False 1"
    );
}

#[test]
fn printing_and_json() {
    assert_eq!(
        render("{{ messages[0] }}"),
        "{'role': 'user', 'content': 'é日本x'}"
    );
    assert_eq!(
        render("{{ 'v: ' ~ messages }}"),
        "v: [{'role': 'user', 'content': 'é日本x'}]"
    );
    assert_eq!(
        render("{{ none }}{{ true }}{{ [1, 'a', 2.0] }}{{ nope }}"),
        "NoneTrue[1, 'a', 2.0]"
    );
    assert_eq!(
        render("{{ {'a': [1, {}], 'b': '<&\\'>'} | tojson }}"),
        r#"{"a": [1, {}], "b": "<&'>"}"#
    );
    assert_eq!(
        render("{{ {'a': [1]} | tojson(indent=2) }}"),
        "{\n  \"a\": [\n    1\n  ]\n}"
    );
}

#[test]
fn an_exception_of_the_template_is_its_message() {
    let error = render_with(
        "{% macro m() %}{{ raise_exception('roles must alternate') }}{% endmacro %}{{ m() }}",
        &Conversation {
            messages_json: "[]",
            ..Conversation::default()
        },
    )
    .unwrap_err();
    assert_eq!(error.code, crate::error::Code::Template);
    assert_eq!(
        error.message,
        "syntax error: roles must alternate (in <string>:1)"
    );
}

#[test]
fn generation_tags_print_nothing() {
    assert_eq!(
        render("a{%- generation -%} b {%- endgeneration -%}c"),
        "abc"
    );
}

#[test]
fn arguments_do_not_replace_the_conversation() {
    let conversation = Conversation {
        messages_json: "[]",
        kwargs_json: Some(r#"{"messages": [1], "enable_thinking": false}"#),
        add_generation_prompt: true,
        ..Conversation::default()
    };
    let source = "{{ messages }} {{ enable_thinking }} {{ add_generation_prompt }} {{ bos_token }}";
    assert_eq!(
        render_with(source, &conversation).unwrap(),
        "[] False True <s>"
    );
}

#[test]
fn hostile_templates_end_with_an_error() {
    let conversation = Conversation {
        messages_json: "[]",
        ..Conversation::default()
    };
    let loops = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
    let recursion = "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}";
    let output = "{% for a in range(90000) %}{{ 'x' * 1000 }}{% endfor %}";
    let repeat = "{{ 'x' * 1000000000000 }}";
    let deep = format!("{{{{ {}1{} }}}}", "(".repeat(100_000), ")".repeat(100_000));
    for source in [
        loops,
        recursion,
        output,
        repeat,
        &deep,
        "{% for %}",
        "{{ [1, 2 }}",
    ] {
        let error = render_with(source, &conversation).unwrap_err();
        assert!(
            !error.message.is_empty() && error.message.len() < 400,
            "{}",
            error.message
        );
    }
}

#[test]
fn bad_json_names_its_field() {
    let cases = [
        (
            Conversation {
                messages_json: "[",
                ..Conversation::default()
            },
            "messages",
        ),
        (
            Conversation {
                messages_json: "[]",
                tools_json: Some("{"),
                ..Conversation::default()
            },
            "tools",
        ),
        (
            Conversation {
                messages_json: "[]",
                kwargs_json: Some("[]"),
                ..Conversation::default()
            },
            "chat_template_kwargs",
        ),
    ];
    for (conversation, field) in cases {
        let error = render_with("x", &conversation).unwrap_err();
        assert_eq!(error.code, crate::error::Code::InvalidArgument);
        assert!(error.message.starts_with(field), "{}", error.message);
    }
    let deep = "[".repeat(100_000);
    let conversation = Conversation {
        messages_json: &deep,
        ..Conversation::default()
    };
    assert!(render_with("x", &conversation)
        .unwrap_err()
        .message
        .starts_with("messages"));
}
