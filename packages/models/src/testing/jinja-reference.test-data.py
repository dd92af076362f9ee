"""Renders chat templates with transformers, for the parity tests of ../jinja and ../tokenizer.

Standard input: {"chats": [...]} or {"templates": [...]}, see `chat` and `template` for their fields. Standard output: one
line of JSON for each, with the text and the spans of `{% generation %}` in UTF-16 units, or the error.
"""

import json
import logging
import sys
from datetime import datetime

from jinja2.exceptions import TemplateError
from transformers.utils import chat_template_utils as utils

logging.disable(logging.WARNING)


class FixedClock:
    @staticmethod
    def now():
        return datetime(2024, 7, 26)


utils.datetime = FixedClock


def normalized(messages):
    # `apply_chat_template` does this before it renders.
    return utils._normalize_chat_messages(messages)


def chat(case):
    texts, spans = utils.render_jinja_template(
        conversations=[normalized(case["messages"])],
        chat_template=case["template"],
        tools=case["tools"],
        documents=case["documents"],
        add_generation_prompt=case["add_generation_prompt"],
        return_assistant_tokens_mask=True,
        **case["kwargs"],
    )
    return texts[0], spans[0]


def template(case):
    compiled = utils._compile_jinja_template(case["template"])
    variables = {"messages": [], "tools": None, "documents": None, "add_generation_prompt": False, **case["variables"]}
    return utils._render_with_assistant_indices(compiled, **variables)


def units(text, index):
    return len(text[:index].encode("utf-16-le", "surrogatepass")) // 2


def rendered(render, case):
    try:
        text, spans = render(case)
        return {"text": text, "generated": [[units(text, start), units(text, end)] for start, end in spans]}
    except Exception as error:
        # `raise_exception` raises exactly this class.
        raised = str(error) if type(error) is TemplateError else None
        return {"error": f"{type(error).__name__}: {error}"[:300], "raised": raised}


work = json.load(sys.stdin)
for case in work.get("chats", []):
    print(json.dumps(rendered(chat, case)))
for case in work.get("templates", []):
    print(json.dumps(rendered(template, case)))
