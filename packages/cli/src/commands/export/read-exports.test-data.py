"""Reads a folder of exports with the programs that their formats belong to, and prints what these read as JSON."""

import json
import sys
from pathlib import Path

import yaml
from huggingface_hub import EvalResult
from huggingface_hub.repocard_data import model_index_to_eval_results
from huggingface_hub._eval_results import parse_eval_result_entries
from inspect_ai.log import list_eval_logs, read_eval_log, read_eval_log_sample_summaries


def read_log(path: str) -> dict:
    log = read_eval_log(path)
    samples = log.samples or []
    return {
        "task": log.eval.task,
        "tags": log.eval.tags,
        "model": log.eval.model,
        "status": log.status,
        "error": log.error and log.error.message,
        "metadata": log.eval.metadata,
        "metrics": {
            name: metric.value
            for score in (log.results.scores if log.results else [])
            for name, metric in score.metrics.items()
            if name != "stderr"
        },
        "summaries": len(read_eval_log_sample_summaries(path)),
        "samples": [
            {
                "id": sample.id,
                "epoch": sample.epoch,
                "input": sample.input,
                "text": sample.output.completion,
                "message": sample.messages[-1].content,
                "target": sample.target,
                "choices": sample.choices,
                "scores": {name: score.value for name, score in (sample.scores or {}).items()},
            }
            for sample in samples
        ],
    }


def read_hub(folder: Path) -> dict:
    results = [
        vars(entry)
        for file in sorted((folder / ".eval_results").glob("*.yaml"))
        for entry in parse_eval_result_entries(yaml.safe_load(file.read_text()))
    ]
    index = yaml.safe_load((folder / "model-index.yaml").read_text())["model-index"]
    name, entries = model_index_to_eval_results(index)
    assert all(isinstance(entry, EvalResult) for entry in entries)
    return {
        "results": results,
        "name": name,
        "index": [{"metric": entry.metric_type, "value": entry.metric_value} for entry in entries],
    }


folder = Path(sys.argv[1])
logs = sorted(list_eval_logs(str(folder / "inspect")), key=lambda log: log.name)
json.dump({"logs": [read_log(log.name) for log in logs], "hub": read_hub(folder / "hub")}, sys.stdout, default=str)
