import { PeriodicEvalError } from "@periodic-eval/core";
import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/core/config";
import { blockAt, isMap, valueAt } from "./config-paths.ts";

export interface EvalBlock {
  readonly file: ConfigFile;
  /** Where it stands in the file. */
  readonly at: ValuePath;
  /** With absolute paths; what is no map is left to core to refuse. */
  readonly block: unknown;
}

/** Where a block may stand in a file that holds more. */
const places: readonly ValuePath[] = [["eval", "periodic_eval"], ["periodic_eval"]];

/** Where a `periodic_eval` block stands in a file; nowhere, where the file itself may be one. */
export const placesOfBlock = ({ value }: ConfigFile): readonly ValuePath[] =>
  places.filter((path) => valueAt(value, path) !== undefined);

/** @throws PeriodicEvalError `config` for a file with two. */
export function refuseTwoBlocks(file: ConfigFile): void {
  const [place, other] = placesOfBlock(file);
  if (place === undefined || other === undefined) return;
  throw new PeriodicEvalError({
    code: "config",
    where: file.where(other),
    got: `a block beside that of ${place.join(".")}`,
    expected: "one of the two",
    fix: "Write all into one of them.",
  });
}

/**
 * The `periodic_eval` block of a file, read as `train` reads it: relative paths are relative to the file.
 *
 * @throws PeriodicEvalError `config` with file and line for what is no YAML, or has two blocks.
 */
export async function readEvalBlock(path: string): Promise<EvalBlock> {
  const file = await readConfigFile(path);
  refuseTwoBlocks(file);
  const at = placesOfBlock(file)[0] ?? [];
  const block = valueAt(file.value, at);
  return { file, at, block: isMap(block) ? blockAt(file, at, block) : block };
}
