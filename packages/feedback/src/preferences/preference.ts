import * as z from "zod";
import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import {
  checkName,
  configError,
  didYouMean,
  quoteValue,
  isRecord,
  nearest,
} from "@periodic-eval/contracts/options";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile } from "@periodic-eval/data/config";
import type { VerifierArgs } from "@periodic-eval/core/grading";
import { isString } from "@periodic-eval/remote";
import { atFile, parseFile, placeIn, namesIn, yamlFile } from "../config/file-errors.ts";
import { isPath } from "../config/load-config.ts";

/** Returns the user's feedback, repeated. */
export const feedbackOf = ({ feedback_string: feedback }: Preference, repetitions: number): string =>
  Array.from({ length: repetitions }, () => feedback).join(" ");

/** Returns the user turn in which the teacher reads the feedback; null if the engine uses its default. */
export function teacherTurnOf(
  { hindsight }: Pick<Preference, "hindsight">,
  texts: { readonly prompt: string; readonly response: string; readonly feedback: string },
): string | null {
  // All placeholders are replaced in one pass, so that a placeholder inside an inserted text stays.
  return (
    hindsight?.replaceAll(
      /\{(prompt|response|feedback)\}/g,
      (_, name) => texts[name as keyof typeof texts],
    ) ?? null
  );
}

/** Our grader for each verifier class of kfallah/CLaaS (commit 34fa060), by class name. */
const graders: Readonly<Record<string, string>> = {
  NoEmojiVerifier: "no_emoji",
  ConciseVerifier: "concise",
  IdentityVerifier: "identity",
};

/** Hydra's keys, which are not arguments of the class. */
const ignoredKeys = ["_target_", "_recursive_", "_convert_", "_partial_"];

/**
 * Replaces the fields of a Hydra preference file by ours: a verifier `{ _target_: package.Class }` by the grader for the class
 * name, and a pair's `prompt_messages, positive_response, negative_response` by `prompt, chosen, rejected`. Other values stay as
 * they are.
 *
 * @returns The content, and the path in the file of each path in the content.
 * @throws PeriodicEvalError `config` for an unknown class (names the known ones) or a prompt of several messages.
 */
function fromHydra(content: unknown): {
  readonly value: unknown;
  readonly keyOf: (path: ValuePath) => ValuePath;
} {
  if (!isRecord(content)) return { value: content, keyOf: (path) => path };
  const { verifier, logprob_pairs: pairs } = content;
  const value = {
    ...content,
    ...(isRecord(verifier) && "_target_" in verifier && { verifier: graderOf(verifier) }),
    ...(Array.isArray(pairs) && { logprob_pairs: pairs.map(pairOf) }),
  };
  return { value, keyOf: (path) => pathInFile(content, path) };
}

function graderOf(verifier: Readonly<Record<string, unknown>>): unknown {
  const { _target_: target } = verifier;
  const className = isString(target) ? target.split(".").at(-1)! : "";
  const known = Object.keys(graders);
  if (!Object.hasOwn(graders, className)) {
    const close = nearest(className, known);
    throw configError({
      where: "",
      path: ["verifier", "_target_"],
      value: target,
      expected: `a path that ends in ${known.slice(0, -1).join(", ")} or ${known.at(-1)}`,
      fix: `${close === null ? "" : `Did you mean "${close}"? `}Python classes do not run here: for any other verifier write { module: ./verify.mjs, export: name }, a function (answer, task) => reward from 0 to 1.`,
    });
  }
  const args = Object.entries(verifier).filter(([key]) => !ignoredKeys.includes(key));
  return { name: graders[className], args: Object.fromEntries(args) };
}

const pairKeys = {
  prompt: "prompt_messages",
  chosen: "positive_response",
  rejected: "negative_response",
} as const;

function pairOf(pair: unknown, at: number): unknown {
  if (!isRecord(pair) || !("prompt_messages" in pair)) return pair;
  const { prompt_messages: messages, positive_response: chosen, negative_response: rejected, ...rest } = pair;
  const [message, ...more] = Array.isArray(messages) ? (messages as unknown[]) : [];
  if (more.length > 0 || !isRecord(message) || message["role"] !== "user" || !isString(message["content"]))
    throw configError({
      where: "",
      path: ["logprob_pairs", at, "prompt_messages"],
      got: quoteValue(messages),
      expected: "one message { role: user, content }",
      fix: "Write the conversation as one user message: margins are measured after one turn.",
    });
  return { ...rest, prompt: message["content"], chosen, rejected };
}

function pathInFile(content: Readonly<Record<string, unknown>>, path: ValuePath): ValuePath {
  const [list, index, key] = path;
  const pairs = content["logprob_pairs"];
  const pair = list === "logprob_pairs" && Array.isArray(pairs) ? (pairs[Number(index)] as unknown) : null;
  if (isRecord(pair) && "prompt_messages" in pair && Object.hasOwn(pairKeys, String(key)))
    return [list!, index!, pairKeys[key as keyof typeof pairKeys]];
  return path;
}

/** A prompt with the answer that the preference wants and one that it does not want. */
export interface LogprobPair {
  readonly prompt: string;
  readonly chosen: string;
  readonly rejected: string;
}

/** A shipped verifier, or an export of a module. The module's path is relative to the preference's file. */
export type PreferenceVerifier =
  | { readonly name: string; readonly args: VerifierArgs }
  | { readonly module: string; readonly export: string; readonly args: VerifierArgs };

/** How a user wants the model to answer: the feedback, the verifier, and the prompts for training and measuring. */
export interface Preference {
  readonly name: string;
  /** The user's feedback on an answer. */
  readonly feedback_string: string;
  /**
   * The user turn in which the teacher reads the feedback: a template with `{prompt}`, `{response}` and `{feedback}`. Null: the
   * trainer's default.
   */
  readonly hindsight: string | null;
  readonly verifier: PreferenceVerifier;
  /** `train_prompts` contains none of their prompts. */
  readonly logprob_pairs: readonly LogprobPair[];
  /** Empty if the file has none: `runHarness` then trains on `probe_prompts`. */
  readonly train_prompts: readonly string[];
  /** None of them is in `train_prompts`. */
  readonly probe_prompts: readonly string[];
  /** Absolute path of the preference's folder. The paths of modules are relative to it. */
  readonly folder: string;
}

const text = z.string("a non-empty string").refine((value) => value.trim() !== "", "a non-empty string");
const args = z.record(z.string(), z.json(), "an object of arguments").default({});

const prompts = z.array(text, "an array of prompts").min(1, "at least one prompt");
const schema = z.strictObject(
  {
    name: text,
    feedback_string: text,
    hindsight: text
      .refine((value) => value.includes("{feedback}"), "a string that contains {feedback}")
      .nullable()
      .default(null),
    verifier: z.union(
      [
        text.transform((name) => ({ name, args: {} })),
        z.strictObject({ name: text, args }),
        z.strictObject({ module: text, export: text, args }),
      ],
      "the name of a verifier, { name, args } or { module, export, args }",
    ),
    logprob_pairs: z
      .array(
        z.strictObject(
          { prompt: text, chosen: text, rejected: text } satisfies Record<keyof LogprobPair, z.ZodType>,
          "an object with prompt, chosen and rejected",
        ),
        "an array of pairs",
      )
      .min(1, "at least one pair"),
    train_prompts: prompts.default([]),
    probe_prompts: prompts,
  } satisfies Record<Exclude<keyof Preference, "folder">, z.ZodType>,
  "an object",
);

/** Folder of the shipped preferences for instruction-tuned models. `../micro-world` has those for the micro-world. */
export const shippedPreferences = fileURLToPath(new URL("../../preferences/instruct", import.meta.url));

/**
 * Reads a preference by its name in a folder, or by the path of its file. Also accepts the fields of Hydra's preference files
 * (`fromHydra`).
 *
 * @param folder Default: `shippedPreferences`.
 * @param where The configuration key of the preference, for errors.
 * @throws PeriodicEvalError `config` with file and line for a missing preference (names the nearest) or a wrong one, for a prompt
 *   that is both in `train_prompts` and held out, and for duplicates.
 */
export async function readPreference(
  nameOrPath: string,
  folder: string | null = null,
  where = "preferences",
): Promise<Preference> {
  return (await readPlacedPreference(nameOrPath, folder, where)).preference;
}

/** A preference, with the places of its values. */
export interface PlacedPreference {
  readonly preference: Preference;
  /** Returns the file and line of a value, under the key that the file uses, for errors. */
  readonly placeOf: (path: ValuePath) => string;
}

/** Does the same as `readPreference`, and keeps the places of the values. */
export async function readPlacedPreference(
  nameOrPath: string,
  folder: string | null,
  where = "preferences",
): Promise<PlacedPreference> {
  const path = pathOf(nameOrPath, folder ?? shippedPreferences, where);
  const file = await readConfigFile(path);
  const { value, keyOf } = atFile(file, () => fromHydra(file.value));
  const preference = parseFile(file, schema, value, keyOf);
  const check = () => {
    checkName("", preference.name, ["name"]);
    refuseDuplicates(preference);
    refuseTrainedPrompts(preference);
    refuseEqualAnswers(preference);
  };
  atFile(file, check, keyOf);
  return {
    preference: { ...preference, folder: dirname(path) },
    placeOf: (at) => placeIn(file, keyOf(at)),
  };
}

/** Ignores spaces and case: prompts that differ only in these count as the same. */
export const promptKey = (prompt: string): string => prompt.trim().replaceAll(/\s+/g, " ").toLowerCase();

type Lists = Pick<Preference, "train_prompts" | "probe_prompts" | "logprob_pairs">;

function refuseDuplicates({ logprob_pairs: pairs, ...promptLists }: Lists): void {
  const lists = {
    train_prompts: promptLists.train_prompts,
    probe_prompts: promptLists.probe_prompts,
    logprob_pairs: pairs.map(({ prompt, chosen, rejected }) => `${prompt}\n${chosen}\n${rejected}`),
  };
  for (const [list, entries] of Object.entries(lists)) {
    const seen = new Set<string>();
    const at = entries.findIndex((entry) => seen.size === seen.add(promptKey(entry)).size);
    if (at < 0) continue;
    throw configError({
      where: "",
      path: [list, at],
      got: "a duplicate",
      expected: "unique entries",
      fix: "Remove it.",
    });
  }
}

function refuseTrainedPrompts({ train_prompts: trained, probe_prompts: probes, logprob_pairs }: Lists): void {
  const seen = new Set(trained.map(promptKey));
  const heldOut = { probe_prompts: probes, logprob_pairs: logprob_pairs.map(({ prompt }) => prompt) };
  for (const [list, entries] of Object.entries(heldOut)) {
    const at = entries.findIndex((prompt) => seen.has(promptKey(prompt)));
    if (at < 0) continue;
    throw configError({
      where: "",
      path: [list, at],
      got: `${quoteValue(entries[at])}, which is one of train_prompts`,
      expected: "a prompt that training does not use",
      fix: "Change it: a prompt used in training cannot show that the model generalises.",
    });
  }
}

function refuseEqualAnswers({ logprob_pairs: pairs }: Lists): void {
  const at = pairs.findIndex(({ chosen, rejected }) => chosen === rejected);
  if (at < 0) return;
  throw configError({
    where: "",
    path: ["logprob_pairs", at],
    got: "the same answer twice",
    expected: "two different answers",
    fix: "Correct the pair.",
  });
}

function pathOf(name: string, folder: string, where: string): string {
  if (isPath(name)) {
    if (existsSync(name)) return name;
    throw configError({
      where,
      got: `${quoteValue(name)}, which does not exist`,
      expected: "the file of a preference",
      fix: "Check the path.",
    });
  }
  const path = yamlFile(folder, name);
  if (path !== null) return path;
  const names = namesIn(folder);
  throw configError({
    where,
    value: name,
    expected:
      names.length === 0 ? `a preference in ${folder}` : `one of ${names.join(", ")}, or the path of a file`,
    fix: didYouMean(name, names) ?? "Use one of them, or the path of a custom file such as ./mine.yaml.",
  });
}
