"""Writes files of rows in a folder, and prints for each the rows that `datasets` reads, or null where it fails.

Standard input: {"folder": path, "cache": path}.
"""
import gzip, json, logging, math, os, sys, warnings

work = json.load(sys.stdin)
os.environ |= {"HF_HUB_OFFLINE": "1", "HF_HOME": work["cache"]}
warnings.simplefilter("ignore")
import datasets
import pyarrow as pa
import pyarrow.parquet as pq

datasets.disable_progress_bars()
logging.disable(logging.CRITICAL)

LINES = '{"text":"a"}\n{"text":"b"}\n'
LIST = [{"text": "a"}, {"text": "b"}]
texts = {
    "nan.jsonl": '{"text":"a","s":NaN}\n{"text":"b, NaN","s":-Infinity}\n',
    "nan.json": '[{"text":"a","s":NaN},{"text":"b","s":Infinity}]',
    "array.json": json.dumps(LIST),
    "array.jsonl": json.dumps(LIST),
    "pretty.json": json.dumps(LIST, indent=2),
    "blank-before.json": "\n  " + json.dumps(LIST),
    "bom.json": "\ufeff" + json.dumps(LIST),
    "strings.json": '["a","b"]',
    "lines.json": LINES,
    "lines.ndjson": LINES,
    "one.json": json.dumps(LIST[0], indent=1),
    "one.jsonl": json.dumps(LIST[0]),
    "crlf.jsonl": '{"text":"a"}\r\n\r\n{"text":"b"}\r\n',
    "bom.jsonl": "\ufeff" + LINES,
    "blank.jsonl": "\n" + LINES + "  \n",
    "unended.jsonl": LINES.strip(),
    "separators.jsonl": json.dumps({"text": "a\u2028b\u0085"}, ensure_ascii=False),
    "empty.jsonl": "",
    "only-blank.jsonl": "\n\n",
    "empty-array.json": "[]",
    "tail.json": '[{"text":"a"}]\n{"text":"b"}\n',
    "comma.json": '[{"text":"a"},]',
    "cut.json": '[{"text":"a"},{"te',
    "twice.json": '[{"text":"a"},{"text":"b"}',
}
g = lambda text: gzip.compress(text.encode())
bytes_of = {name: text.encode() for name, text in texts.items()} | {
    "rows.jsonl.gz": g(LINES),
    "array.json.gz": g(json.dumps(LIST)),
    "members.jsonl.gz": g('{"text":"a"}\n{"te') + g('xt":"b"}\n'),
    "empty-member.jsonl.gz": g("") + g(LINES) + g(""),
    "padded.jsonl.gz": g(LINES) + b"\0" * 512,
    "gzip.jsonl": g(LINES),
    "empty.jsonl.gz": g(""),
    "cut.jsonl.gz": g(LINES)[:-6],
    "trailing.jsonl.gz": g(LINES) + b"junk",
}
folder = work["folder"]
for name, content in bytes_of.items():
    with open(os.path.join(folder, name), "wb") as file:
        file.write(content)

messages = [
    [{"role": "user", "content": "Hi", "turn": 0}, {"role": "assistant", "content": "na\u00efve \U0001f600", "turn": 2**53 - 1}],
    [{"role": "user", "content": "x" * 5000, "turn": None}, {"role": "assistant", "content": "", "turn": -(2**53) + 1}],
    None,
    [],
] * 400
table = pa.table(
    {
        "messages": pa.array(
            messages, pa.list_(pa.struct([("role", pa.string()), ("content", pa.string()), ("turn", pa.int64())]))
        ),
        "id": pa.array(range(1600), pa.uint32()),
        "long": pa.array([i - 800 for i in range(1600)], pa.int64()),
        "small": pa.array([i % 100 for i in range(1600)], pa.int8()),
        "score": pa.array([i / 4 + 0.125 for i in range(1600)], pa.float64()),
        "half": pa.array([i / 4 for i in range(1600)], pa.float16()),
        "isGood": pa.array([i % 3 == 0 for i in range(1600)]),
        "text": pa.array([f"text {i % 7}" for i in range(1600)], pa.large_string()),
        "tags": pa.array([[f"t{i}", None] for i in range(1600)], pa.list_(pa.string())),
        "category": pa.array([f"c{i % 3}" for i in range(1600)]).dictionary_encode(),
        "empty": pa.nulls(1600),
    }
)
for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
    for version, page in [("1.0", "1.0"), ("2.6", "2.0")]:
        # Lists in pages of version 2 have a file of their own.
        flat = table if page == "1.0" else table.drop(["messages", "tags"])
        pq.write_table(
            flat,
            os.path.join(folder, f"{codec}-{page}.parquet"),
            compression=codec,
            version=version,
            data_page_version=page,
            row_group_size=700,
            use_dictionary=page == "1.0",
        )
        bytes_of[f"{codec}-{page}.parquet"] = b""
pq.write_table(table, os.path.join(folder, "lists-2.0.parquet"), data_page_version="2.0", use_dictionary=False)


def plain(value):
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    return [plain(inner) for inner in value] if isinstance(value, list) else value


found = {}
for name in bytes_of:
    kind = "parquet" if name.endswith(".parquet") else "json"
    try:
        rows = datasets.load_dataset(kind, data_files=os.path.join(folder, name), split="train", cache_dir=work["cache"])
        found[name] = [plain(row) for row in rows]
    except BaseException:
        found[name] = None
json.dump(found, sys.stdout)
