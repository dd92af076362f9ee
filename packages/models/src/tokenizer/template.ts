import { PeriodicEvalError, type Message, type TemplateKwargs } from "@periodic-eval/core";
import { defaultDate, strftimeOn } from "./template-date.ts";
import { addLimits, checkText, limitFunctions, type TemplateNode as Node } from "./template-limits.ts";

/** What a template is given besides the messages: `bos_token` and its like. */
export type TemplateVariables = Readonly<Record<string, string>>;

export interface TemplateRendering {
  readonly text: string;
  /** Half-open ranges of UTF-16 units inside `{% generation %}`; null where the template has no such tag. */
  readonly generated: readonly (readonly [start: number, end: number])[] | null;
}

export type ChatTemplate = (
  messages: readonly Message[],
  addGenerationPrompt: boolean,
  kwargs?: TemplateKwargs,
) => TemplateRendering;

// Noncharacters: never part of a text for interchange, so a message that holds one is the only thing that can confuse them.
const spanStart = "\uFDD0";
const spanEnd = "\uFDD1";
const tagVariable = {
  generation: "periodic_eval_span_start",
  endgeneration: "periodic_eval_span_end",
} as const;
/** The longest templates, with tools, have some ten thousand. */
const maxSource = 1_000_000;
const equalName = "periodic_eval_equal";
const dateName = "periodic_eval_strftime";

/**
 * Compiles a chat template as transformers does: `trim_blocks` and `lstrip_blocks` on, `{% generation %}` known. Three
 * corrections to `@huggingface/jinja`: comparison is Python's (`'' != false` is true), generation tags leave marks, so
 * that spans come from the template itself, and `strftime_now` is of `date`, not of the clock. What the template raises
 * comes through as the template's own error.
 */
export async function compileTemplate(
  source: string,
  variables: TemplateVariables,
  date = defaultDate,
): Promise<ChatTemplate> {
  const { Template } = await import("@huggingface/jinja");
  // A `set` obeys the same whitespace rules as the tag it stands for, which the library would drop before parsing.
  const marked = source.replace(
    /\{%([-+]?)\s*(generation|endgeneration)\s*([-+]?)%\}/g,
    (_, left: string, tag: keyof typeof tagVariable, right: string) =>
      `{%${left} set ${tagVariable[tag]} = 1 ${right}%}`,
  );
  if (marked.length > maxSource) throw new Error(`the template has more than ${maxSource} characters`);
  const template = new Template(marked);
  rewrite(template.parsed);
  addLimits(template.parsed);
  const hasSpans = marked !== source;
  const strftime = strftimeOn(date);

  return (messages, addGenerationPrompt, kwargs = {}) => {
    checkKwargs(kwargs);
    const text = template.render({
      ...variables,
      ...kwargs,
      ...limitFunctions(),
      [dateName]: strftime,
      [equalName]: equal,
      messages: messages.map((message) => ({ ...message })),
      add_generation_prompt: addGenerationPrompt,
      tools: null,
      documents: null,
    });
    checkText(text);
    return hasSpans ? readSpans(text) : { text, generated: null };
  };
}

/** What the chat itself gives; `tools` and `documents` are not given at all. */
const taken = ["messages", "add_generation_prompt", "tools", "documents"];

function checkKwargs(kwargs: TemplateKwargs): void {
  const name = Object.keys(kwargs).find((one) => taken.includes(one) || !/^[A-Za-z]\w*$/.test(one));
  if (name === undefined) return;
  throw new PeriodicEvalError({
    code: "config",
    where: "templateKwargs",
    got: JSON.stringify(name),
    expected: `the name of a variable of the template, other than ${taken.join(", ")}`,
    fix: "Rename it, or leave it out.",
  });
}

/** Replaces, in place, generation marks by the text that marks them, comparisons by calls of `equal`, and the clock. */
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
  // The library's own reads the clock, and cannot be declared anew.
  if (node.type === "Identifier" && node["value"] === "strftime_now") return { ...node, value: dateName };
  if (node.type === "Set") {
    const name = (node["assignee"] as Node)["value"];
    if (name === tagVariable.generation) return { type: "StringLiteral", value: spanStart };
    if (name === tagVariable.endgeneration) return { type: "StringLiteral", value: spanEnd };
  }
  if (node.type === "BinaryExpression") {
    const operator = (node["operator"] as { value: string }).value;
    if (operator === "==" || operator === "!=") {
      const call = {
        type: "CallExpression",
        callee: { type: "Identifier", value: equalName },
        args: [node["left"], node["right"]],
      };
      return operator === "=="
        ? call
        : { type: "UnaryExpression", operator: { value: "not" }, argument: call };
    }
  }
  return node;
}

function isNode(value: unknown): value is Node {
  return typeof value === "object" && value !== null && typeof (value as Node).type === "string";
}

/** Python's `==` over what jinja passes to a function: plain values, lists of `{ value }`, and maps of `{ value }`. */
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
