import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, realpath } from "node:fs/promises";
import { basename, join, resolve } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { readIfPresent } from "@periodic-eval/core/snapshots";
import { z } from "zod";
import { parsedText } from "../results/parse-json.ts";

/** What a folder with an adapter tells of the model that it was trained on. */
export interface AdapterBase {
  /** The file that tells it. */
  readonly file: string;
  /** As PEFT's `base_model_name_or_path`; null where it is not told. */
  readonly name: string | null;
  /** Hash of its weights, of an adapter that lies in a checkpoint of our trainers; null for others. */
  readonly weights: string | null;
}

const adapterSchema = z.object({ base_model_name_or_path: z.string("a text or null").nullish() });
const stateSchema = z.object({ exact: z.object({ frozenWeights: z.string().nullish() }) });

/** Null where the adapter is no folder here (one on the hub), or has no configuration. */
export async function readAdapterBase(adapter: string): Promise<AdapterBase | null> {
  const file = join(adapter, "adapter_config.json");
  const text = await readIfPresent(file);
  if (text === null) return null;
  const fix = "Point to a folder with an adapter as PEFT saves it.";
  const config = parsedText(adapterSchema, text, { code: "model", where: file, fix });
  const state = await readIfPresent(join(adapter, "trainer_state.json"));
  return { file, name: config.base_model_name_or_path || null, weights: state && frozenWeights(state) };
}

function frozenWeights(state: string): string | null {
  try {
    return stateSchema.parse(JSON.parse(state)).exact.frozenWeights ?? null;
  } catch {
    return null; // another program's file of that name
  }
}

/**
 * Whether an adapter is of a checkpoint, as far as its names tell; null where they do not. The same folder or name is;
 * two folders are compared by the bytes of their weights; a name of the hub and a folder, or a folder that is gone, by the
 * last part of their names and what the checkpoint's `config.json` says that it is.
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

/** Without a revision (`owner/name@revision`) and a slash at the end. */
const bare = (source: string): string => source.replace(/@[^@/\\]+$/, "").replace(/[/\\]+$/, "");

const lastPart = (source: string): string => basename(bare(hubName(source) ?? source)).toLowerCase();

/** `owner/name` of a folder in the hub's cache. */
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

/** The files of weights of a folder; null where it is none, or has none. */
async function weightsIn(folder: string): Promise<Weights | null> {
  const names = await readdir(resolve(folder)).catch((): string[] => []);
  const files = names.filter((name) => /^(model|pytorch_model).*\.(safetensors|bin)$/.test(name)).sort();
  return files.length === 0 ? null : { folder: await realpath(resolve(folder)), files };
}

async function hashOf({ folder, files }: Weights): Promise<string> {
  const hash = createHash("sha256");
  for (const file of files) {
    for await (const piece of createReadStream(join(folder, file))) hash.update(piece as Uint8Array);
  }
  return hash.digest("hex");
}

/** The error of an adapter that is of another model. */
export function otherBase(base: AdapterBase, adapter: string, checkpoint: string): PeriodicEvalError {
  return new PeriodicEvalError({
    code: "model",
    where: `${base.file}: base_model_name_or_path`,
    got: `an adapter of ${base.name === null ? "another model" : `"${base.name}"`}`,
    expected: `one of "${checkpoint}", which it is to be put on`,
    fix:
      base.weights === null
        ? "Give the model that it was trained on; if that is this one under another name, write its name there."
        : `Give the model that ${adapter} was trained on: the weights are others.`,
  });
}
