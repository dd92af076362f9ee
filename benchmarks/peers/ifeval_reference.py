"""What lm-evaluation-harness 0.4.13 makes of responses to IFEval's instructions: the goldens of packages/tasks/src/ifeval.

Reads JSON lines and writes each back with the answers in it. A line {"instruction_id_list", "kwargs",
"response"} gets "strict" and "loose", a truth value for each instruction. A line {"text"} gets what the checks rest on:
"sentences" and "tokens" (NLTK), "words" (their number), "language" (langdetect; null where it finds no features).

    export PYTHONPATH=DIR NLTK_DATA=DIR/llama_index/core/_static/nltk_cache
    goldens=../../packages/tasks/src/ifeval/goldens
    python ifeval_cases.py responses | python ifeval_reference.py > $goldens/responses.jsonl
    python ifeval_cases.py texts | python ifeval_reference.py > $goldens/texts.jsonl

It wants lm-eval 0.4.13 with nltk 3.10.4, and in DIR langdetect 1.0.9 and a wheel that carries NLTK's Punkt models:
`pip install --target DIR --no-deps langdetect==1.0.9 six immutabledict llama-index-core==0.14.25`.
"""

import json
import logging
import sys

import langdetect
import nltk
from lm_eval.tasks.ifeval import instructions_util, utils

langdetect.DetectorFactory.seed = 0
# It logs an error for each text without features.
logging.disable(logging.ERROR)


def language_of(text):
    try:
        return langdetect.detect(text)
    except langdetect.LangDetectException:
        return None


def answers(line):
    if "text" in line:
        text = line["text"]
        return {
            "sentences": nltk.sent_tokenize(text),
            "tokens": nltk.word_tokenize(text),
            "words": instructions_util.count_words(text),
            "language": language_of(text),
        }
    result = utils.process_results({"key": 0, "prompt": "", **line}, [line["response"]])
    return {"strict": result["inst_level_strict_acc"], "loose": result["inst_level_loose_acc"]}


for line in map(json.loads, sys.stdin):
    print(json.dumps({**line, **answers(line)}, ensure_ascii=False, separators=(",", ":")))
