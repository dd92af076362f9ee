import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { PeriodicEvalError } from "@periodic-eval/core";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { checkKeys, checkName, nearest, quoteValue } from "@periodic-eval/core/internal";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/core/config";
import { z } from "zod";
import { isPath } from "../config/load-config.ts";
import { namesIn } from "../yaml-names.ts";

/** Two answers to a prompt, of which the preference wants the first. */
export interface LogprobPair {
  readonly prompt: string;
  readonly chosen: string;
  readonly rejected: string;
}

/** How an answer is checked: by a grader that ships, or by an export of a module beside the preference's file. */
export type PreferenceVerifier =
  | { readonly name: string; readonly args: VerifierArgs }
  | { readonly module: string; readonly export: string; readonly args: VerifierArgs };

/** What a user wants of the model, how they say so, and how it is seen. */
export interface Preference {
  readonly name: string;
  /** What the user says to an answer that is not as wanted. */
  readonly feedback_string: string;
  /**
   * The user turn in which the teacher sees the feedback, with `{prompt}`, `{response}` and `{feedback}` in it. Null: the
   * trainer's own.
   */
  readonly hindsight: string | null;
  readonly verifier: PreferenceVerifier;
  /** Held out: none of their prompts is trained on. */
  readonly logprob_pairs: readonly LogprobPair[];
  readonly train_prompts: readonly string[];
  /** Held out too. */
  readonly probe_prompts: readonly string[];
  /** Absolute; of modules beside it. */
  readonly folder: string;
}

/** Fewer pairs than this cannot show much: of 12, the sign-flip test finds p = 2/4096 at best. */
export const leastPairs = 12;

const text = z.string("expected a text").refine((value) => value.trim() !== "", "expected a text");
const args = z.record(z.string(), z.json(), "expected a map of arguments").default({});

const pairFields = { prompt: text, chosen: text, rejected: text };
const fields = {
  name: text,
  feedback_string: text,
  hindsight: text
    .refine((value) => value.includes("{feedback}"), "expected a text with {feedback} in it")
    .nullable()
    .default(null),
  verifier: z.union(
    [
      text.transform((name) => ({ name, args: {} })),
      z.strictObject({ name: text, args }),
      z.strictObject({ module: text, export: text, args }),
    ],
    "expected the name of a verifier, { name, args } or { module, export, args }",
  ),
  logprob_pairs: z
    .array(z.object(pairFields, "expected a map of prompt, chosen and rejected"), "expected a list of pairs")
    .min(leastPairs, `expected ${leastPairs} pairs or more`),
  train_prompts: z.array(text, "expected a list of prompts").min(1, "expected a prompt or more"),
  probe_prompts: z.array(text, "expected a list of prompts").min(1, "expected a prompt or more"),
};
const schema = z.object(fields, "expected a map");

/** The preferences that ship: for models that follow instructions, and in the words of the micro-world. */
export const shippedPreferences = fileURLToPath(new URL("../../preferences/instruct", import.meta.url));

/**
 * A preference by its name in a folder, or by the path of its file.
 *
 * @param folder default of those that ship for models that follow instructions.
 * @param where for errors: the key that names it.
 * @throws PeriodicEvalError `config` with file and line for a preference that is not there (the nearest is named) or not
 *   of this form; for a prompt that is both trained on and held out; and for one that stands twice.
 */
export async function readPreference(
  nameOrPath: string,
  folder: string | null = null,
  where = "preferences",
): Promise<Preference> {
  const path = pathOf(nameOrPath, folder ?? shippedPreferences, where);
  const file = await readConfigFile(path);
  const { value, where: at } = file;
  checkKeys(at([]), value as object, Object.keys(fields));
  const { logprob_pairs: pairs } = value as { readonly logprob_pairs?: unknown };
  if (Array.isArray(pairs))
    pairs.forEach((pair, i) => checkKeys(at(["logprob_pairs", i]), pair as object, Object.keys(pairFields)));
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const key = issue!.path as ValuePath;
    const got = key.reduce<unknown>(
      (of, part) => (of as Record<string | number, unknown> | null)?.[part],
      value,
    );
    throw wrong(
      at(key),
      got === undefined ? "nothing" : Array.isArray(got) ? `${got.length} entries` : quoteValue(got),
      issue!.message.replace(/^expected /, ""),
      "Correct the file.",
    );
  }
  checkName(at(["name"]), parsed.data.name);
  checkApart(parsed.data, file);
  return { ...parsed.data, folder: dirname(path) };
}

/** Prompts are the same where they differ in spaces and capitals alone. */
const key = (prompt: string): string => prompt.trim().replaceAll(/\s+/g, " ").toLowerCase();

function checkApart(
  { train_prompts: trained, probe_prompts: probes, logprob_pairs: pairs }: z.infer<typeof schema>,
  { where }: ConfigFile,
): void {
  const seen = new Set(trained.map(key));
  const lists = {
    train_prompts: trained,
    probe_prompts: probes,
    logprob_pairs: pairs.map(({ prompt, chosen, rejected }) => `${prompt}\n${chosen}\n${rejected}`),
  };
  for (const [list, entries] of Object.entries(lists)) {
    const keys = entries.map(key);
    const at = keys.findIndex((one, i) => keys.indexOf(one) !== i);
    if (at >= 0)
      throw wrong(where([list, at]), "what stands there before", "entries that differ", "Take it out.");
  }
  const heldOut = { probe_prompts: probes, logprob_pairs: pairs.map(({ prompt }) => prompt) };
  for (const [list, prompts] of Object.entries(heldOut)) {
    const at = prompts.findIndex((prompt) => seen.has(key(prompt)));
    if (at < 0) continue;
    throw wrong(
      where([list, at]),
      `${quoteValue(prompts[at])}, which is one of train_prompts`,
      "a prompt that is not trained on",
      "Change it: what is trained on cannot show that anything was learnt beyond it.",
    );
  }
  pairs.forEach(({ chosen, rejected }, at) => {
    if (chosen !== rejected) return;
    throw wrong(
      where(["logprob_pairs", at]),
      "the same text twice",
      "two answers that differ",
      "Correct the pair.",
    );
  });
}

function pathOf(name: string, folder: string, where: string): string {
  if (isPath(name)) {
    if (existsSync(name)) return name;
    throw wrong(where, `${quoteValue(name)}, which is not there`, "a preference's file", "Check the path.");
  }
  const path = [`${name}.yaml`, `${name}.yml`].map((one) => join(folder, one)).find(existsSync);
  if (path !== undefined) return path;
  const there = namesIn(folder);
  const close = nearest(name, there);
  throw wrong(
    where,
    quoteValue(name),
    there.length === 0 ? `a preference in ${folder}` : `some of ${there.join(", ")}, or the path of a file`,
    close === null ? "Name one of them, or a file of your own, as ./mine.yaml." : `Did you mean "${close}"?`,
  );
}

const wrong = (where: string, got: string, expected: string, fix: string): PeriodicEvalError =>
  new PeriodicEvalError({ code: "config", where, got, expected, fix });
