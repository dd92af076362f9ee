import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorMessage } from "@periodic-eval/contracts/options";
import { PeriodicEvalError } from "@periodic-eval/core";
import { parsePythonJson } from "@periodic-eval/data";
import { readSafetensorsHeader } from "@periodic-eval/safetensors";
import { readTrainerState, type TrainerState } from "./trainer-state.ts";

/** A checkpoint in a folder, complete or not. */
export interface Candidate {
  readonly name: string;
  readonly step: number;
  /** The folder of the model. */
  readonly path: string;
}

export const stepPlaceholder = "{step}";

/** Returns the checkpoints among the names in a folder, in order of steps. */
export function candidatesOf(
  folder: string,
  names: readonly string[],
  pattern?: string,
): readonly Candidate[] {
  return names
    .flatMap((name) => {
      const parsed = stepOf(name, pattern);
      return parsed === null ? [] : [{ name, step: parsed.step, path: join(folder, name, ...parsed.rest) }];
    })
    .toSorted((a, b) => a.step - b.step);
}

/** Returns the checkpoints of a folder, complete or not, in order of steps; none if the folder cannot be listed. */
export async function listCheckpoints(folder: string, pattern?: string): Promise<readonly Candidate[]> {
  const names = await readdir(folder).catch(() => []);
  return candidatesOf(folder, names, pattern);
}

/** Returns the step in a folder's name, and the path to the model in the folder; null for another folder. */
function stepOf(
  name: string,
  pattern: string | undefined,
): { readonly step: number; readonly rest: readonly string[] } | null {
  const [first = "", ...rest] = pattern?.split("/") ?? [];
  const [before, behind] = first
    .split(stepPlaceholder)
    .map((text) => text.replaceAll(/[^\w-]/g, String.raw`\$&`));
  const digits = (
    pattern === undefined ? /^(?:checkpoint-|step_)(\d+)$/ : new RegExp(`^${before}(\\d+)${behind}$`)
  ).exec(name)?.[1];
  const at = Number(digits);
  return Number.isSafeInteger(at) ? { step: at, rest } : null;
}

/** A checkpoint's folder as it is now. */
export interface CheckpointFolder {
  readonly kind: "full" | "adapter";
  /** Null if the trainer has written no `trainer_state.json`. */
  readonly state: TrainerState | null;
  /** Names, sizes and times of the files that are read: a folder that is written or deleted has another one. */
  readonly signature: string;
}

/** Reads a checkpoint's folder. Returns null while it is not complete. */
export async function readCheckpointFolder(path: string): Promise<CheckpointFolder | null> {
  const inspected = await inspectCheckpointFolder(path);
  return typeof inspected === "string" ? null : inspected;
}

/**
 * Reads a checkpoint's folder, or returns what it lacks: a configuration, weights, a file that the index names, bytes that a
 * safetensors header describes, the end of a JSON file.
 */
export async function inspectCheckpointFolder(path: string): Promise<CheckpointFolder | string> {
  try {
    const signature = await signatureOf(path);
    const names = (await readdir(path, { withFileTypes: true })).flatMap((file) =>
      file.isDirectory() ? [] : [file.name],
    );
    // A trainer may save the base model's config.json beside an adapter.
    const kind = names.some((name) => /^adapter_(config|model)\b/.test(name)) ? "adapter" : "full";
    const config = kind === "adapter" ? "adapter_config.json" : "config.json";
    if (!names.includes(config)) return `${config} is missing`;
    const lacking = (await incompleteJson(path, names)) ?? (await lackingWeights(path, names, kind));
    if (lacking !== null) return lacking;
    const state = names.includes("trainer_state.json")
      ? readTrainerState(await readFile(join(path, "trainer_state.json"), "utf8"))
      : null;
    return (await signatureOf(path)) === signature ? { kind, state, signature } : "it is being written";
  } catch (error) {
    return `it cannot be read (${errorMessage(error)})`;
  }
}

/** Files that are parsed when a checkpoint is opened. */
const parsedFile =
  /^((adapter_|generation_|tokenizer_)?config|trainer_state|tokenizer|special_tokens_map|added_tokens|vocab)\.json$|\.index\.json$/;

async function incompleteJson(path: string, names: readonly string[]): Promise<string | null> {
  for (const name of names.filter((file) => parsedFile.test(file))) {
    try {
      parsePythonJson(await readFile(join(path, name), "utf8"));
    } catch {
      return `${name} cannot be parsed`;
    }
  }
  return null;
}

async function lackingWeights(
  path: string,
  names: readonly string[],
  kind: CheckpointFolder["kind"],
): Promise<string | null> {
  const indices = names.filter((name) => /\.(safetensors|bin)\.index\.json$/.test(name));
  const indexed = await Promise.all(indices.map((name) => shardsOf(join(path, name))));
  const weights = new Set([...indexed.flat(), ...names.filter((name) => weightFile.test(name))]);
  const isOfKind = (name: string) => kind === "full" || name.startsWith("adapter_model");
  if (![...weights].some(isOfKind)) return "its weights are missing";
  if (indices.length === 0 && [...weights].some((name) => /-\d+-of-\d+\.\w+$/.test(name)))
    return "the index of its weights is missing";
  for (const name of weights) {
    if (!names.includes(name)) return `${name} is missing`;
    if (!name.endsWith(".safetensors")) continue;
    try {
      await readSafetensorsHeader(join(path, name));
    } catch (error) {
      if (!PeriodicEvalError.is(error, "model")) throw error;
      return `${name}: got ${error.got}, expected ${error.expected}`;
    }
  }
  return null;
}

/** Pickled weights are refused when they are opened, with the remedy. */
const weightFile = /\.safetensors$|^(pytorch_model|adapter_model)[\w.-]*\.bin$/;

/** Files that are read when a checkpoint is measured. The trainer may write others, or its state, at any time. */
export const isRead = (name: string): boolean =>
  /\.(safetensors|bin|json|jinja|model|txt)$/.test(name) && name !== "trainer_state.json";

async function signatureOf(path: string): Promise<string> {
  const files = (await readdir(path)).filter(isRead).toSorted();
  const stats = await Promise.all(
    files.map(async (name) => {
      const { size, mtimeMs, ino } = await stat(join(path, name));
      return [name, size, mtimeMs, ino];
    }),
  );
  return JSON.stringify(stats);
}

/** Returns whether a checkpoint has other files than when it had a signature; false for one that was deleted. */
export async function hasChanged(path: string, signature: string): Promise<boolean> {
  const now = await signatureOf(path).catch(() => null);
  return now !== null && now !== "[]" && now !== signature;
}

async function shardsOf(index: string): Promise<readonly string[]> {
  const { weight_map: files } = JSON.parse(await readFile(index, "utf8")) as {
    readonly weight_map?: unknown;
  };
  return Object.values(files as Readonly<Record<string, string>>);
}
