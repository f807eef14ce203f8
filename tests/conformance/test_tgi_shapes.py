"""Bodies of odd shapes are refused with a text that names the place, in the form of TGI's framework.

No recording shows these bodies. docs/api/tgi-differences.md says where our texts differ from those
of axum, serde_json and serde_path_to_error.
"""

import pytest
from test_tgi_bounds import port  # noqa: F401
from tgi_recordings import fetch

JSON, SHAPE = 400, 422
PREFIXES = {JSON: "Failed to parse the request body as JSON: ",
            SHAPE: "Failed to deserialize the JSON body into the target type: "}

REFUSED = [
    ("/generate",
     '{"inputs":"a","parameters":{"grammar":{"type":5,"value":"x"}}}',
     SHAPE, "parameters.grammar.type: invalid type: integer `5`, expected variant identifier at"
     " line 1 column 47"),
    ("/generate",
     '{"inputs":"a","parameters":{"grammar":{"type":"nope","value":"x"}}}',
     SHAPE, "parameters.grammar.type: unknown variant `nope`, expected one of `json`,"
     " `json_object`, `regex`, `json_schema` at line 1 column 52"),
    ("/generate",
     '{"inputs":"a","parameters":{"grammar":{"type":"regex","value":"a","value":"b"}}}',
     SHAPE, "parameters.grammar: duplicate field `value` at line 1 column 73"),
    ("/generate",
     '{"inputs":"a","parameters":{"grammar":["regex"]}}',
     SHAPE, "parameters.grammar: invalid type: sequence, expected adjacently tagged enum GrammarType at"
     " line 1 column 38"),
    ("/generate",
     '{"inputs":"a","parameters":{"grammar":{"type":"json_schema","value":["n"]}}}',
     SHAPE, "parameters.grammar.value: invalid type: sequence, expected struct JsonSchemaConfig at"
     " line 1 column 68"),
    ("/generate",
     '{"inputs":"a","parameters":{"max_new_tokens":1',
     JSON, "parameters.?: EOF while parsing an object at line 1 column 46"),
    ("/generate",
     '{"inputs":"a","parameters":{"max_new_tokens" 1}}',
     JSON, "parameters: expected `:` at line 1 column 46"),
    ("/generate",
     '{"inputs":"a","zzz":[1,]}',
     JSON, "zzz: trailing comma at line 1 column 24"),
    ("/generate",
     '{"inputs":"a","zzz":{"a":1,}}',
     JSON, "zzz.?: trailing comma at line 1 column 28"),
    ("/generate",
     '{"zzz":{"a":1 "b":2},"inputs":"a"}',
     JSON, "zzz.?: expected `,` or `}` at line 1 column 15"),
    ("/generate",
     '["a",{"max_new_tokens":1},1]',
     SHAPE, "invalid type: sequence, expected struct GenerateRequest at line 1 column 0"),
    ("/generate",
     '{"inputs":"a","parameters":{"stop":["a",]}}',
     JSON, "parameters.stop: trailing comma at line 1 column 41"),
    ("/generate",
     '{"inputs":"a","parameters":{"seed":-0}}',
     SHAPE, "parameters.seed: invalid type: floating point `-0.0`, expected u64 at line 1 column 37"),
    ("/generate",
     '{"inputs":"a","parameters":{"top_k":1e1}}',
     SHAPE, "parameters.top_k: invalid type: floating point `10.0`, expected i32 at line 1 column 39"),
    ("/generate",
     '{"parameters":{"top_k":"1"},"inputs":5}',
     SHAPE, "parameters.top_k: invalid type: string \"1\", expected i32 at line 1 column 26"),
    ("/v1/completions",
     '["x","Hello",3]',
     SHAPE, "invalid type: sequence, expected struct CompletionRequest at line 1 column 0"),
    ("/v1/completions",
     '{"prompt":["a",5]}',
     SHAPE, "prompt: data did not match any variant of untagged enum PromptDeserializer at line 1 column 18"),
    ("/v1/completions",
     '{"prompt":[]}',
     SHAPE, "prompt: Empty array detected. Do not use an empty array for the prompt. at line 1 column 13"),
    ("/vertex",
     '[]',
     SHAPE, "missing field `instances` at line 1 column 2"),
    ("/vertex",
     '{"instances":[{"inputs":"a","inputs":"b"}]}',
     SHAPE, "instances[0]: data did not match any variant of untagged enum VertexInstance at line 1 column 42"),
    ("/vertex",
     '{"instances":[["a"]]}',
     SHAPE, "instances[0]: data did not match any variant of untagged enum VertexInstance at line 1 column 20"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","content":"a","content":"b"}]}',
     SHAPE, "messages[0]: data did not match any variant of untagged enum MessageBody at line 1 column 56"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","content":[{"type":"text","text":"a","text":"b"}]}]}',
     SHAPE, "messages[0]: data did not match any variant of untagged enum MessageBody at line 1 column 78"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","content":[{"type":"sound","text":"a"}]}]}',
     SHAPE, "messages[0]: data did not match any variant of untagged enum MessageBody at line 1 column 68"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","role":"user","content":"a"}]}',
     SHAPE, "messages[0]: duplicate field `role` at line 1 column 34"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"assistant","tool_calls":[{"id":"0","id":"0","type":"function",'
     '"function":{"name":"f","arguments":{}}}]}]}',
     SHAPE, "messages[0]: data did not match any variant of untagged enum MessageBody at line 1 column 125"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","content":"a"}],"tool_choice":{"type":"other","function":{"name":"f"}}}',
     SHAPE, "tool_choice: data did not match any variant of untagged enum ToolTypeDeserializer at"
     " line 1 column 99"),
    ("/v1/chat/completions",
     '{"messages":[{"role":"user","content":"a"}],"response_format":{"type":null,"value":1}}',
     SHAPE, "response_format.type: invalid type: null, expected variant identifier at line 1 column 74"),
    ("/chat_tokenize",
     '{"messages":[["user","a"]]}',
     SHAPE, "messages[0]: invalid type: sequence, expected struct Message at line 1 column 13"),
    ("/chat_tokenize",
     '{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function",'
     '"function":{"name":"f","parameters":{},"arguments":{}}}]}',
     SHAPE, "tools[0].function: duplicate field `arguments` at line 1 column 122"),
    ("/invocations",
     '{"inputs":"a","zzz":{"a":1,}}',
     JSON, "zzz.?: trailing comma at line 1 column 28"),
    ("/invocations",
     '{"inputs":5}',
     SHAPE, "data did not match any variant of untagged enum SagemakerRequest"),
    ("/invocations",
     '{"inputs":"a","parameters":{"max_new_tokens":2,"max_new_tokens":2}}',
     SHAPE, "data did not match any variant of untagged enum SagemakerRequest"),
    ("/tokenize",
     r'{"inputs":"\ud800\u0041"}',
     JSON, "inputs: lone leading surrogate in hex escape at line 1 column 23"),
]

def post(port, path, body):
    status, _, text = fetch(port, {"method": "POST", "path": path, "body": body,
                                   "headers": [["content-type", "application/json"]]})
    return status, text


@pytest.mark.parametrize(("path", "body", "status", "error"), REFUSED)
def test_an_unusual_body_is_refused_with_its_place(port, path, body, status, error):  # noqa: F811
    assert post(port, path, body) == (status, PREFIXES[status] + error)
