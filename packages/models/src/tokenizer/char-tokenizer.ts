import { PeriodicEvalError, type Message, type Tokenizer } from "@periodic-eval/core";
import { chatRenderer, tokenizerWith, type Codec } from "@periodic-eval/tokenizers";
import { configError, functionSchema, parseOptions } from "@periodic-eval/contracts/options";
import { hashJson } from "@periodic-eval/core/random";
import * as z from "zod";
import { modelError, quoteShort } from "../folder/model-error.ts";

export interface CharTokenizerOptions {
  /** The character of `chars` that replaces every character outside of them. Default: none; encoding one throws. */
  readonly unknown?: string;
  /** The character of `chars` that ends a completion and a training text, such as `"\n"`. Default: none. */
  readonly end?: string;
  /**
   * Returns the text of a chat, with the beginning of the assistant's turn if `addGenerationPrompt` is true. Default: none;
   * rendering a chat throws, and capability needs `method: "cloze"`.
   */
  readonly chatTemplate?: (messages: readonly Message[], addGenerationPrompt: boolean) => string;
}

const character = z.string("a character of `chars`").optional();
const optionsSchema = z.strictObject({
  unknown: character,
  end: character,
  chatTemplate: functionSchema<NonNullable<CharTokenizerOptions["chatTemplate"]>>(
    "a function of messages and addGenerationPrompt that returns a string",
  ).optional(),
} satisfies Record<keyof CharTokenizerOptions, z.ZodType>);

const where = "charTokenizer";

/**
 * Returns a tokenizer with one token per character, for models with a vocabulary of characters. The i-th character of `chars`
 * has id i; `new Set(text)` has every character of a text once. A character is a Unicode code point. There are no special
 * tokens.
 *
 *     const tokenizer = charTokenizer(new Set(text));
 *     tokenizer.decode(tokenizer.encode("To be")); // "To be"
 *
 * `encode` throws a `data` error for a character outside of `chars` unless `unknown` is set; `decode` throws a `model` error for
 * an id that has no character.
 *
 * @param chars The vocabulary, as a string or as strings of one character.
 * @throws PeriodicEvalError `config` for a wrong option, and for characters that repeat or are not single.
 */
export function charTokenizer(chars: Iterable<string>, options: CharTokenizerOptions = {}): Tokenizer {
  const { chatTemplate } = parseOptions(`${where} options`, optionsSchema, options);
  const vocabulary = checkedChars(chars);
  const idOf = new Map(vocabulary.map((char, id) => [char, id]));
  const [unknownId, endId] = (["unknown", "end"] as const).map((name) => {
    const char = options[name];
    if (char === undefined) return null;
    const id = idOf.get(char);
    if (id !== undefined) return id;
    const expected = `one of the ${vocabulary.length} characters`;
    throw configError({ where: `${where} options`, path: [name], value: char, expected });
  }) as [number | null, number | null];

  const codec: Codec = {
    vocabSize: vocabulary.length,
    encode: (text) =>
      Array.from(text, (char) => idOf.get(char) ?? unknownId ?? throwUnknown(char, text, vocabulary)),
    decode: (ids) => ids.map((id) => vocabulary[id] ?? throwNoChar(id, vocabulary)).join(""),
    tokenOf: (id) => vocabulary[id],
    idOf: (char) => idOf.get(char),
    // Every character stands for itself, as special tokens do: "▁" is not a space.
    specialIds: new Set(vocabulary.keys()),
    isByteLevel: false,
    spell: (text) => ({
      text: spelled(text),
      segments: [{ id: null, text: spelled(text), at: 0 }],
      isByteLevel: false,
      positionOf: (position) => spelled(text.slice(0, position)).length,
    }),
  };
  // An unknown character is encoded as the unknown token.
  const spelled = (text: string) => codec.decode(codec.encode(text, false), false);
  const renderChat =
    chatTemplate === undefined
      ? null
      : chatRenderer(
          ({ messages, addGenerationPrompt }) => ({
            text: chatTemplate(messages as readonly Message[], addGenerationPrompt),
            generated: null,
          }),
          `${where} options.chatTemplate`,
        );
  const fingerprint = hashJson(["charTokenizer", vocabulary, unknownId, endId, exampleChat(chatTemplate)]);
  return {
    ...tokenizerWith(codec, {
      fingerprint,
      eosId: endId,
      endIds: [],
      rendererFor: () => renderChat,
      noTemplate,
    }),
    stopIds: endId === null ? [] : [endId],
  };
}

const noTemplate = () =>
  modelError({
    where,
    got: "a chat, without a chat template",
    expected: "plain text, or the option `chatTemplate`",
    fix: 'Pass `chatTemplate`, or use plain text: `method: "cloze"` for capability.',
  });

function checkedChars(chars: Iterable<string>): readonly string[] {
  const list: readonly unknown[] = isIterable(chars) ? [...chars] : [];
  const at = list.findIndex((char) => typeof char !== "string" || [...char].length !== 1);
  const path = ["chars"];
  if (list.length === 0 || at >= 0) {
    const value = list.length === 0 ? chars : list[at];
    const fix = "Pass `new Set(text)`, which has every character of a text once.";
    const expected = "a string, or strings of one character";
    throw configError({ where, path: at < 0 ? path : [...path, at], value, expected, fix });
  }
  const seen = new Set();
  const repeated = list.findIndex((char) => seen.size === seen.add(char).size);
  if (repeated < 0) return list as readonly string[];
  const got = `${JSON.stringify(list[repeated])} a second time`;
  const fix = "Pass `new Set(text)` instead of a text: it has each character once.";
  throw configError({ where, path: [...path, repeated], got, expected: "each character once", fix });
}

const isIterable = (value: unknown): value is Iterable<unknown> =>
  value !== null &&
  value !== undefined &&
  typeof (value as Iterable<unknown>)[Symbol.iterator] === "function";

function throwUnknown(char: string, text: string, vocabulary: readonly string[]): never {
  const point = char.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
  const line = text.split("\n").find((part) => part.includes(char)) ?? text;
  throw new PeriodicEvalError({
    code: "data",
    where: `${where}: the text ${quoteShort(line)}`,
    got: `the character ${JSON.stringify(char)} (U+${point})`,
    expected: `one of the ${vocabulary.length} characters of the tokenizer`,
    fix: "Add it to `chars`, or set `unknown` to the character that replaces it.",
  });
}

function throwNoChar(id: number, vocabulary: readonly string[]): never {
  throw modelError({
    where,
    got: `the token id ${id}`,
    expected: `an id from 0 to ${vocabulary.length - 1}`,
    fix: "Give the model's last layer `tokenizer.vocabSize` units.",
  });
}

/** Returns the rendering of an example chat, which stands for the template in the fingerprint. */
function exampleChat(chatTemplate: CharTokenizerOptions["chatTemplate"]): string {
  const turns = ["system", "user", "assistant"].map((role) => ({ role, content: `(${role})` }));
  const rendered = [turns, turns.slice(1)].map((messages) => {
    try {
      return chatTemplate?.(messages, true) ?? null;
    } catch {
      return null; // for example a template without system messages
    }
  });
  return rendered.join();
}
