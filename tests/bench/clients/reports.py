"""How guidellm and aiperf are started, what their reports say, and the page made from it."""

import textwrap

PERCENTILES = ("p50", "p99")


class Guidellm:
    name = "guidellm"
    version = "0.8.1"  # that `run` was written for
    report = "report.json"

    @staticmethod
    def command(program, url, model, tokenizer, folder, load):
        return [program, "run", "--disable-progress",
                "--backend", f"kind=openai_http,target={url},model={model}",
                "--tokenizer", f"kind=hf_auto,model={tokenizer}",
                "--data", f"kind=synthetic_text,prompt_tokens={load.input},output_tokens={load.output}",
                "--profile", f"kind=concurrent,streams={load.streams}",
                "--constraint", f"kind=max_requests,count={load.requests}",
                "--output", f"kind=json,path={folder / Guidellm.report}"]

    @staticmethod
    def read(report):
        metrics = report["benchmarks"][0]["metrics"]
        totals = metrics["request_totals"]

        def of(name):
            return metrics[name]["successful"]

        return {
            "version": report["metadata"]["guidellm_version"],
            "requests": totals["successful"],
            "failed": totals["errored"] + totals["incomplete"],
            "requests_per_second": of("requests_per_second")["mean"],
            "tokens_per_second": of("output_tokens_per_second")["mean"],
            "ttft_ms": [of("time_to_first_token_ms")["percentiles"][p] for p in PERCENTILES],
            "gap_ms": [of("inter_token_latency_ms")["percentiles"][p] for p in PERCENTILES],
        }


class Aiperf:
    name = "aiperf"
    version = "0.13.0"
    report = "profile_export_aiperf.json"

    @staticmethod
    def command(program, url, model, tokenizer, folder, load):
        return [program, "profile", "--model", model, "--url", url, "--tokenizer", tokenizer,
                "--endpoint-type", "chat", "--streaming", "--use-server-token-count",
                "--isl", load.input, "--osl", load.output, "--extra-inputs", "ignore_eos:true",
                "--concurrency", load.streams, "--request-count", load.requests,
                "--warmup-request-count", load.streams, "--random-seed", 1, "--ui", "none",
                "--artifact-dir", folder]

    @staticmethod
    def read(report):
        succeeded = int(report["request_count"]["avg"])
        return {
            "version": report["aiperf_version"],
            "requests": succeeded,
            "failed": int(report["completed_request_count"]["avg"]) - succeeded,
            "requests_per_second": report["request_throughput"]["avg"],
            "tokens_per_second": report["output_token_throughput"]["avg"],
            "ttft_ms": [report["time_to_first_token"][p] for p in PERCENTILES],
            "gap_ms": [report["inter_token_latency"][p] for p in PERCENTILES],
        }


CLIENTS = (Guidellm, Aiperf)


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(rows):
    lines = ["| model | client | requests | failed | requests/s | output tokens/s | first token ms p50, p99"
             " | gap ms p50, p99 | load |", "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for row in rows:
        cells = [row["model"], f"{row['client']} {row['version']}", row["requests"], row["failed"]]
        cells += [number(row["requests_per_second"]), number(row["tokens_per_second"])]
        cells += [", ".join(map(number, row[name])) for name in ("ttft_ms", "gap_ms")]
        lines.append("| " + " | ".join(map(str, [*cells, number(row["load"])])) + " |")
    return "\n".join(lines)


def page(machine, rows, load):
    about = (
        f"guidellm and aiperf ran unchanged against `/v1/chat/completions`, streamed: {load.streams} requests at"
        f" once, prompts of {load.input} tokens, answers of {load.output}. The machine was {machine['cores']} cores"
        f" of an {machine['cpu'].replace('(R)', '')}, {machine['system']}, on {machine['date']}. The clients ran on"
        " the same cores. *Gap* is the mean time between two tokens of a request. *Load* is the average of runnable"
        " processes in the minute before a run. Where it is above 0.5, other programs made the figures worse.")
    models = ("The demo model has its real weights. 135m has random weights and the shape of SmolLM-135M. The"
              " reports themselves stay in `build/clients`, with the output of each client.")
    paragraphs = ["# Benchmark clients", "Made by `make bench-clients ARGS=--write`. Do not edit."]
    paragraphs += [textwrap.fill(text, 100, break_on_hyphens=False) for text in (about, models)]
    return "\n\n".join([*paragraphs, table(rows)]) + "\n"
