"""Compares encodings and decodings with tokenizers, or with AutoTokenizer of transformers.

Reads JSON from standard input: texts, lists of ids, and cases with a `tokenizer.json` or a folder, and with a hash
of this library's result for each text and each list. Prints, for each case, its error or the first results that differ.
"""

import hashlib
import json
import os
import sys

from tokenizers import Tokenizer


def digest(*values):
    text = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha1(text.encode()).hexdigest()[:10]


class Rust:
    def __init__(self, case):
        self.tokenizer = Tokenizer.from_str(case["json"])

    def encode(self, text, special):
        return self.tokenizer.encode(text, add_special_tokens=special).ids

    def decode(self, ids, special):
        return self.tokenizer.decode(ids, skip_special_tokens=not special)


class Transformers:
    def __init__(self, case):
        from transformers import AutoTokenizer

        self.tokenizer = AutoTokenizer.from_pretrained(case["folder"], local_files_only=True)

    def encode(self, text, special):
        return self.tokenizer(text, add_special_tokens=special)["input_ids"]

    def decode(self, ids, special):
        return self.tokenizer.decode(ids, skip_special_tokens=not special)


def attempt(work):
    try:
        return work()
    except BaseException as error:  # Rust's panics are no Exceptions.
        if isinstance(error, KeyboardInterrupt):
            raise
        return "error"


def result_of_text(reference, case, text):
    ids = attempt(lambda: reference.encode(text, True))
    if ids == "error":
        return ["error"]
    results = [ids]
    if case["addsTokens"]:
        results.append(attempt(lambda: reference.encode(text, False)))
    if case["decodes"]:
        results += result_of_ids(reference, case, ids)
    return results


def result_of_ids(reference, case, ids):
    return [attempt(lambda: reference.decode(ids, True)), attempt(lambda: reference.decode(ids, False))]


def compare(case, texts, lists):
    try:
        reference = (Transformers if "folder" in case else Rust)(case)
    except BaseException as error:
        return {"refused": f"{type(error).__name__}: {error}"[:300]}
    if case.get("refused"):
        return {"accepted": True}
    different = []
    count = 0
    for inputs, hashes, evaluate in (
        (texts, case["texts"], result_of_text),
        (lists if case["decodes"] else [], case["lists"], result_of_ids),
    ):
        for value, ours in zip(inputs, hashes):
            expected = evaluate(reference, case, value)
            if digest(*expected) != ours:
                count += 1
                if len(different) < 4:
                    different.append({"input": value, "expected": expected})
    return {"count": count, "different": different}


work = json.loads(sys.stdin.buffer.read())
# Rust's panics print traces.
os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
print(json.dumps([compare(case, work["inputs"], work["lists"]) for case in work["cases"]]))
