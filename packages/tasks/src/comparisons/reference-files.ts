import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { openHubCache, openRepository, parseHubId } from "@periodic-eval/data";
import { isRecord } from "@periodic-eval/contracts/options";
import { hashJson } from "@periodic-eval/core/random";
import { hashFiles, readIfPresent } from "@periodic-eval/store";
import type { Json } from "@periodic-eval/core";

/**
 * Returns a hash of an adapter's weights and configuration, without the path of its base; for an adapter on the hub, its commit.
 * Null for a source that is neither.
 *
 * @throws PeriodicEvalError `model` for an adapter on the hub whose commit cannot be had.
 */
export async function adapterHash(adapter: string): Promise<string | null> {
  const files = await filesIn(adapter);
  if (files === null) return commitOf(adapter);
  const settings = await settingsHash(join(adapter, "adapter_config.json"));
  return hashFiles(
    weightNames(files).map((name) => join(adapter, name)),
    settings,
  );
}

const filesIn = (folder: string): Promise<readonly string[] | null> => readdir(folder).catch(() => null);

const weightNames = (files: readonly string[]): readonly string[] =>
  files.filter((name) => name.endsWith(".safetensors")).toSorted();

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
