import { fieldText, filledString, filledText, rowFaults } from "@periodic-eval/contracts/options";
import { PeriodicEvalError, type Awaitable, type ErrorDetails, type ValuePath } from "@periodic-eval/core";
import { parseJson, placed } from "@periodic-eval/data";
import * as z from "zod";
import { splits, type BenchmarkTask } from "./benchmark-task.ts";
import { verifierSpec } from "./verifiers/verifier-spec.ts";

/** Defaults for lines, from `metadata.yaml`. */
export type TaskDefaults = Partial<Pick<BenchmarkTask, "split" | "verifier">>;

export const splitSchema = z.enum(splits, splits.join(" or "));

const fixForAll = (key: string) => `Add a ${key} to the line, or to metadata.yaml for all lines.`;

const message = z.strictObject(
  { role: z.enum(["system", "user", "assistant"]), content: z.string() },
  "{ role, content }",
);
const chat = z
  .array(message, "an array of { role, content }")
  .min(1, "an array of { role, content }")
  .refine(
    (messages) =>
      messages.at(-1)!.role === "user" && !messages.slice(1).some(({ role }) => role === "system"),
    "the user's message last, and a system message only first",
  );

const lineSchema = z.strictObject({
  id: filledString("a string").meta({ fix: "Add an id to the line." }),
  prompt: filledText().meta({ fix: "Write the prompt." }).optional(),
  messages: chat.meta({ fix: "Write the chat, with the user's message last." }).optional(),
  answer: z.json().default(null),
  split: splitSchema.meta({ fix: fixForAll("split") }),
  verifier: z
    .custom((value) => value !== undefined, "a name, { name, args } or { module, export, args }")
    .meta({ fix: fixForAll("verifier") }),
  metadata: z.record(z.string(), z.json(), "an object").default({}).meta({ fix: "Write { key: value }." }),
});

/** Parses the task of one line. Adds everything wrong with it to the mistakes, and then returns null. */
export async function parseTask(
  line: string,
  where: string,
  defaults: TaskDefaults,
  mistakes: Mistakes,
): Promise<BenchmarkTask | null> {
  const row = await mistakes.keep(where, () => placed("", parseJson(line, "", oneObject)).row);
  if (row === null) return null;
  const { prompt, messages, ...rest } = row;
  const isOne = (prompt === undefined) !== (messages === undefined);
  if (!isOne)
    mistakes.add({
      where,
      got: prompt === undefined ? fieldText(row, "prompt") : "both",
      expected: "prompt or messages",
      fix: "Add a prompt, or the messages of a chat, to the line.",
    });
  const read = mistakes.read(where, lineSchema, { ...defaults, ...(isOne ? row : rest) });
  const verifier = read && (await mistakes.keep(where, () => verifierSpec(read.verifier)));
  if (!isOne || read === null || verifier === null) return null;
  const { prompt: asked = "", messages: chatOf = [{ role: "user", content: asked }], ...task } = read;
  return { ...task, messages: chatOf, verifier };
}

const oneObject = "Write one JSON object per line (JSONL), without commas between lines.";

/** Collects the mistakes in a folder, to report them together. */
export interface Mistakes {
  add(mistake: Omit<ErrorDetails, "code">): void;
  /** Returns what a schema makes of a row; adds everything that it refuses, and then returns null. */
  read<T>(where: string, schema: z.ZodType<T>, row: unknown, placeOf?: (path: ValuePath) => string): T | null;
  /** Returns what `make` returns. Adds its PeriodicEvalError with another place, and then returns null. */
  keep<T>(where: string, make: () => Awaitable<T>): Promise<T | null>;
  /** @throws PeriodicEvalError `data` for one mistake, an AggregateError for several. */
  throwAny(): void;
}

/** The most mistakes in a message; the AggregateError's `errors` has all. */
const mostListed = 20;

export function mistakes(): Mistakes {
  const errors: PeriodicEvalError[] = [];
  const add: Mistakes["add"] = (mistake) =>
    void errors.push(new PeriodicEvalError({ ...mistake, code: "data" }));
  return {
    add,
    read(where, schema, row, placeOf = () => where) {
      const parsed = schema.safeParse(row);
      if (parsed.success) return parsed.data;
      for (const { path, got, expected, fix } of rowFaults(schema, row))
        add({ where: placeOf(path), got, expected, fix: fix ?? "Correct it." });
      return null;
    },
    async keep(prefix, make) {
      try {
        return await make();
      } catch (error) {
        if (!PeriodicEvalError.is(error)) throw error;
        const { where, got, expected, fix, cause } = error;
        add({ where: where === "" ? prefix : `${prefix} ${where}`, got, expected, fix, cause });
        return null;
      }
    },
    throwAny() {
      if (errors.length === 1) throw errors[0]!;
      if (errors.length === 0) return;
      const listed = errors.slice(0, mostListed).map(({ message }) => message);
      const rest = errors.length - listed.length;
      throw new AggregateError(errors, [...listed, ...(rest > 0 ? [`and ${rest} more`] : [])].join("\n"));
    },
  };
}
