import { type Tokenizer, hashText, PeriodicEvalError } from "@periodic-eval/contracts";
import { configError, errorMessage, isRecord } from "@periodic-eval/contracts/options";
import type { ChatTemplate } from "./answers.ts";
import { chatRenderer, checkTemplateKwargs, namedRenderers } from "./chat.ts";
import type { Codec } from "./align.ts";
import { tokenizerWith } from "./render-prompt.ts";
import { defaultDate, strftimeOn } from "./template-date.ts";

/**
 * The used part of a tokenizer of `@huggingface/transformers` 4 (`AutoTokenizer.from_pretrained`). Every function that takes
 * a `Tokenizer` of this library and names this type accepts one.
 *
 * It encodes and decodes as `@huggingface/transformers` does, which differs from Python in a few pipelines, and it does not
 * read `chat_template.jinja`. `loadTokenizer` of `@periodic-eval/models/tokenizer` has neither gap.
 */
export interface TransformersTokenizer {
  readonly encode: (...args: never[]) => number[];
  readonly decode: (...args: never[]) => string;
  readonly apply_chat_template: (...args: never[]) => unknown;
  readonly get_vocab: () => unknown;
}

/** Its methods and fields at run time, without the overloads of its type. */
interface AutoTokenizer {
  readonly eos_token?: string | null;
  readonly all_special_ids?: readonly number[];
  /** A template, templates by name, or null. */
  readonly chat_template?: string | Readonly<Record<string, string>> | null;
  readonly config?: { readonly clean_up_tokenization_spaces?: boolean | null };
  /** The content of `tokenizer.json`. */
  readonly _tokenizerJSON?: unknown;
  encode(text: string, options: { readonly add_special_tokens: boolean }): number[];
  decode(
    ids: number[],
    options: { readonly skip_special_tokens: boolean; readonly clean_up_tokenization_spaces: boolean },
  ): string;
  apply_chat_template(messages: unknown, options: Readonly<Record<string, unknown>>): unknown;
  get_vocab(): ReadonlyMap<string, number>;
}

/**
 * Returns the tokenizer, or an adapter for one of `@huggingface/transformers`, which it recognises by its methods.
 *
 * @param where Names the function that was called.
 * @throws PeriodicEvalError `config` for any other value.
 */
export function tokenizerOf(where: string, value: Tokenizer | TransformersTokenizer): Tokenizer {
  const has = (...names: readonly string[]) =>
    names.every(
      (name) => typeof (value as unknown as Partial<Record<string, unknown>> | null)?.[name] === "function",
    );
  if (has("encode", "decode", "render")) return value as Tokenizer;
  if (has("encode", "decode", "apply_chat_template", "get_vocab"))
    return adapt(value as unknown as AutoTokenizer);
  throw configError({
    where,
    path: ["tokenizer"],
    got: has("generate") || has("logits") ? "a model" : describeValue(value),
    expected:
      "a tokenizer of loadTokenizer or charTokenizer, or an AutoTokenizer of @huggingface/transformers",
    fix: "Pass `await loadTokenizer(folder)` of @periodic-eval/models/tokenizer.",
  });
}

const describeValue = (value: unknown): string =>
  value instanceof Promise
    ? "a promise"
    : value === null
      ? "null"
      : isRecord(value)
        ? `an object with the keys ${Object.keys(value).slice(0, 6).join(", ") || "(none)"}`
        : `a value of type ${typeof value}`;

function adapt(auto: AutoTokenizer): Tokenizer {
  const codec = codecOf(auto);
  const where = "the chat template of the AutoTokenizer";
  const rendererFor = namedRenderers(templateSources(auto), (source) =>
    chatRenderer(templateOf(auto, source), where, source),
  );
  const eosId = auto.eos_token == null ? null : (codec.idOf(auto.eos_token) ?? null);
  const noTemplate = () =>
    new PeriodicEvalError({
      code: "model",
      where: "the AutoTokenizer",
      got: "a chat, and no chat template",
      expected:
        "chat_template in tokenizer_config.json: @huggingface/transformers does not read chat_template.jinja",
      fix: "Set `tokenizer.chat_template`, or pass `await loadTokenizer(folder)` of @periodic-eval/models/tokenizer.",
      detail: { kind: "no-template" },
    });
  const content = [
    auto._tokenizerJSON ?? [...auto.get_vocab()],
    auto.config ?? null,
    auto.chat_template ?? null,
  ];
  const fingerprint = hashText(JSON.stringify(["AutoTokenizer", defaultDate, content]));
  return tokenizerWith(codec, { fingerprint, eosId, endIds: [], rendererFor, noTemplate });
}

function codecOf(auto: AutoTokenizer): Codec {
  const vocabulary = auto.get_vocab();
  const tokens: string[] = [];
  for (const [token, id] of vocabulary) tokens[id] = token;
  // As in transformers 5, which cleans up only if configured.
  const clean = auto.config?.clean_up_tokenization_spaces ?? false;
  return {
    vocabSize: tokens.length,
    encode: (text, specialTokens) => auto.encode(text, { add_special_tokens: specialTokens }),
    // It throws for an empty array.
    decode: (ids, specialTokens) =>
      ids.length === 0
        ? ""
        : auto.decode([...ids], {
            skip_special_tokens: !specialTokens,
            clean_up_tokenization_spaces: clean,
          }),
    tokenOf: (id) => tokens[id],
    idOf: (token) => vocabulary.get(token),
    specialIds: new Set(auto.all_special_ids),
    // GPT-2's alphabet spells a space as Ġ.
    isByteLevel: vocabulary.has("Ġ"),
  };
}

const dateName = "periodic_eval_strftime";

/** Returns the texts of the templates by name. */
const templateSources = ({ chat_template: template }: AutoTokenizer): ReadonlyMap<string, string> =>
  new Map(typeof template === "string" ? [["default", template]] : Object.entries(template ?? {}));

/** Returns a template. `strftime_now` gives a fixed date, so that prompts are the same on every day. */
function templateOf(auto: AutoTokenizer, source: string): ChatTemplate {
  const dated = source.replaceAll(/\bstrftime_now\b/g, dateName);
  const now = strftimeOn(defaultDate);
  return ({ messages, addGenerationPrompt, tools = null, kwargs = {} }) => {
    checkTemplateKwargs(kwargs, reserved);
    const text = auto.apply_chat_template(messages, {
      ...kwargs,
      tools,
      chat_template: dated,
      tokenize: false,
      add_generation_prompt: addGenerationPrompt,
      [dateName]: now,
    });
    if (typeof text === "string") return { text, generated: null };
    throw new Error(`apply_chat_template returned no text (${errorMessage(text)})`);
  };
}

/** Options of `apply_chat_template`, and variables that it sets. */
const reserved = [
  "messages",
  "tools",
  "documents",
  "chat_template",
  "add_generation_prompt",
  "tokenize",
  "padding",
  "truncation",
  "max_length",
  "return_tensor",
  "return_dict",
  "tokenizer_kwargs",
];
