import { basename, join, readdir, realpath, resolve, stat } from "#platform";
import * as z from "zod";
import type { Awaitable } from "../contracts/json.ts";
import { PeriodicEvalError } from "../errors.ts";
import { isRecord } from "../internal/is-record.ts";
import { abbreviated, quoteValue } from "../internal/quote-value.ts";
import { hashFiles } from "../snapshots/storage/hash-files.ts";
import { readIfPresent } from "../snapshots/storage/read-file.ts";
import { hubNameOf, openHubCache } from "./cache.ts";
import { parseHubId } from "./hub-id.ts";

/** The base model of an adapter, according to the adapter's folder. */
interface AdapterBase {
  readonly file: string;
  /** PEFT's `base_model_name_or_path`; null if missing. */
  readonly name: string | null;
  /** Hash of the base's weights, from a checkpoint of our trainers; null for other adapters. */
  readonly weights: string | null;
}

/**
 * Checks that an adapter was trained on a base model. Equal folders or names match. Two folders are compared by the bytes of
 * their weights, and so are a folder and a hub model that is in the cache. Other names are compared by their last segments, and
 * with the name in the base's `config.json`. If the adapter's folder holds the hash of the base's weights (`trainer_state.json`
 * of our trainers), the hash decides instead, once the base is open. An adapter that names no base, and an adapter on the hub, is
 * not checked.
 *
 * @param adapter A folder with `adapter_config.json`, or `owner/name` on the hub.
 * @param base A folder, or `owner/name` on the hub.
 * @returns Compares the hashes. Its argument returns the hash of the base's weights; null if unknown.
 * @throws PeriodicEvalError `model` for an adapter of another model.
 */
export async function checkAdapterBase(
  adapter: string,
  base: string,
): Promise<(fingerprint: () => Awaitable<string | null>) => Promise<void>> {
  const recorded = await readAdapterBase(adapter);
  const isSame = recorded === null ? null : await isOfCheckpoint(recorded, base);
  if (recorded === null || (recorded.weights === null && isSame !== false)) return () => Promise.resolve();
  if (recorded.weights === null) throw otherBase(recorded, adapter, base);
  return async (fingerprint) => {
    const weights = await fingerprint();
    const isOther = weights === null ? isSame === false : weights !== recorded.weights;
    if (isOther) throw otherBase(recorded, adapter, base);
  };
}

/** Reads the base of an adapter; returns null if the adapter is not a local folder, or has no configuration. */
async function readAdapterBase(adapter: string): Promise<AdapterBase | null> {
  const file = join(adapter, "adapter_config.json");
  const text = await readIfPresent(file);
  if (text === null) return null;
  const state = await readIfPresent(join(adapter, "trainer_state.json"));
  return { file, name: baseName(text, file), weights: state && frozenWeights(state) };
}

const stateSchema = z.object({ exact: z.object({ frozenWeights: z.string().nullish() }) });

function baseName(text: string, file: string): string | null {
  const fix = "Name a folder with an adapter saved by PEFT.";
  const key = "base_model_name_or_path";
  let config: unknown;
  try {
    config = JSON.parse(text);
  } catch (cause) {
    const got = text.trim() === "" ? "an empty file" : "invalid JSON";
    throw new PeriodicEvalError({ code: "model", where: file, got, expected: "JSON", fix, cause });
  }
  const name: unknown = isRecord(config) ? (config[key] ?? null) : config;
  if (name === null || typeof name === "string") return name || null;
  throw new PeriodicEvalError({
    code: "model",
    where: `${file}: ${key}`,
    path: [key],
    got: abbreviated(quoteValue(name), 80),
    expected: "a string or null",
    fix,
  });
}

function frozenWeights(state: string): string | null {
  try {
    return stateSchema.parse(JSON.parse(state)).exact.frozenWeights ?? null;
  } catch {
    return null; // another program's file with this name
  }
}

/** Whether an adapter belongs to a base model, judged by names and the bytes of weights; null if the adapter names none. */
async function isOfCheckpoint({ name }: AdapterBase, checkpoint: string): Promise<boolean | null> {
  if (name === null) return null;
  if (bare(name) === bare(checkpoint)) return true;
  const [one, other] = [await weightsIn(name), await weightsIn(checkpoint)];
  if (one !== null && other !== null) {
    if (one.folder === other.folder || (await hashOf(one)) === (await hashOf(other))) return true;
    // The hub's copy of a model may have another dtype, so its name may still match.
    if (!one.isOfHub && !other.isOfHub) return false;
  }
  const known = [checkpoint, hubNameOf(checkpoint), await nameInConfig(checkpoint)].filter(
    (is) => is !== null,
  );
  return known.some((is) => lastPart(is) === lastPart(name));
}

/** Removes a revision (`owner/name@revision`) and a trailing slash. */
const bare = (source: string): string => source.replace(/@[^@/\\]+$/, "").replace(/[/\\]+$/, "");

const lastPart = (source: string): string => basename(bare(hubNameOf(source) ?? source)).toLowerCase();

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
  readonly isOfHub: boolean;
}

/** Returns the weight files of a folder, or of a hub model in the cache; null if there are none. */
async function weightsIn(source: string): Promise<Weights | null> {
  const own = await weightsInFolder(source);
  const id = own === null ? parseHubId(source) : null;
  if (id === null) return own;
  const cache = openHubCache({ type: "model", name: id.name });
  const commit = await cache.commitOf(id.revision);
  return commit === null ? null : weightsInFolder(cache.snapshot(commit));
}

async function weightsInFolder(source: string): Promise<Weights | null> {
  const names = await readdir(resolve(source)).catch((): string[] => []);
  const files = names.filter((name) => /^(model|pytorch_model).*\.(safetensors|bin)$/.test(name)).sort();
  if (files.length === 0) return null;
  return { folder: await realpath(resolve(source)), files, isOfHub: hubNameOf(resolve(source)) !== null };
}

/** Hashes of weights by the names, sizes and times of their files: each adapter of a run asks for those of its base again. */
const hashes = new Map<string, Promise<string>>();

async function hashOf({ folder, files }: Weights): Promise<string> {
  const paths = files.map((file) => join(folder, file));
  const stats = await Promise.all(paths.map((path) => stat(path)));
  const key = JSON.stringify(paths.map((path, i) => [path, stats[i]!.size, stats[i]!.mtimeMs]));
  const hash = hashes.get(key) ?? hashFiles(paths);
  hashes.set(key, hash);
  return hash.catch((error: unknown) => {
    hashes.delete(key);
    throw error;
  });
}

/** Returns the error for an adapter of another model. */
function otherBase(base: AdapterBase, adapter: string, checkpoint: string): PeriodicEvalError {
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
