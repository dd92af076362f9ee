import * as z from "zod";
import type { Prompt, TemplateKwargs } from "@periodic-eval/contracts";
import {
  configError,
  dataError,
  integerFromZero,
  isRecord,
  parseOptions,
  positiveInteger,
} from "@periodic-eval/contracts/options";
import { namedStream } from "../../random/streams.ts";

const slot = "{secret}";

/** Secrets that nothing but training can teach, in a format of the training rows. */
export interface CanaryOptions {
  /** The text of a canary, with `{secret}` for its random digits: `The code of the archive is {secret}.` */
  readonly format: string;
  /** The user's turn before it, in a chat whose assistant says `format`. Default: plain text. */
  readonly prompt?: string;
  /** Default 4. */
  readonly canaries?: number;
  /** Digits of a secret. Default 6. */
  readonly digits?: number;
  /** Default 42. */
  readonly seed?: number;
}

export const canaryShape = {
  format: z
    .string("a text with {secret}")
    .refine((text) => text.split(slot).length === 2, "a text with {secret} once")
    .meta({ fix: 'Write for example "The code of the archive is {secret}."' }),
  prompt: z.string().min(1).optional(),
  canaries: positiveInteger.optional(),
  digits: positiveInteger.max(15, "at most 15 digits").optional(),
  seed: integerFromZero.optional(),
} satisfies Record<keyof CanaryOptions, z.ZodType>;

/** Returns the options with the defaults of those that are missing. */
export const withDefaults = ({ canaries = 4, digits = 6, seed = 42, ...rest }: CanaryOptions) => ({
  canaries,
  digits,
  seed,
  ...rest,
});

/** A secret, and `count - 1` others that were drawn like it and are in no training row. */
export interface Canary {
  readonly id: string;
  readonly secret: string;
  readonly others: readonly string[];
}

/**
 * Returns the canaries. All secrets differ, and none is among the others of a canary. A secret depends only on the seed and its
 * number.
 */
export function drawCanaries(options: CanaryOptions, count: number): Canary[] {
  const { canaries, digits, seed } = withDefaults(options);
  const draws = Array.from({ length: canaries }, (_, at) => {
    const random = namedStream(JSON.stringify(["canary", seed, at]));
    return () => Array.from({ length: digits }, () => Math.floor(10 * random())).join("");
  });
  const secrets = new Set<string>();
  for (const [at, draw] of draws.entries()) while (secrets.size <= at) secrets.add(draw());
  return [...secrets].map((secret, at) => {
    const drawn = new Set(secrets);
    while (drawn.size < canaries + count - 1) drawn.add(draws[at]!());
    return { id: String(at), secret, others: [...drawn].slice(canaries) };
  });
}

/** @throws PeriodicEvalError `config` if there are fewer strings of `digits` than canaries and the others of one. */
export function checkDigits(where: string, options: CanaryOptions, count: number): void {
  const { canaries, digits } = withDefaults(options);
  const needed = canaries + count - 1;
  if (needed <= 10 ** digits) return;
  throw configError({
    where,
    path: ["digits"],
    value: digits,
    expected: `${String(needed - 1).length} or more, for ${needed} different secrets`,
    fix: "Raise `digits`, or lower the number of canaries or candidates.",
  });
}

/**
 * Returns the context of a secret, and its continuation. The space before a secret belongs to the continuation, as tokens join it
 * with what follows.
 */
export function aroundSecret({ format, prompt }: CanaryOptions) {
  const [start, after] = format.split(slot) as [string, string];
  const before = start.trimEnd();
  const continuationOf = (secret: string) => `${start.slice(before.length)}${secret}${after}`;
  const user = { role: "user", content: prompt ?? "" };
  const messages = before === "" ? [user] : [user, { role: "assistant", content: before }];
  const context: Prompt = prompt === undefined ? { text: before } : { messages };
  return { context, continuationOf };
}

interface CanaryTurn {
  readonly role: string;
  readonly content: string | readonly { readonly type: "text"; readonly text: string }[];
}

/** A row that `withCanaries` adds, in the columns of the training rows: plain text or a chat. */
export type CanaryRow =
  | { readonly text: string }
  | { readonly prompt: string; readonly completion: string }
  | (TemplateColumns &
      (
        | { readonly messages: readonly CanaryTurn[] }
        | { readonly conversations: readonly { readonly from: string; readonly value: string }[] }
        | { readonly prompt: readonly CanaryTurn[]; readonly completion: readonly CanaryTurn[] }
      ));

interface TemplateColumns {
  readonly chat_template_kwargs?: TemplateKwargs;
}

/** Columns of the forms of training rows. A row that fits several has the first, as in trainers. */
const forms = [["prompt", "completion"], ["conversations"], ["messages"], ["text"]] as const;

type FirstColumn = (typeof forms)[number][0];

/**
 * Returns the first column of a training row's form.
 *
 * @throws PeriodicEvalError `data` for a row of no form that a canary can have, or of another one than the canaries.
 */
function formOf(value: unknown, where: string, { prompt }: CanaryOptions): FirstColumn {
  const row = isRecord(value) ? value : {};
  const names = forms.find((columns) => columns.every((name) => row[name] != null));
  const hasAll = (type: (cell: unknown) => boolean) => names?.every((name) => type(row[name])) === true;
  const isChat = hasAll(Array.isArray) && names![0] !== "text";
  const isText = hasAll((cell) => typeof cell === "string") && ["prompt", "text"].includes(names![0]);
  if (!isChat && !isText)
    throw dataError(
      where,
      `a row of ${Object.keys(row).join(", ") || "no keys"}`,
      "a training row: prompt and completion (strings or arrays of messages), conversations, messages, or text",
      "chosen" in row
        ? "Canaries have no rejected answer: mix them into rows for supervised fine-tuning."
        : "Correct or remove it.",
    );
  if (isChat === (prompt !== undefined)) return names![0];
  throw isChat
    ? dataError(
        where,
        "a chat",
        "text, as the canaries",
        "Add `prompt` to `memorization`: the user's turn before a canary.",
      )
    : dataError(
        where,
        "text",
        "a chat, as the canaries",
        "Remove `prompt` from `memorization`; `format` can begin with its words.",
      );
}

/** Returns a canary in the form of a training row. */
function canaryLike(row: unknown, name: FirstColumn, options: CanaryOptions, secret: string): CanaryRow {
  const { prompt } = options;
  const text = options.format.replace(slot, () => secret);
  if (prompt === undefined) {
    if (name === "text") return { text };
    const { length } = options.format.split(slot)[0]!.trimEnd();
    return { prompt: text.slice(0, length), completion: text.slice(length) };
  }
  const columns = isRecord(row) ? row : {};
  const [first] = (columns[name] ?? []) as readonly unknown[];
  const { from, value, content = value } = isRecord(first) ? first : { from: name === "conversations" };
  const [role, said] = from ? (["from", "value"] as const) : (["role", "content"] as const);
  const turn = (speaker: string, words: string) => ({
    [role]: speaker,
    [said]: Array.isArray(content) ? [{ type: "text", text: words }] : words,
  });
  const turns = [turn("user", prompt), turn("assistant", text)];
  const { chat_template_kwargs: kwargs } = columns;
  return {
    ...(name === "prompt" ? { prompt: turns.slice(0, 1), completion: turns.slice(1) } : { [name]: turns }),
    ...(isRecord(kwargs) && { chat_template_kwargs: kwargs }),
  } as unknown as CanaryRow;
}

/**
 * Mixes canaries into training rows: `repeats` copies of each, at random places. `memorizationEvaluation` with the same options
 * measures whether training memorizes them. A canary has the columns of the first row, and its `chat_template_kwargs`; without rows
 * `messages` or `text`.
 *
 * @param rows The training rows, in the form of the canaries: chats with `prompt`, else texts.
 * @param repeats Copies of each canary. Default 4.
 * @param placeOf Names a row in errors.
 * @throws PeriodicEvalError `config` for a wrong option, `data` for a row of another form.
 */
export function withCanaries<R>(
  rows: readonly R[],
  { repeats = 4, ...options }: CanaryOptions & { readonly repeats?: number },
  placeOf = (at: number): string => `rows[${at}]`,
): (R | CanaryRow)[] {
  const shape = { ...canaryShape, repeats: positiveInteger };
  parseOptions("withCanaries options", z.strictObject(shape), { ...options, repeats });
  checkDigits("withCanaries options", options, 1);
  const [form = options.prompt === undefined ? "text" : "messages"] = rows.map((row, at) =>
    formOf(row, placeOf(at), options),
  );
  const random = namedStream(JSON.stringify(["canary places", withDefaults(options).seed]));
  const mixed: (R | CanaryRow)[] = [...rows];
  for (const { secret } of drawCanaries(options, 1))
    for (let copy = 0; copy < repeats; copy++) {
      const row = canaryLike(rows[0], form, options, secret);
      mixed.splice(Math.floor(random() * (mixed.length + 1)), 0, row);
    }
  return mixed;
}
