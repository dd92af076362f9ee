import { readdir, realpath } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { hashFiles, readIfPresent } from "@periodic-eval/core/snapshots";
import { z } from "zod";
import { parseJson } from "../results/parse-json.ts";

/** The base model of an adapter, according to the adapter's folder. */
export interface AdapterBase {
  readonly file: string;
  /** PEFT's `base_model_name_or_path`; null if missing. */
  readonly name: string | null;
  /** Hash of the base's weights, from a checkpoint of our trainers; null for other adapters. */
  readonly weights: string | null;
}

const adapterSchema = z.object({ base_model_name_or_path: z.string("a string or null").nullish() });
const stateSchema = z.object({ exact: z.object({ frozenWeights: z.string().nullish() }) });

/** Reads the base of an adapter; returns null if the adapter is not a local folder, or has no configuration. */
export async function readAdapterBase(adapter: string): Promise<AdapterBase | null> {
  const file = join(adapter, "adapter_config.json");
  const text = await readIfPresent(file);
  if (text === null) return null;
  const fix = "Name a folder with an adapter saved by PEFT.";
  const config = parseJson(adapterSchema, text, { code: "model", where: file, fix });
  const state = await readIfPresent(join(adapter, "trainer_state.json"));
  return { file, name: config.base_model_name_or_path || null, weights: state && frozenWeights(state) };
}

function frozenWeights(state: string): string | null {
  try {
    return stateSchema.parse(JSON.parse(state)).exact.frozenWeights ?? null;
  } catch {
    return null; // another program's file with this name
  }
}

/**
 * Whether an adapter belongs to a checkpoint, judged by names; null if unknown. Equal folders or names match. Two folders are
 * compared by the bytes of their weights. A hub name and a folder, or a folder that no longer exists, are compared by the last
 * segments of their names, and the name in the checkpoint's `config.json`.
 */
export async function isOfCheckpoint({ name }: AdapterBase, checkpoint: string): Promise<boolean | null> {
  if (name === null) return null;
  if (bare(name) === bare(checkpoint)) return true;
  const [one, other] = [await weightsIn(name), await weightsIn(checkpoint)];
  if (one !== null && other !== null) {
    if (one.folder === other.folder) return true;
    return (await hashOf(one)) === (await hashOf(other));
  }
  const known = [checkpoint, hubName(checkpoint), await nameInConfig(checkpoint)].filter((is) => is !== null);
  return known.some((is) => lastPart(is) === lastPart(name));
}

/** Removes a revision (`owner/name@revision`) and a trailing slash. */
const bare = (source: string): string => source.replace(/@[^@/\\]+$/, "").replace(/[/\\]+$/, "");

const lastPart = (source: string): string => basename(bare(hubName(source) ?? source)).toLowerCase();

/** Returns `owner/name` for a folder in the hub's cache. */
function hubName(path: string): string | null {
  const [, name] = /models--([^\\/]+)[\\/]snapshots[\\/][0-9a-f]{40}[\\/]?$/.exec(path) ?? [];
  return name?.replace("--", "/") ?? null;
}

async function nameInConfig(folder: string): Promise<string | null> {
  const text = await readIfPresent(join(folder, "config.json"));
  try {
    const { _name_or_path: name } = JSON.parse(text ?? "{}") as { readonly _name_or_path?: unknown };
    return typeof name === "string" && name !== "" ? name : null;
  } catch {
    return null;
  }
}

interface Weights {
  readonly folder: string;
  readonly files: readonly string[];
}

/** Returns the weight files of a folder; null if there is no folder or it has none. */
async function weightsIn(folder: string): Promise<Weights | null> {
  const names = await readdir(resolve(folder)).catch((): string[] => []);
  const files = names.filter((name) => /^(model|pytorch_model).*\.(safetensors|bin)$/.test(name)).sort();
  return files.length === 0 ? null : { folder: await realpath(resolve(folder)), files };
}

const hashOf = ({ folder, files }: Weights): Promise<string> =>
  hashFiles(files.map((file) => join(folder, file)));

/** Returns the error for an adapter of another model. */
export function otherBase(base: AdapterBase, adapter: string, checkpoint: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: `${base.file}: base_model_name_or_path`,
    got: `an adapter of ${base.name === null ? "another model" : `"${base.name}"`}`,
    expected: `an adapter of "${checkpoint}"`,
    fix:
      base.weights === null
        ? "Use the model that the adapter was trained on; if it is this model under another name, correct the name there."
        : `Use the model that ${adapter} was trained on: the weights differ.`,
  });
}
