"""Results of lm-evaluation-harness 0.4.13 for responses to IFEval's instructions: the goldens of packages/tasks/src/ifeval.

Reads JSON Lines and writes each line back with the results added. A line {"instruction_id_list", "kwargs", "response"} gets
"strict" and "loose", each with one boolean per instruction. A line {"text"} gets the values that the checks use: "sentences" and
"tokens" (NLTK), "words" (their number), "language" (langdetect; null if it finds no features).

    export PYTHONPATH=DIR NLTK_DATA=DIR/llama_index/core/_static/nltk_cache
    goldens=../../packages/tasks/src/ifeval/goldens
    python ifeval_cases.py responses | python ifeval_reference.py > $goldens/responses.jsonl
    python ifeval_cases.py texts | python ifeval_reference.py > $goldens/texts.jsonl

Requires lm-eval 0.4.13 with nltk 3.10.4, and in DIR langdetect 1.0.9 and a wheel that contains NLTK's Punkt models:
`pip install --target DIR --no-deps langdetect==1.0.9 six immutabledict llama-index-core==0.14.25`.
"""

import json
import logging
import sys

import langdetect
import nltk
from lm_eval.tasks.ifeval import instructions_util, utils

langdetect.DetectorFactory.seed = 0
# The harness logs an error for each text without features.
logging.disable(logging.ERROR)


def language_of(text):
    try:
        return langdetect.detect(text)
    except langdetect.LangDetectException:
        return None


def results(line):
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
    print(json.dumps({**line, **results(line)}, ensure_ascii=False, separators=(",", ":")))
