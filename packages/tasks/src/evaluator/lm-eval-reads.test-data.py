# Reads our results with lm-evaluation-harness' own functions, for lm-eval.parity.test.ts. Standard input: {"folder": …},
# the folder that has a run's folder in it. Standard output: what its tools see.
import json
import sys
import tempfile
from pathlib import Path

import pandas
from datasets import Dataset, disable_progress_bars
from lm_eval.api.metrics import mean_stderr, pooled_sample_stderr
from lm_eval.utils import (
    get_file_datetime,
    get_file_task_name,
    get_latest_filename,
    get_results_filenames,
    get_sample_results_filenames,
    hash_string,
    make_table,
    sanitize_model_name,
    sanitize_task_name,
)

root = Path(json.load(sys.stdin)["folder"])
files = [path.as_posix() for path in root.rglob("*") if path.is_file()]
latest = get_latest_filename(get_results_filenames(files))
results = json.loads(Path(latest).read_text(encoding="utf-8"))
samples_files = [
    path for path in get_sample_results_filenames(files) if get_file_datetime(latest).replace(".json", "") in path
]
samples = {
    get_file_task_name(Path(path).name): [json.loads(line) for line in Path(path).open(encoding="utf-8")]
    for path in samples_files
}

disable_progress_bars()
with tempfile.TemporaryDirectory() as cache:
    datasets = {
        get_file_task_name(Path(path).name): len(Dataset.from_json(path, cache_dir=cache)) for path in samples_files
    }


def stderr_of(task, metric, filter_name):
    values = [sample[metric] for sample in samples[task] if sample["filter"] == filter_name]
    return mean_stderr(values)


def leaves(name):
    below = results["group_subtasks"].get(name, [])
    return [leaf for child in below for leaf in leaves(child)] if below else [name]


checked = {}
for name, entry in results["results"].items():
    for key in entry:
        metric, _, filter_name = key.partition(",")
        if not filter_name or metric.endswith("_stderr"):
            continue
        sizes = [len([s for s in samples[leaf] if s["filter"] == filter_name]) for leaf in leaves(name)]
        errors = [stderr_of(leaf, metric, filter_name) for leaf in leaves(name)]
        values = [s[metric] for leaf in leaves(name) for s in samples[leaf] if s["filter"] == filter_name]
        checked[f"{name}/{key}"] = {
            "value": sum(values) / len(values),
            "stderr": errors[0] if len(errors) == 1 else float(pooled_sample_stderr(errors, sizes)),
        }

json.dump(
    {
        "latest": Path(latest).name,
        "datetimes": sorted({get_file_datetime(Path(path).name) for path in samples_files}),
        "tasks": sorted(samples),
        "datasets": datasets,
        "table": make_table(results),
        "groups": make_table(results, "groups"),
        "checked": checked,
        "types": sorted({type(v).__name__ for e in results["results"].values() for k, v in e.items() if "," in k}),
        "configs": sorted(results["configs"]),
        "frames": {
            task: {
                "columns": sorted(pandas.DataFrame(rows).columns),
                "metrics": sorted({metric for row in rows for metric in row["metrics"]}),
                "first": [
                    rows[0]["arguments"]["gen_args_0"]["arg_0"],
                    str(rows[0]["filtered_resps"][0]),
                    rows[0]["target"],
                ],
            }
            for task, rows in samples.items()
        },
        "hashes": all(
            row["doc_hash"] == hash_string(json.dumps(row["doc"], indent=2, ensure_ascii=False))
            and row["prompt_hash"] == hash_string(row["arguments"]["gen_args_0"]["arg_0"])
            and row["target_hash"] == hash_string(str(row["target"]))
            for rows in samples.values()
            for row in rows
        ),
        "task_hashes": {
            task: hash_string("".join(row["doc_hash"] + row["prompt_hash"] + row["target_hash"] for row in rows))
            == results["task_hashes"][task]
            for task, rows in samples.items()
        },
        "names": [
            results["model_name_sanitized"] == sanitize_model_name(results["model_name"]),
            [sanitize_task_name(task) for task in sorted(samples)],
        ],
    },
    sys.stdout,
)
