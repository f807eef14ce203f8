"""Agent loops with two tools through the libraries of agents: plain, streamed, and errors as their own exceptions.

The shard is simulated and outputs the last text between <<< and >>>, so the result of a tool says what comes next.
"""

import json
import typing

import pytest

from penstock_testing import BIN, Server

TEMPLATE = "{% for message in messages %}{{ message | tojson }}\n{% endfor %}assistant: "
CALLS = ('<think>\nLook it up.\n</think>\n\nI look.\n'
         '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>\n'
         '<tool_call>\n{"name": "get_time", "arguments": {"city": "Rome"}}\n</tool_call>\n')
QUESTION = f"Say <<<{CALLS}>>> please."
FUNCTIONS = [{"name": name, "description": "Looks it up.", "parameters": {
    "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
    for name in ("get_weather", "get_time")]
CHAT_TOOLS = [{"type": "function", "function": function} for function in FUNCTIONS]
FLAT_TOOLS = [{"type": "function", **function} for function in FUNCTIONS]


def run_tool(name, city):
    return {"get_weather": f"12 degrees in {city}", "get_time": f"noon in {city}: <<<It is 12 and noon.>>>"}[name]


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    if not (BIN / "penstock-launcher").exists():
        pytest.skip(f"binaries are not built in {BIN.parent.name}/bin")
    config = tmp_path_factory.mktemp("template") / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": TEMPLATE}))
    with Server("--shard-program", BIN / "penstock-simshard", "--tokens", "echo",
                "--tool-format", "hermes", "--tokenizer-config-path", config) as running:
        yield f"{running.url}/v1"


class TestLiteLlm:
    @pytest.fixture(autouse=True)
    def library(self, url, monkeypatch):
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else it fetches a list of prices
        self.litellm = pytest.importorskip("litellm")
        self.target = {"model": "hosted_vllm/tgi", "api_base": url, "api_key": "unused", "num_retries": 0}
        self.responses_target = {**self.target, "model": "openai/tgi"}

    @pytest.mark.parametrize("stream", [False, True])
    def test_chat_loop(self, stream):
        messages = [{"role": "user", "content": QUESTION}]
        for asked in range(3):
            answer = self.litellm.completion(messages=messages, tools=CHAT_TOOLS, stream=stream, **self.target)
            if stream:
                answer = self.litellm.stream_chunk_builder(list(answer), messages=messages)
            message = answer.choices[0].message
            if not message.tool_calls:
                break
            assert message.reasoning_content == "Look it up."
            assert answer.choices[0].finish_reason == "tool_calls"
            messages.append(message.model_dump())
            for call in message.tool_calls:
                result = run_tool(call.function.name, **json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        assert asked == 1 and message.content == "It is 12 and noon."

    @pytest.mark.parametrize("stream", [False, True])
    def test_responses_loop(self, stream):
        conversation = [{"role": "user", "content": QUESTION}]
        for asked in range(3):
            answer = self.litellm.responses(input=conversation, tools=FLAT_TOOLS, stream=stream,
                                            **self.responses_target)
            if stream:
                answer = list(answer)[-1].response
            calls = [item for item in answer.output if item.type == "function_call"]
            if not calls:
                break
            for call in calls:
                conversation.append({"type": "function_call", "call_id": call.call_id, "name": call.name,
                                     "arguments": call.arguments})
            for call in calls:
                conversation.append({"type": "function_call_output", "call_id": call.call_id,
                                     "output": run_tool(call.name, **json.loads(call.arguments))})
        assert asked == 1 and len(conversation) == 5
        assert answer.output[0].content[0].text == "It is 12 and noon."

    def test_errors(self):
        messages = [{"role": "user", "content": "x"}]
        with pytest.raises(self.litellm.ContextWindowExceededError):
            self.litellm.completion(messages=messages, max_tokens=10**6, **self.target)
        with pytest.raises(self.litellm.BadRequestError, match="temperature"):
            self.litellm.completion(messages=messages, temperature=5, **self.target)
        with pytest.raises(self.litellm.BadRequestError, match="temperature"):
            self.litellm.responses(input="x", temperature=5, **self.responses_target)
        with pytest.raises(self.litellm.InternalServerError):
            self.litellm.completion(messages=[{"role": "user", "content": "[[fail:1]]"}], **self.target)


@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
class TestLangChain:
    @pytest.fixture(autouse=True)
    def library(self, url, responses):
        langchain = pytest.importorskip("langchain_openai")
        self.model = langchain.ChatOpenAI(
            model="tgi", base_url=url, api_key="unused", max_retries=0, use_responses_api=responses)

    @pytest.mark.parametrize("stream", [False, True])
    def test_loop(self, stream):
        from langchain_core.messages import HumanMessage, ToolMessage
        model = self.model.bind_tools(CHAT_TOOLS)
        messages = [HumanMessage(QUESTION)]
        for asked in range(3):
            if stream:
                chunks = list(model.stream(messages))
                answer = chunks[0]
                for chunk in chunks[1:]:
                    answer += chunk
            else:
                answer = model.invoke(messages)
            messages.append(answer)
            if not answer.tool_calls:
                break
            for call in answer.tool_calls:
                messages.append(ToolMessage(run_tool(call["name"], **call["args"]), tool_call_id=call["id"]))
        assert asked == 1 and len(messages) == 5
        assert answer.text == "It is 12 and noon."

    def test_errors(self):
        import openai
        with pytest.raises(openai.BadRequestError, match="maximum context length"):
            self.model.bind(max_tokens=10**6).invoke("x")
        with pytest.raises(openai.BadRequestError, match="temperature"):
            self.model.bind(temperature=5).invoke("x")


class TestInstructor:
    @pytest.fixture(autouse=True)
    def library(self, url):
        self.instructor = pytest.importorskip("instructor")
        import openai
        import pydantic

        class get_weather(pydantic.BaseModel):
            """Looks it up."""
            city: str

        self.model = get_weather
        self.plain = openai.OpenAI(base_url=url, api_key="unused", max_retries=0)

    def ask(self, mode, text, **more):
        client = self.instructor.from_openai(self.plain, mode=mode)
        return client.chat.completions.create(
            model="tgi", response_model=self.model, max_retries=0,
            messages=[{"role": "user", "content": f"Say <<<{text}>>> please."}], **more)

    def test_an_object_of_json(self):
        place = self.ask(self.instructor.Mode.MD_JSON, '```json\n{"city": "Paris"}\n```')
        assert isinstance(place, self.model) and place.city == "Paris"

    def test_a_streamed_object_of_json(self):
        import collections
        client = self.instructor.from_openai(self.plain, mode=self.instructor.Mode.MD_JSON)
        parts = client.chat.completions.create_partial(
            model="tgi", response_model=self.model, max_retries=0,
            messages=[{"role": "user", "content": 'Say <<<```json\n{"city": "Paris"}\n```>>> please.'}])
        assert collections.deque(parts, maxlen=1)[0].city == "Paris"

    def test_a_loop_with_two_tools(self):
        import pydantic

        class get_time(pydantic.BaseModel):
            """Looks it up."""
            city: str

        client = self.instructor.from_openai(self.plain, mode=self.instructor.Mode.PARALLEL_TOOLS)
        answers = []
        client.on("completion:response", answers.append)
        messages = [{"role": "user", "content": QUESTION}]
        wanted = list(client.chat.completions.create(
            model="tgi", response_model=typing.Iterable[self.model | get_time], max_retries=0,
            messages=messages))
        assert [(type(call).__name__, call.city) for call in wanted] == [
            ("get_weather", "Paris"), ("get_time", "Rome")]
        message = answers[0].choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        for call, model in zip(message.tool_calls, wanted, strict=True):
            messages.append({"role": "tool", "tool_call_id": call.id,
                             "content": run_tool(type(model).__name__, model.city)})
        text = client.chat.completions.create(model="tgi", response_model=None, messages=messages)
        assert text.choices[0].message.content == "It is 12 and noon."

    def test_errors(self):
        from instructor.core.exceptions import InstructorRetryException
        with pytest.raises(InstructorRetryException, match="temperature"):
            self.ask(self.instructor.Mode.MD_JSON, "x", temperature=5)


class TestLlamaIndex:
    @pytest.fixture(autouse=True)
    def library(self, url):
        library = pytest.importorskip("llama_index.llms.openai_like")
        self.model = library.OpenAILike(
            model="tgi", api_base=url, api_key="unused", is_chat_model=True, is_function_calling_model=True,
            context_window=4096, max_tokens=512, max_retries=0)

    @pytest.mark.parametrize("stream", [False, True])
    def test_loop(self, stream):
        from llama_index.core.llms import ChatMessage
        from llama_index.core.tools import FunctionTool
        tools = [FunctionTool.from_defaults(lambda city, name=name: run_tool(name, city), name=name,
                                            description="Looks it up.") for name in ("get_weather", "get_time")]
        messages = [ChatMessage(role="user", content=QUESTION)]
        for asked in range(3):
            if stream:
                *_, answer = self.model.stream_chat_with_tools(tools, chat_history=messages,
                                                               allow_parallel_tool_calls=True)
            else:
                answer = self.model.chat_with_tools(tools, chat_history=messages, allow_parallel_tool_calls=True)
            calls = self.model.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
            messages.append(answer.message)
            if not calls:
                break
            for call in calls:
                messages.append(ChatMessage(role="tool", content=run_tool(call.tool_name, call.tool_kwargs["city"]),
                                            additional_kwargs={"tool_call_id": call.tool_id}))
        assert asked == 1 and len(messages) == 5
        assert answer.message.content == "It is 12 and noon."

    def test_errors(self):
        import openai
        with pytest.raises(openai.BadRequestError, match="temperature"):
            self.model.complete("x", temperature=5)
