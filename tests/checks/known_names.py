"""Names of other projects that comments and documents may use: each group with its reason."""

EXTERNAL_GROUPS = {
    "status codes of Abseil and gRPC": """
        ResourceExhausted FailedPrecondition DeadlineExceeded DataLoss PermissionDenied
    """,
    "Kubernetes, systemd and the kernel": """
        fsGroup fsGroupChangePolicy OnRootMismatch terminationGracePeriodSeconds preStop tcpSocket httpGet
        TimeoutStopSec MemoryMax RestartPreventExitStatus sd_notify io_uring sched_setattr
    """,
    "nginx": """
        proxy_buffering proxy_read_timeout client_max_body_size keepalive_timeout proxy_ignore_client_abort
        proxy_next_upstream http_503 non_idempotent server_name ssl_certificate ssl_certificate_key proxy_pass
        proxy_http_version proxy_set_header proxy_request_buffering
    """,
    "projects, papers and algorithms": """
        arXiv RadixAttention NanoFlow DeepSeek HunYuan JetBrains LangChain SplitMix64 OpenTelemetry NumPy
        AddressSanitizer
    """,
    "TGI, transformers and model files": """
        hidden_states low_memory begin_of_text serde_path_to_error
    """,
    "llama.cpp and Random123": "ggml_type llama_ftype kat_vectors",
    "SGLang's ways to choose": """
        token_length_normalized greedy_token_selection unconditional_likelihood_normalized
    """,
    "libraries of Python and libtorch": "typing_extensions libtorch_cuda",
    "CUDA and JSON schemas": "cudaLaunchHostFunc readOnly writeOnly",
    "patterns that stand for many names": "MakeX CamelCase",
}
EXTERNAL = {name for group in EXTERNAL_GROUPS.values() for name in group.split()}

# Commands of these programs have options that are not checked.
EXTERNAL_PROGRAMS = set(
    """
    apt curl ctest docker helm kubectl numactl openssl pip promtool tar useradd
    """.split()
)
# Options of other programs that prose names without a command.
EXTERNAL_OPTION_GROUPS = {
    "docker run": "memory",
    "awscurl, of those that the preset awscurl refuses": "delay extra-parameters",
    "an example of any option": "some-name",
    "vllm serve, beside Penstock's": "allowed-origins chat-template data-parallel-size download-dir "
    "enable-chunked-prefill enable-lora gpu-memory-utilization otlp-traces-endpoint quantization "
    "reasoning-parser runner scheduling-policy speculative-config ssl-ca-certs ssl-certfile "
    "ssl-keyfile tool-call-parser",
}
EXTERNAL_OPTIONS = {name for group in EXTERNAL_OPTION_GROUPS.values() for name in group.split()}

EXTERNAL_FILES = {
    "modeling_rope_utils.py": "of transformers",
    "safetensors/src/tensor.rs": "of the safetensors crate",
    "docs/gguf.md": "of ggml",
    "torch/torch.h": "of libtorch",
    "ATen/ATen.h": "of libtorch",
    "server.sh": "of the paper on static batching",
    "client.py": "a client of the user's",
    "a.cc": "an example in usage text",
    "b.cc": "an example in usage text",
    "a.cu": "an example in usage text",
    "a_test.cc": "an example in usage text",
    "file.proto": "an example in usage text",
}
