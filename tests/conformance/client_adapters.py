"""Adapters with one interface for all client libraries, each called as its documentation shows.

Every adapter has: say(text) and stream(text) for a completion of at most 400 tokens, details(text, stream) giving
(text, token ids, finish reason), chat(content) and chat_stream(content), grammar(text, schema) whose answer is what
the shard was asked for, tool(content, tools) giving (name, arguments), tool_stream likewise, and `errors`: the
library's classes for validation, overload and failed generation. A call that a library
does not have is None in its class, and the matrix has no case for it.
"""

import asyncio
import json

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}
TOKENS = 400


def messages(content):
    return [{"role": "user", "content": content}]


def call_of(tool_call):
    arguments = tool_call.function.arguments
    return tool_call.function.name, json.loads(arguments) if isinstance(arguments, str) else arguments


def joined_call(chunks):
    """(name, arguments) of a streamed call. The name may come once or repeatedly, the arguments in parts."""
    deltas = [c.choices[0].delta.tool_calls for c in chunks if c.choices and c.choices[0].delta.tool_calls]
    functions = [(calls[0] if isinstance(calls, list) else calls).function for calls in deltas]
    names = {function.name for function in functions if function.name}
    assert len(names) == 1, names
    return names.pop(), json.loads("".join(function.arguments or "" for function in functions))


def content_of(chunks):
    return "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)


def ids_of(details):
    return [token.id for token in details.tokens]


def told(error):
    """The text of an error and the body of its response."""
    response = getattr(error, "response", None)
    return str(error) + (getattr(response, "text", None) or "" if response is not None else "")


class Hub:
    """huggingface_hub.InferenceClient."""

    def __init__(self, url):
        from huggingface_hub import InferenceClient, errors
        self.client = InferenceClient(url)
        self.errors = {"validation": errors.ValidationError, "overloaded": errors.OverloadedError,
                       "generation": errors.GenerationError}

    def say(self, text):
        return self.client.text_generation(text, max_new_tokens=TOKENS, return_full_text=False)

    def stream(self, text):
        return list(self.client.text_generation(text, max_new_tokens=TOKENS, stream=True))

    def details(self, text, stream):
        answer = self.client.text_generation(text, max_new_tokens=TOKENS, details=True, return_full_text=False,
                                             stream=stream)
        if not stream:
            return answer.generated_text, ids_of(answer.details), answer.details.finish_reason
        events = list(answer)
        last = events[-1]
        return last.generated_text, [event.token.id for event in events], last.details.finish_reason

    def grammar(self, text, schema):
        return self.client.text_generation(text, max_new_tokens=TOKENS, return_full_text=False,
                                           grammar={"type": "json", "value": schema})

    def bad(self):
        return self.client.text_generation("Hello", max_new_tokens=0)

    def chat(self, content):
        return self.client.chat_completion(messages(content), max_tokens=TOKENS).choices[0].message.content

    def chat_stream(self, content):
        return content_of(self.client.chat_completion(messages(content), max_tokens=TOKENS, stream=True))

    def tool(self, content):
        answer = self.client.chat_completion(messages(content), max_tokens=TOKENS, tools=[WEATHER],
                                             tool_choice="required")
        return call_of(answer.choices[0].message.tool_calls[0])

    def tool_stream(self, content):
        return joined_call(self.client.chat_completion(
            messages(content), max_tokens=TOKENS, tools=[WEATHER], tool_choice="required", stream=True))


class AsyncHub(Hub):
    """huggingface_hub.AsyncInferenceClient, each call in a loop of its own."""

    def __init__(self, url):
        super().__init__(url)
        self.url = url

    @property
    def client(self):
        return Synchronous(self._make)

    @client.setter
    def client(self, _):
        pass

    def _make(self):
        from huggingface_hub import AsyncInferenceClient
        return AsyncInferenceClient(self.url)


class Synchronous:
    """Calls an asynchronous client's methods one at a time; streams come as lists."""

    def __init__(self, make):
        self._make = make

    def __getattr__(self, name):
        async def call(*args, **kwargs):
            client = self._make()
            try:
                answer = getattr(client, name)(*args, **kwargs)
                if asyncio.iscoroutine(answer):
                    answer = await answer
                return [item async for item in answer] if hasattr(answer, "__aiter__") else answer
            finally:
                if hasattr(client, "close"):
                    await client.close()

        return lambda *args, **kwargs: asyncio.run(call(*args, **kwargs))


class TextGeneration:
    """The text-generation package: TGI's own client."""

    def __init__(self, url):
        from text_generation import Client, errors
        self.url = url
        self.client = Client(url)
        self.errors = {"validation": errors.ValidationError, "overloaded": errors.OverloadedError,
                       "generation": errors.GenerationError}

    def say(self, text):
        return self.client.generate(text, max_new_tokens=TOKENS).generated_text

    def stream(self, text):
        events = list(self.client.generate_stream(text, max_new_tokens=TOKENS))
        return [event.token.text for event in events if not event.token.special]

    def details(self, text, stream):
        if not stream:
            answer = self.client.generate(text, max_new_tokens=TOKENS)
            details = answer.details
            return answer.generated_text, ids_of(details), details.finish_reason.value
        events = list(self.client.generate_stream(text, max_new_tokens=TOKENS))
        last = events[-1]
        return last.generated_text, [event.token.id for event in events], last.details.finish_reason.value

    def grammar(self, text, schema):
        from text_generation.types import Grammar
        return self.client.generate(text, max_new_tokens=TOKENS,
                                    grammar=Grammar(type="json", value=schema)).generated_text

    def bad(self):
        return self.client.generate("word " * 20000, max_new_tokens=1)

    def chat(self, content):
        return self.client.chat(messages(content), max_tokens=TOKENS).choices[0].message.content

    chat_stream = tool = tool_stream = None  # its chunk types do not know what TGI 3 sends


class AsyncTextGeneration(TextGeneration):
    def __init__(self, url):
        super().__init__(url)
        from text_generation import AsyncClient
        self.client = Synchronous(lambda: AsyncClient(url))


class OpenAi:
    """The openai package, against TGI's form of its routes."""

    def __init__(self, url):
        import openai
        self.client = openai.OpenAI(base_url=f"{url}/v1", api_key="unused", max_retries=0)
        self.errors = {"validation": openai.UnprocessableEntityError, "overloaded": openai.RateLimitError,
                       "generation": openai.APIStatusError}

    def create_chat(self, content, **more):
        return self.client.chat.completions.create(model="tgi", messages=messages(content), max_tokens=TOKENS, **more)

    def say(self, text):
        return self.client.completions.create(model="tgi", prompt=text, max_tokens=TOKENS).choices[0].text

    def stream(self, text):
        chunks = self.client.completions.create(model="tgi", prompt=text, max_tokens=TOKENS, stream=True)
        return [chunk.choices[0].text for chunk in chunks if chunk.choices]

    details = None

    def grammar(self, text, schema):
        answer = self.create_chat(text, extra_body={"response_format": {"type": "json", "value": schema}})
        return answer.choices[0].message.content

    def bad(self):
        return self.client.chat.completions.create(model="tgi", messages=messages("Hello"), max_tokens=0)

    def chat(self, content):
        return self.create_chat(content).choices[0].message.content

    def chat_stream(self, content):
        return content_of(self.create_chat(content, stream=True))

    def tool(self, content):
        answer = self.create_chat(content, tools=[WEATHER], tool_choice="required")
        return call_of(answer.choices[0].message.tool_calls[0])

    def tool_stream(self, content):
        return joined_call(self.create_chat(content, tools=[WEATHER], tool_choice="required", stream=True))


class AsyncOpenAi(OpenAi):
    """openai.AsyncOpenAI; its resources are reached by a path of names."""

    def __init__(self, url):
        super().__init__(url)
        self.url = url

    def create_chat(self, content, **more):
        return self._create("chat.completions", model="tgi", messages=messages(content), max_tokens=TOKENS, **more)

    def say(self, text):
        return self._create("completions", model="tgi", prompt=text, max_tokens=TOKENS).choices[0].text

    def stream(self, text):
        chunks = self._create("completions", model="tgi", prompt=text, max_tokens=TOKENS, stream=True)
        return [chunk.choices[0].text for chunk in chunks if chunk.choices]

    def bad(self):
        return self._create("chat.completions", model="tgi", messages=messages("Hello"), max_tokens=0)

    def _create(self, path, **request):
        import openai

        async def call():
            async with openai.AsyncOpenAI(base_url=f"{self.url}/v1", api_key="unused", max_retries=0) as client:
                resource = client
                for name in path.split("."):
                    resource = getattr(resource, name)
                answer = await resource.create(**request)
                return [chunk async for chunk in answer] if request.get("stream") else answer

        return asyncio.run(call())


class LangChainEndpoint:
    """langchain_huggingface.HuggingFaceEndpoint."""

    def __init__(self, url):
        from huggingface_hub import errors
        from langchain_huggingface import HuggingFaceEndpoint
        self.make = lambda **more: HuggingFaceEndpoint(
            endpoint_url=url, max_new_tokens=TOKENS, return_full_text=False, do_sample=False, repetition_penalty=None,
            typical_p=None, **more)
        self.errors = {"validation": errors.ValidationError, "overloaded": errors.OverloadedError,
                       "generation": errors.GenerationError}

    def say(self, text):
        return self.make().invoke(text)

    def stream(self, text):
        return list(self.make(streaming=True).stream(text))

    def grammar(self, text, schema):
        return self.make(model_kwargs={"grammar": {"type": "json", "value": schema}}).invoke(text)

    def bad(self):
        return self.make().invoke("Hello", max_new_tokens=0)

    details = chat = chat_stream = tool = tool_stream = None


class LangChainChat:
    """langchain_openai.ChatOpenAI."""

    def __init__(self, url):
        import openai
        from langchain_openai import ChatOpenAI
        self.make = lambda **more: ChatOpenAI(
            base_url=f"{url}/v1", api_key="unused", model="tgi", max_retries=0, **{"max_tokens": TOKENS, **more})
        self.errors = {"validation": openai.UnprocessableEntityError, "overloaded": openai.RateLimitError,
                       "generation": openai.APIStatusError}

    def chat(self, content):
        return self.make().invoke(content).content

    def chat_stream(self, content):
        return "".join(chunk.content for chunk in self.make().stream(content))

    def tool(self, content):
        call = self.make().bind_tools([WEATHER], tool_choice="required").invoke(content).tool_calls[0]
        return call["name"], call["args"]

    def tool_stream(self, content):
        model = self.make().bind_tools([WEATHER], tool_choice="required")
        whole = None
        for chunk in model.stream(content):
            whole = chunk if whole is None else whole + chunk
        return whole.tool_calls[0]["name"], whole.tool_calls[0]["args"]

    def grammar(self, text, schema):
        return self.make(extra_body={"response_format": {"type": "json", "value": schema}}).invoke(text).content

    def bad(self):
        return self.make(max_tokens=0).invoke("Hello")

    say = stream = details = None


ADAPTERS = {
    "huggingface_hub": Hub, "huggingface_hub async": AsyncHub, "text-generation": TextGeneration,
    "text-generation async": AsyncTextGeneration, "openai": OpenAi, "openai async": AsyncOpenAi,
    "langchain HuggingFaceEndpoint": LangChainEndpoint, "langchain ChatOpenAI": LangChainChat}
