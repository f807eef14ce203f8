"""The parsers of SGLang and of openai-harmony with one interface.

Both return {"text", "reasoning", "calls": [(name, arguments as text)]}.
"""

import hashlib
import importlib.metadata
import importlib.util
import logging
import os
import pathlib
import shutil
import sys
import types

# Format: SGLang's parser of its calls, and the name of its parser of reasoning.
SGLANG = {
    "hermes": ("hermes_detector.HermesDetector", "qwen3"),
    "qwen3_coder": ("qwen3_coder_detector.Qwen3CoderDetector", "qwen3"),
    "llama3_json": ("llama32_detector.Llama32Detector", "qwen3"),
    "mistral_v3": ("mistral_detector.MistralDetector", "mistral"),
    "mistral_v11": ("mistral_detector.MistralDetector", "mistral"),
    "deepseek_v3": ("deepseekv3_detector.DeepSeekV3Detector", "deepseek-v3"),
    "deepseek_v31": ("deepseekv31_detector.DeepSeekV31Detector", "deepseek-v3"),
    "deepseek_v32": ("deepseekv32_detector.DeepSeekV32Detector", "deepseek-v3"),
    "glm45": ("glm4_moe_detector.Glm4MoeDetector", "glm45"),
    "kimi_k2": ("kimik2_detector.KimiK2Detector", "kimi_k2"),
    "minimax_m2": ("minimax_m2.MinimaxM2Detector", "qwen3"),
}


def _stub(name, **members):
    module = types.ModuleType(name)
    module.__dict__.update(members)
    sys.modules[name] = module


def _load_sglang():
    """Makes SGLang's parsers importable without its engine: modules that need the engine are stubs."""
    import pydantic
    root = pathlib.Path(importlib.util.find_spec("sglang").submodule_search_locations[0])
    for name in ("sglang", "sglang.srt", "sglang.srt.entrypoints", "sglang.srt.entrypoints.openai"):
        _stub(name, __path__=[str(root.joinpath(*name.split(".")[1:]))])

    class Function(pydantic.BaseModel):
        name: str
        description: str | None = None
        parameters: dict | None = None
        strict: bool = False

    class Tool(pydantic.BaseModel):
        type: str = "function"
        function: Function

    class Flags:
        """SGLang's variables of the environment, all off."""

        def __getattr__(self, name):
            return types.SimpleNamespace(get=lambda: False)

    _stub("sglang.srt.entrypoints.openai.protocol", Tool=Tool, ToolChoice=object, ChatCompletionRequest=object)
    _stub("sglang.srt.environ", envs=Flags(), ToolStrictLevel=object)
    logging.getLogger("sglang").setLevel(logging.CRITICAL)
    return Tool


class SGLang:
    """Parses the reasoning first, then the calls in what is left."""

    def __init__(self, format_name, tools):
        tool_type = sys.modules["sglang.srt.entrypoints.openai.protocol"].Tool \
            if "sglang.srt.environ" in sys.modules else _load_sglang()
        calls, self.reasoning = SGLANG[format_name]
        module, self.detector = calls.split(".")
        self.module = importlib.import_module(f"sglang.srt.function_call.{module}")
        self.reasoning_module = importlib.import_module("sglang.srt.parser.reasoning_parser")
        self.tools = [tool_type(**tool) for tool in tools]

    def read(self, output):
        reasoning = ""
        if self.reasoning:
            parser = self.reasoning_module.ReasoningParser(self.reasoning, stream_reasoning=False)
            reasoning, output = parser.parse_non_stream(output)
        found = getattr(self.module, self.detector)().detect_and_parse(output or "", self.tools)
        return {"text": found.normal_text, "reasoning": reasoning or "",
                "calls": [(call.name, call.parameters) for call in found.calls]}


def _vocabulary(folder):
    """Copies the vocabulary, which harmony would download, from the package llama-index-core."""
    url = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
    kept = hashlib.sha1(url.encode()).hexdigest()
    files = importlib.metadata.files("llama-index-core")
    source = next(file.locate() for file in files if file.name == kept)
    shutil.copy(source, folder / "o200k_base.tiktoken")
    return folder


class Harmony:
    """OpenAI's parser of the tokens of gpt-oss."""

    def __init__(self, folder):
        os.environ["TIKTOKEN_ENCODINGS_BASE"] = str(_vocabulary(folder))
        self.harmony = importlib.import_module("openai_harmony")
        self.encoding = self.harmony.load_harmony_encoding(self.harmony.HarmonyEncodingName.HARMONY_GPT_OSS)

    def read(self, output):
        tokens = self.encoding.encode(output, allowed_special="all")
        parser = self.harmony.StreamableParser(self.encoding, role=self.harmony.Role.ASSISTANT)
        try:
            for token in tokens:
                parser.process(token)
            parser.process_eos()
        except self.harmony.HarmonyError as error:
            return {"text": str(error), "reasoning": "", "calls": []}
        answer = {"text": "", "reasoning": "", "calls": []}
        for message in parser.messages:
            text = "".join(part.text for part in message.content)
            if (message.recipient or "").startswith("functions."):
                answer["calls"].append((message.recipient.removeprefix("functions."), text))
            else:
                answer["reasoning" if message.channel == "analysis" else "text"] += text
        return answer
