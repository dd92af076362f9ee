import type { TemplateKwargs } from "@periodic-eval/core";
import {
  configError,
  defaultDate,
  strftimeOn,
  type ChatTemplate,
  type TemplateRendering,
} from "@periodic-eval/core/internal";
import { isNode, type TemplateNode as Node } from "./template-node.ts";

/** Variables of a template besides the messages, such as `bos_token`. */
export type TemplateVariables = Readonly<Record<string, string>>;

// Unicode noncharacters, which never occur in interchanged text. Only a message that contains one could be confused with a mark.
const spanStart = "\uFDD0";
const spanEnd = "\uFDD1";
const tagVariable = {
  generation: "periodic_eval_span_start",
  endgeneration: "periodic_eval_span_end",
} as const;
const equalName = "periodic_eval_equal";

/**
 * Compiles a chat template as transformers does: with `trim_blocks`, `lstrip_blocks` and `{% generation %}`. Corrects
 * `@huggingface/jinja` in three ways: comparison follows Python (`'' != false` is true), generation tags leave marks, so
 * that spans come from the template itself, and `strftime_now` uses `date` instead of the clock. Errors that the template
 * raises are thrown unchanged.
 */
export async function compileTemplate(
  source: string,
  variables: TemplateVariables,
  date = defaultDate,
): Promise<ChatTemplate> {
  const { boundedRenderer, parseTemplate } = await import("./template-limits.ts");
  // The library drops generation tags before parsing. A `set` in their place obeys the same whitespace rules.
  const marked = source.replace(
    /\{%([-+]?)\s*(generation|endgeneration)\s*([-+]?)%\}/g,
    (_, left: string, tag: keyof typeof tagVariable, right: string) =>
      `{%${left} set ${tagVariable[tag]} = 1 ${right}%}`,
  );
  const program = parseTemplate(marked);
  rewrite(program);
  const hasSpans = marked !== source;
  // The library's own `strftime_now` reads the clock.
  const render = boundedRenderer(program, { strftime_now: strftimeOn(date), [equalName]: equal });

  return ({ messages, addGenerationPrompt, tools = null, kwargs = {} }) => {
    checkKwargs(kwargs);
    const text = render(
      {
        ...variables,
        ...kwargs,
        add_generation_prompt: addGenerationPrompt,
        tools,
        documents: null,
      },
      messages.map((message) => ({ ...message })),
    );
    return hasSpans ? readSpans(text) : { text, generated: null };
  };
}

/** Variables that the chat sets; `tools` and `documents` are always null. */
const reserved = ["messages", "add_generation_prompt", "tools", "documents"];

function checkKwargs(kwargs: TemplateKwargs): void {
  const name = Object.keys(kwargs).find((one) => reserved.includes(one) || !/^[A-Za-z]\w*$/.test(one));
  if (name === undefined) return;
  throw configError({
    where: "templateKwargs",
    path: [name],
    got: `the name ${JSON.stringify(name)}`,
    expected: `the name of a template variable other than ${reserved.join(", ")}`,
    fix: "Rename or remove it.",
  });
}

/** Replaces in place: generation tags by their marks, and comparisons by calls of `equal`. */
function rewrite(node: Node): void {
  for (const [field, value] of Object.entries(node)) {
    if (Array.isArray(value)) node[field] = value.map((item) => (isNode(item) ? rewritten(item) : item));
    else if (isNode(value)) node[field] = rewritten(value);
    else if (value instanceof Map) {
      node[field] = new Map(
        [...value].map(([key, item]) => [
          isNode(key) ? rewritten(key) : key,
          isNode(item) ? rewritten(item) : item,
        ]),
      );
    }
  }
}

function rewritten(node: Node): Node {
  rewrite(node);
  if (node.type === "Set") {
    const name = (node["assignee"] as Node)["value"];
    if (name === tagVariable.generation) return { type: "StringLiteral", value: spanStart };
    if (name === tagVariable.endgeneration) return { type: "StringLiteral", value: spanEnd };
  }
  if (node.type === "BinaryExpression") {
    const operator = (node["operator"] as { value: string }).value;
    if (operator === "==" || operator === "!=") {
      const equals = {
        type: "CallExpression",
        callee: { type: "Identifier", value: equalName },
        args: [node["left"], node["right"]],
      };
      return operator === "=="
        ? equals
        : { type: "UnaryExpression", operator: { value: "not" }, argument: equals };
    }
  }
  return node;
}

/** Python's `==` for the arguments that jinja passes to a function: plain values, arrays and maps of `{ value }`. */
function equal(left: unknown, right: unknown): boolean {
  if (Array.isArray(left) && Array.isArray(right)) {
    return left.length === right.length && left.every((item, i) => equal(unwrap(item), unwrap(right[i])));
  }
  if (left instanceof Map && right instanceof Map) {
    return (
      left.size === right.size &&
      [...left].every(([key, item]) => right.has(key) && equal(unwrap(item), unwrap(right.get(key))))
    );
  }
  return asNumber(left) === asNumber(right);
}

function unwrap(item: unknown): unknown {
  return typeof item === "object" && item !== null && "value" in item ? item.value : item;
}

/** In Python True is 1. */
function asNumber(value: unknown): unknown {
  return typeof value === "boolean" ? Number(value) : value;
}

function readSpans(marked: string): TemplateRendering {
  const generated: [number, number][] = [];
  let text = "";
  let open: number | null = null;
  for (const piece of marked.split(/([\uFDD0\uFDD1])/)) {
    if (piece === spanStart) open = text.length;
    else if (piece === spanEnd) {
      if (open !== null && text.length > open) generated.push([open, text.length]);
      open = null;
    } else text += piece;
  }
  return { text, generated };
}
