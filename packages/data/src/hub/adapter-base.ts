import { join, readdir, realpath, resolve, stat } from "@periodic-eval/store/platform";
import * as z from "zod";
import type { Awaitable, PeriodicEvalError } from "@periodic-eval/contracts";
import { isRecord, modelError, printable, abbreviated, quoteValue } from "@periodic-eval/contracts/options";
import { hashFiles, readIfPresent } from "@periodic-eval/store";
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
 * Checks that an adapter was trained on a base model, as far as weights are known: by the hash of the base's weights in
 * `trainer_state.json` of our trainers, once the base is open; otherwise by the bytes of two folders. Names alone refuse
 * nothing: a path, or the name of another model or of a quantized copy, becomes a warning, because loading the adapter checks its
 * modules and shapes. An adapter that names no base, and an adapter on the hub, is not checked.
 *
 * @param adapter A folder with `adapter_config.json`, or `owner/name` on the hub.
 * @param base A folder, or `owner/name` on the hub.
 * @returns Compares the hashes, and warns. Its argument returns the hash of the base's weights; null if unknown.
 * @throws PeriodicEvalError `model` for an adapter of another model.
 */
export async function checkAdapterBase(
  adapter: string,
  base: string,
): Promise<(fingerprint: () => Awaitable<string | null>) => Promise<void>> {
  const recorded = await readAdapterBase(adapter);
  if (recorded === null) return () => Promise.resolve();
  const { isOther, note } = await compareBases(recorded.name, base);
  if (isOther && recorded.weights === null) throw otherBase(recorded, adapter, base);
  return async (fingerprint) => {
    const weights = recorded.weights === null ? null : await fingerprint();
    if (weights === null ? isOther : weights !== recorded.weights) throw otherBase(recorded, adapter, base);
    if (weights === null && note !== null) warnOnce(`${adapter} was trained on ${note}`);
  };
}

/** The adapters of a run have the same base. */
const warned = new Set<string>();

function warnOnce(text: string): void {
  const key = text.slice(text.indexOf(" was trained on"));
  if (warned.has(key)) return;
  warned.add(key);
  console.warn(printable(`[periodic-eval] ${text}`));
}

/** Reads the base of an adapter; returns null if the adapter is not a local folder, or has no configuration. */
async function readAdapterBase(adapter: string): Promise<AdapterBase | null> {
  const file = join(adapter, "adapter_config.json");
  const text = await readIfPresent(file);
  if (text === null) return null;
  const wrong = (where: string, got: string, expected: string) =>
    modelError(where, got, expected, "Name a folder with an adapter saved by PEFT.");
  const config = parsed(text);
  if (config === undefined) throw wrong(file, text.trim() === "" ? "an empty file" : "invalid JSON", "JSON");
  const key = "base_model_name_or_path";
  const name: unknown = isRecord(config) ? (config[key] ?? null) : config;
  if (name !== null && typeof name !== "string")
    throw wrong(`${file}: ${key}`, abbreviated(quoteValue(name), 80), "a string or null");
  const state = stateSchema.safeParse(parsed(await readIfPresent(join(adapter, "trainer_state.json"))));
  return { file, name: name || null, weights: state.data?.exact.frozenWeights ?? null };
}

/** Another program's file may have the name of ours. */
const stateSchema = z.object({ exact: z.object({ frozenWeights: z.string().nullish() }) });

/** Returns the value of a JSON text, or undefined if the text is null or not JSON. */
function parsed(text: string | null): unknown {
  try {
    return JSON.parse(text ?? "");
  } catch {
    return undefined;
  }
}

interface Comparison {
  /** Whether the weights of two folders differ. */
  readonly isOther: boolean;
  /** A note for the reader about the base of the adapter; null for the same name or weights. */
  readonly note: string | null;
}

const same: Comparison = { isOther: false, note: null };

/** Compares the name of an adapter's base with a base model. */
async function compareBases(name: string | null, base: string): Promise<Comparison> {
  if (name === null || bare(name) === bare(base)) return same;
  const [trained, other] = [await weightsIn(name), await weightsIn(base)];
  if (trained !== null && other !== null) {
    if (trained.folder === other.folder || (await hashOf(trained)) === (await hashOf(other))) return same;
    // The hub's copy of a model may have another dtype.
    if (!trained.isOfHub && !other.isOfHub) return { isOther: true, note: null };
  }
  const known = [base, hubNameOf(base), await nameInConfig(base)].filter((is) => is !== null).map(modelOf);
  if (/^[\w.-]+\/[\w.-]+$/.test(bare(name)) && known.includes(modelOf(name))) return same;
  const advice = "check that it is the same model: only its modules and shapes are compared";
  return {
    isOther: false,
    note: `${JSON.stringify(abbreviated(name, 200))} and is measured on ${base}: ${advice}`,
  };
}

/** Removes a revision (`owner/name@revision`) and a trailing slash. */
const bare = (source: string): string => source.replace(/@[^@/\\]+$/, "").replace(/[/\\]+$/, "");

/** Returns the last part of a name or a path, in lower case. */
const modelOf = (source: string): string => bare(source).split(/[/\\]/).at(-1)!.toLowerCase();

async function nameInConfig(folder: string): Promise<string | null> {
  const config = parsed(await readIfPresent(join(folder, "config.json")));
  const name = isRecord(config) ? config["_name_or_path"] : null;
  return typeof name === "string" && name !== "" ? name : null;
}

interface Weights {
  readonly folder: string;
  readonly files: readonly string[];
  readonly isOfHub: boolean;
}

/** Returns the weight files of a folder, or of a hub model in the cache; null if there are none. */
async function weightsIn(source: string): Promise<Weights | null> {
  const local = await weightsInFolder(source);
  const id = local === null ? parseHubId(source) : null;
  if (id === null) return local;
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
function otherBase({ file, name, weights }: AdapterBase, adapter: string, base: string): PeriodicEvalError {
  const got = `an adapter of ${name === null ? "another model" : `"${name}"`}`;
  const fix =
    weights === null
      ? "Use the model that the adapter was trained on: the weights in the two folders differ."
      : `Use the model that ${adapter} was trained on: the weights differ.`;
  return modelError(`${file}: base_model_name_or_path`, got, `an adapter of "${base}"`, fix);
}
