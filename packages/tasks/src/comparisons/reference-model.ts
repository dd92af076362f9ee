import { resolve } from "node:path";
import type { EvaluableModel, OpenCheckpoint, OpenedModel } from "@periodic-eval/core";
import { configError } from "@periodic-eval/contracts/options";
import { adapterHash } from "./reference-files.ts";

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

/** A reference that all its parts share. */
interface Opened extends Pick<Reference, "identify" | "load"> {
  /** Returns the reference as a model whose calls load the weights with `load`. */
  modelWith(load: Reference["load"]): EvaluableModel;
  dispose(): Promise<void>;
}

interface Entry {
  readonly opened: Promise<Opened>;
  parts: number;
}

/** The references of this process that are in use. */
const references = new Map<ReferenceEngine, Map<string, Entry>>();

/**
 * Returns a part in the reference of a source. Its weights load once for all parts and are freed when the last part is closed.
 *
 * @throws PeriodicEvalError `model` for a model that cannot be opened.
 */
export async function sharedReference(source: ReferenceSource, engine: ReferenceEngine): Promise<Reference> {
  const places = [source.folder, source.adapter, source.tokenizer];
  const key = JSON.stringify(places.map((place) => place && resolve(place)));
  const known = references.get(engine) ?? new Map<string, Entry>();
  references.set(engine, known);
  const entry = known.get(key) ?? { opened: openReference(source, engine), parts: 0 };
  known.set(key, entry);
  let isOpen = false;
  const take = (): void => {
    if (!isOpen) entry.parts += 1;
    isOpen = true;
  };
  take();
  // A failed attempt may be repeated.
  const { modelWith, load, identify, dispose } = await entry.opened.catch((error: unknown) => {
    if (known.get(key) === entry) known.delete(key);
    throw error;
  });
  const part = async () => {
    take();
    return load();
  };
  return {
    model: modelWith(part),
    identify,
    load: part,
    async close() {
      if (!isOpen) return;
      isOpen = false;
      entry.parts -= 1;
      if (entry.parts > 0) return;
      if (known.get(key) === entry) known.delete(key);
      await dispose();
    },
  };
}

/** Opens the configuration and tokenizer of a reference model, so that a wrong one is an error before any weights load. */
async function openReference(source: ReferenceSource, engine: ReferenceEngine): Promise<Opened> {
  const { folder, adapter, tokenizer } = source;
  const outline = await engine.outlineCheckpoint(folder, adapter, { tokenizer });
  let opened: Promise<OpenedModel> | null = null;
  const load = async (): Promise<EvaluableModel> => {
    opened ??= engine.openCheckpoint(folder, adapter, { tokenizer });
    const attempt = opened;
    try {
      return (await attempt).model;
    } catch (error) {
      // A failed attempt may be repeated.
      if (opened === attempt) opened = null;
      throw error;
    }
  };
  let hashes: { readonly weights: string | null; readonly adapter: string | null } | null = null;
  const modelWith: Opened["modelWith"] = (loadPart) => ({
    get identity() {
      if (hashes === null) return { ...outline.model.identity, weights: null, adapter };
      // A folder's name says nothing about its weights: results must stay comparable when it is moved.
      const name = hashes.weights?.startsWith("sha256:") ? "a local folder" : outline.model.identity.name;
      return { ...outline.model.identity, name, ...hashes };
    },
    contextLength: outline.model.contextLength,
    ...(outline.model.tokenizer && { tokenizer: outline.model.tokenizer }),
    logLikelihoods: async (...args) => (await loadPart()).logLikelihoods!(...args),
    nextToken: async (...args) => (await loadPart()).nextToken!(...args),
    generate: async (...args) => (await loadPart()).generate!(...args),
  });
  return {
    modelWith,
    load,
    async identify() {
      hashes ??= {
        weights: await outline.weights(),
        adapter: adapter === null ? null : ((await adapterHash(adapter)) ?? adapter),
      };
    },
    async dispose() {
      const last = opened;
      opened = null;
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
