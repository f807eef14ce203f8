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
    let doubling = "{% set n = namespace(x='x') %}{% for a in range(90) %}\
        {% set n.x = n.x + n.x %}{% endfor %}";
    let joining = doubling.replace("n.x + n.x", "n.x ~ n.x");
    let lists = doubling.replace("x='x'", "x=[1]");
    let captured =
        "{% set x %}{% for a in range(90000) %}{{ 'x' * 10000 }}{% endfor %}{% endset %}";
    let line = "x".repeat(9_000);
    let raw =
        format!("{{% set x %}}{{% for a in range(90000) %}}{line}{{% endfor %}}{{% endset %}}");
    for source in [
        doubling,
        &joining,
        &lists,
        captured,
        &raw,
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

#[test]
fn operators_are_those_of_python() {
    assert_eq!(
        render("{{ 1 + 2 }} {{ 1 + 0.5 }} {{ true + 1 }} {{ [1] + ['a'] }}"),
        "3 1.5 2 [1, 'a']"
    );
    assert_eq!(
        render("{% set x = '\"a\"' %}{{ x + '<b>'|safe + x }}"),
        "&#34;a&#34;<b>&#34;a&#34;"
    );
    assert_eq!(
        render("{% set x = [1, 'a'] %}{{ x ~ none ~ nope ~ 1.0 }}"),
        "[1, 'a']None1.0"
    );
    assert_eq!(
        render("{% for x in [3, 1] if x > 1 %}{{ x }}{% else %}-{% endfor %}"),
        "3"
    );
    assert_eq!(
        render("{% for x in (none if false else [7]) %}{{ x }}{% endfor %}"),
        "7"
    );
    assert_eq!(
        render("{% for x in nope %}{% else %}empty{% endfor %}"),
        "empty"
    );
    for source in [
        "{{ 'a' + messages }}",
        "{{ 'a' + none }}",
        "{% for x in none %}{% endfor %}",
    ] {
        let conversation = Conversation {
            messages_json: "[]",
            ..Conversation::default()
        };
        assert!(render_with(source, &conversation).is_err(), "{source}");
    }
}

#[test]
fn jumps_survive_the_replacement_of_operators() {
    let source = "{% macro m(a, b='x' + 'y') %}{% for i in range(3) %}{% if i == 1 %}{% continue %}\
        {% endif %}{{ a + b ~ i }}{% endfor %}{{ caller(1) if caller }}{% endmacro %}\
        {% for i in messages recursive %}{{ m('p') if i and (i.role + '' == 'user') else 'q' + 'r' }}\
        {% endfor %}{% call(z) m('c') %}{{ z + 1 }}{% endcall %}";
    assert_eq!(render(source), "pxy0pxy2cxy0cxy22");
}

#[test]
fn values_that_are_no_numbers_become_the_default() {
    assert_eq!(
        render("{{ ' 7 '|int }} {{ '7.9'|int }} {{ 'x'|int }} {{ {}|int(5) }}"),
        "7 7 0 5"
    );
    assert_eq!(
        render("{{ '1.5'|float }} {{ 'x'|float }} {{ none|float(2.0) }} {{ true|float }}"),
        "1.5 0.0 2.0 1.0"
    );
}
