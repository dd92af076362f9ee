import { readConfigFile, type ConfigFile, type ValuePath } from "@periodic-eval/core/config-file";
import { blockAt, isMap } from "./config-paths.ts";

export interface EvalBlock {
  readonly file: ConfigFile;
  /** Where it stands in the file. */
  readonly at: ValuePath;
  /** With absolute paths; what is no map is left to core to refuse. */
  readonly block: unknown;
}

/** Where a block may stand; the file itself may be one. */
const places: readonly ValuePath[] = [["eval", "periodic_eval"], ["periodic_eval"], []];

/**
 * The `periodic_eval` block of a file, read as `train` reads it: relative paths are relative to the file.
 *
 * @throws PeriodicEvalError `config` with file and line for what is no YAML.
 */
export async function readEvalBlock(path: string): Promise<EvalBlock> {
  const file = await readConfigFile(path);
  const valueAt = (at: ValuePath) =>
    at.reduce<unknown>((value, key) => (isMap(value) ? value[key] : undefined), file.value);
  const at = places.find((one) => valueAt(one) !== undefined)!;
  const block = valueAt(at);
  return { file, at, block: isMap(block) ? blockAt(file, at, block) : block };
}
