import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { canonicalJson, messageOf, PeriodicEvalError, type Json } from "@periodic-eval/core";
import { readIfPresent, writeWhole } from "@periodic-eval/core/snapshots";
import { jsonText } from "../harness/run-files.ts";
import { refused } from "./refusals.ts";
import { loraIdPattern, type InitBody } from "./wire.ts";

/** What an adapter is trained with, from its first update to its last; `engine` is what it is an adapter of. */
export type AdapterSettings = Pick<InitBody, "lora_id" | "training" | "steps_per_batch" | "seed">;

type AdapterFile = AdapterSettings & { readonly schema_version: 1; readonly engine: Json };

/** The adapters of a service: a folder each under its root, with `adapter.json` and the checkpoints. */
export interface AdapterStore {
  folderOf(loraId: string): string;
  /**
   * Null where there is none of this name, which may be any text.
   *
   * @throws HTTPException 409 for an adapter of another model or engine; PeriodicEvalError `store` for a damaged file.
   */
  read(loraId: string): Promise<AdapterSettings | null>;
  /**
   * Keeps a new adapter's settings.
   *
   * @throws HTTPException 409 where there is one of this name with others.
   */
  keep(settings: AdapterSettings): Promise<AdapterSettings>;
  names(): Promise<readonly string[]>;
}

export function adapterStore(root: string, engine: Json): AdapterStore {
  const folderOf = (loraId: string) => join(root, loraId);
  const pathOf = (loraId: string) => join(folderOf(loraId), "adapter.json");

  async function read(loraId: string): Promise<AdapterSettings | null> {
    // Nothing else comes near a path.
    if (!loraIdPattern.test(loraId)) return null;
    const text = await readIfPresent(pathOf(loraId));
    if (text === null) return null;
    const { schema_version: _, engine: trained, ...settings } = fileOf(pathOf(loraId), text);
    differing({ engine: trained, lora_id: settings.lora_id }, { engine, lora_id: loraId }, loraId);
    return settings;
  }

  return {
    folderOf,
    read,
    async keep(settings) {
      const kept = await read(settings.lora_id);
      if (kept !== null) {
        differing(kept, settings, settings.lora_id);
        return kept;
      }
      await mkdir(folderOf(settings.lora_id), { recursive: true });
      const file: AdapterFile = { schema_version: 1, ...settings, engine };
      await writeWhole(pathOf(settings.lora_id), jsonText(file));
      return settings;
    },
    async names() {
      const found: string[] = [];
      for (const { name } of await readdir(root, { withFileTypes: true }))
        if (loraIdPattern.test(name) && (await readIfPresent(pathOf(name))) !== null) found.push(name);
      return found.sort();
    },
  };
}

function differing(kept: object, asked: object, loraId: string): void {
  const of = (value: object, key: string) =>
    canonicalJson((value as Readonly<Record<string, Json>>)[key] ?? null);
  const keys = Object.keys(asked).filter((key) => of(kept, key) !== of(asked, key));
  if (keys.length === 0) return;
  throw refused(409, "adapter_differs", {
    where: `the adapter ${loraId}`,
    got: `another ${keys.join(", ")}`,
    expected: "what it was begun with",
    fix: "Choose another lora_id for another training.",
  });
}

function fileOf(path: string, text: string): AdapterFile {
  try {
    return JSON.parse(text) as AdapterFile;
  } catch (cause) {
    throw new PeriodicEvalError({
      code: "store",
      where: path,
      got: messageOf(cause),
      expected: "JSON",
      fix: "Remove the adapter's folder to train it anew.",
      cause,
    });
  }
}
