import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Json } from "@periodic-eval/core";
import { isMissingFile } from "@periodic-eval/data";
import * as z from "zod";
import { parseJson } from "../results/parse-json.ts";

/** The configuration that is stored with a checkpoint. Null: the folder has no such file, or the source is no folder here: a
 * name on the hub, or one that only `openModel` knows, which `run` opens. */
export interface CheckpointConfig {
  /** `config.json` of the checkpoint. */
  readonly model: Json;
  /** `adapter_config.json` of the adapter. */
  readonly adapter: Json;
  /** The training as the trainer stored it: `exact` of `trainer_state.json`, of the adapter if there is one. */
  readonly training: Json;
}

/**
 * Reads the configuration of a checkpoint, without its weights.
 *
 * @throws PeriodicEvalError `model` for a file that is not JSON.
 */
export function checkpointConfig(folder: string, adapter: string | null): CheckpointConfig {
  const tuned = adapter ?? folder;
  return {
    model: objectIn(join(folder, "config.json")),
    adapter: objectIn(join(tuned, "adapter_config.json")),
    training: objectIn(join(tuned, "trainer_state.json"))?.["exact"] ?? null,
  };
}

const schema = z.record(z.string(), z.json(), "an object");

function objectIn(path: string): z.infer<typeof schema> | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (isMissingFile(error)) return null;
    throw error;
  }
  return parseJson(schema, text, {
    code: "model",
    where: path,
    fix: "Restore the file, or save the checkpoint again.",
  });
}
