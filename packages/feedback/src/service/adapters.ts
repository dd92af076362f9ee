import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { PeriodicEvalError, type Json } from "@periodic-eval/core";
import { canonicalJson } from "@periodic-eval/core/random";
import { errorMessage, quoteValue, describeZodIssue } from "@periodic-eval/core/internal";
import { readIfPresent, writeFileAtomic, nodeFiles } from "@periodic-eval/core/snapshots";
import { HTTPException } from "hono/http-exception";
import * as z from "zod";
import { jsonText } from "../harness/run-files.ts";
import { refused } from "./refusals.ts";
import { initSchema, loraIdPattern, type InitBody } from "./wire.ts";

/** Training settings of an adapter. They are the same for all its updates. */
export type AdapterSettings = Pick<InitBody, "lora_id" | "training" | "steps_per_batch" | "seed">;

type AdapterFile = AdapterSettings & { readonly schema_version: 1; readonly engine: Json };

const fileSchema = z.strictObject({
  ...initSchema.omit({ base_model: true }).required().shape,
  schema_version: z.literal(1),
  engine: z.json(),
});

/** The adapters of a service. Each has a folder under the root, with `adapter.json` and the checkpoints. */
export interface AdapterStore {
  folderOf(loraId: string): string;
  /**
   * Returns the settings of an adapter; null for an unknown name. Accepts any string, including hostile ones.
   *
   * @throws HTTPException 409 for an adapter of another model or engine; PeriodicEvalError `store` for a damaged file.
   */
  read(loraId: string): Promise<AdapterSettings | null>;
  /** @throws HTTPException 409 if the adapter exists with different settings. */
  check(settings: AdapterSettings): Promise<void>;
  /** Writes the settings of a new adapter. Call `check` first. */
  keep(settings: AdapterSettings): Promise<void>;
  /** Returns the names of usable adapters. Omits damaged ones and those of another model or engine. */
  names(): Promise<readonly string[]>;
}

export function adapterStore(root: string, engine: Json): AdapterStore {
  const folderOf = (loraId: string) => join(root, loraId);
  const pathOf = (loraId: string) => join(folderOf(loraId), "adapter.json");

  async function read(loraId: string): Promise<AdapterSettings | null> {
    // Only a valid name may become part of a path.
    if (!loraIdPattern.test(loraId)) return null;
    const text = await readIfPresent(pathOf(loraId));
    if (text === null) return null;
    const { schema_version: _, engine: trained, ...settings } = fileOf(loraId, text);
    checkEqual({ engine: trained, lora_id: settings.lora_id }, { engine, lora_id: loraId }, loraId);
    return settings;
  }

  const isUsable = (name: string): Promise<boolean> =>
    read(name).then(
      (settings) => settings !== null,
      (error: unknown) => {
        // A request for this adapter reports the error.
        if (PeriodicEvalError.is(error) || error instanceof HTTPException) return false;
        throw error;
      },
    );

  return {
    folderOf,
    read,
    async check(settings) {
      const kept = await read(settings.lora_id);
      if (kept !== null) checkEqual(kept, settings, settings.lora_id);
    },
    async keep(settings) {
      if ((await read(settings.lora_id)) !== null) return;
      await nodeFiles.makeFolder(folderOf(settings.lora_id));
      const file: AdapterFile = { schema_version: 1, ...settings, engine };
      await writeFileAtomic(pathOf(settings.lora_id), jsonText(file));
    },
    async names() {
      const found: string[] = [];
      for (const { name } of await readdir(root, { withFileTypes: true }))
        if (await isUsable(name)) found.push(name);
      return found.sort();
    },
  };
}

function checkEqual(kept: object, asked: object, loraId: string): void {
  const of = (value: object, key: string) =>
    canonicalJson((value as Readonly<Record<string, Json>>)[key] ?? null);
  const keys = Object.keys(asked).filter((key) => of(kept, key) !== of(asked, key));
  if (keys.length === 0) return;
  throw refused(409, "adapter_differs", {
    where: `the adapter ${loraId}`,
    got: `different values of ${keys.join(", ")}`,
    expected: "the settings it was created with",
    fix: "Choose another lora_id.",
  });
}

function fileOf(loraId: string, text: string): AdapterFile {
  const damaged = (got: string, expected: string, cause: unknown) =>
    new PeriodicEvalError({
      code: "store",
      // The error omits the path, because clients on the network must not see it.
      where: `adapter.json of the adapter ${loraId}`,
      got,
      expected,
      fix: "Remove the adapter's folder to train it again.",
      cause,
    });
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw damaged(errorMessage(cause), "JSON", cause);
  }
  const result = fileSchema.safeParse(value);
  if (result.success) return result.data;
  const { path, value: got, expected } = describeZodIssue(result.error, value);
  throw damaged(
    `${path.length === 0 ? "" : `${path.join(".")}: `}${got === undefined ? "undefined" : quoteValue(got)}`,
    expected,
    result.error,
  );
}
