import { resolve, join } from "node:path";
import { configError, isRecord } from "@periodic-eval/contracts/options";
import type { EvaluableModel, OpenCheckpoint, OpenedModel, Json } from "@periodic-eval/core";
import { hashJson } from "@periodic-eval/core/random";
import { openHubCache, openRepository, parseHubId } from "@periodic-eval/data";
import { hashWeightFiles, readIfPresent } from "@periodic-eval/store";

/** A reference model as an entry names it. */
export interface ReferenceSource {
  /** A folder, or `owner/name` on the hub. */
  readonly folder: string;
  readonly adapter: string | null;
  readonly tokenizer: string | null;
}

/** The functions of `@periodic-eval/models` that open reference models. */
export interface ReferenceEngine {
  outlineCheckpoint(
    base: string,
    adapter: string | null,
    options: { readonly tokenizer: string | null },
  ): Promise<{ readonly model: EvaluableModel; weights(): Promise<string | null> }>;
  readonly openCheckpoint: OpenCheckpoint;
}

/** A reference whose weights load late. */
export interface Reference {
  /** Has the tokenizer and the abilities of the reference. A call loads the weights, unless `load` has. */
  readonly model: EvaluableModel;
  /** Finds the hashes of the weights and of the adapter, which the model's identity then has in place of paths. */
  identify(): Promise<void>;
  /** Loads the weights, unless they are loaded. */
  load(): Promise<EvaluableModel>;
  /** Ends this part in the reference. The last part frees the weights; a later call of the model takes part again. */
  close(): Promise<void>;
}

/** The state that all parts of a reference share. */
interface Shared {
  readonly outline: ReturnType<ReferenceEngine["outlineCheckpoint"]>;
  loaded: Promise<OpenedModel> | null;
  hashes: { readonly weights: string | null; readonly adapter: string | null } | null;
  readonly parts: Set<symbol>;
}

/** The references of this process that are in use. */
const references = new Map<ReferenceEngine, Map<string, Shared>>();

/**
 * Returns a part in the reference of a source. Its configuration and tokenizer are opened at once, so that a wrong one is an error
 * before any weights load; the weights load once for all parts and are freed when the last part is closed.
 *
 * @throws PeriodicEvalError `model` for a model that cannot be opened.
 */
export async function sharedReference(source: ReferenceSource, engine: ReferenceEngine): Promise<Reference> {
  const { folder, adapter, tokenizer } = source;
  const key = JSON.stringify([folder, adapter, tokenizer].map((path) => path && resolve(path)));
  const known = references.get(engine) ?? new Map<string, Shared>();
  references.set(engine, known);
  const open = (): Shared => ({
    outline: engine.outlineCheckpoint(folder, adapter, { tokenizer }),
    loaded: null,
    hashes: null,
    parts: new Set(),
  });
  const shared = known.get(key) ?? open();
  known.set(key, shared);
  const forget = () => void (known.get(key) === shared && known.delete(key));
  const part = Symbol(key);
  shared.parts.add(part);
  const { model: outline, weights } = await shared.outline.catch((error: unknown) => {
    // A failed attempt may be repeated.
    forget();
    throw error;
  });
  const load = async (): Promise<EvaluableModel> => {
    shared.parts.add(part);
    const attempt = (shared.loaded ??= engine.openCheckpoint(folder, adapter, { tokenizer }));
    try {
      return (await attempt).model;
    } catch (error) {
      if (shared.loaded === attempt) shared.loaded = null;
      throw error;
    }
  };
  return {
    model: {
      get identity() {
        const { hashes } = shared;
        if (hashes === null) return { ...outline.identity, weights: null, adapter };
        // A folder's name says nothing about its weights: results must stay comparable when it is moved.
        const name = hashes.weights?.startsWith("sha256:") ? "a local folder" : outline.identity.name;
        return { ...outline.identity, name, ...hashes };
      },
      contextLength: outline.contextLength,
      ...(outline.tokenizer && { tokenizer: outline.tokenizer }),
      logLikelihoods: async (...args) => (await load()).logLikelihoods!(...args),
      nextToken: async (...args) => (await load()).nextToken!(...args),
      generate: async (...args) => (await load()).generate!(...args),
    },
    async identify() {
      shared.hashes ??= {
        weights: await weights(),
        adapter: adapter === null ? null : ((await adapterHash(adapter)) ?? adapter),
      };
    },
    load,
    async close() {
      if (!shared.parts.delete(part) || shared.parts.size > 0) return;
      forget();
      const last = shared.loaded;
      shared.loaded = null;
      const loaded = await last?.catch(() => null);
      await loaded?.dispose?.();
    },
  };
}

/** The package is not a dependency, so bundlers and the compiler must not follow this import. */
const modelsPackage: string = "@periodic-eval/models";

/** @throws PeriodicEvalError `config` at `path` if `@periodic-eval/models` is not installed. */
export async function installedEngine(where: string): Promise<ReferenceEngine> {
  try {
    return (await import(/* @vite-ignore */ modelsPackage)) as ReferenceEngine;
  } catch (cause) {
    throw notInstalled(where, "reference", modelsPackage, "opens reference models", cause);
  }
}

/** Returns the error for a package that an entry needs. */
export const notInstalled = (where: string, key: string, name: string, use: string, cause: unknown) =>
  configError({
    where,
    path: [key],
    got: `a value, and ${name}, which ${use}, cannot be imported`,
    expected: "the package",
    fix: `Run npm install ${name}.`,
    cause,
  });

/**
 * Returns a hash of an adapter's weights and configuration, without the path of its base; for an adapter on the hub, its commit.
 * Null for a source that is neither.
 *
 * @throws PeriodicEvalError `model` for an adapter on the hub whose commit cannot be had.
 */
async function adapterHash(adapter: string): Promise<string | null> {
  const settings = await settingsHash(join(adapter, "adapter_config.json"));
  return (await hashWeightFiles(adapter, settings)) ?? commitOf(adapter);
}

/** Returns the hash of an adapter's settings without `base_model_name_or_path`; of the text if it is not JSON. */
async function settingsHash(path: string): Promise<string> {
  const text = (await readIfPresent(path)) ?? "";
  try {
    const config: unknown = JSON.parse(text);
    if (!isRecord(config)) return text;
    const { base_model_name_or_path: _, ...settings } = config;
    return hashJson(settings as Json);
  } catch {
    return text; // Loading the adapter reports it.
  }
}

async function commitOf(source: string): Promise<string | null> {
  const id = parseHubId(source);
  if (id === null) return null;
  const repo = { type: "model" as const, ...id, where: source };
  const commit =
    (await openHubCache(repo).commitOf(id.revision)) ?? (await (await openRepository(repo)).commit());
  return `commit:${commit}`;
}
