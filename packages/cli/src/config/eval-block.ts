import type { ValuePath } from "@periodic-eval/core";
import { readConfigFile, type ConfigFile } from "@periodic-eval/core/config";
import { isRecord } from "@periodic-eval/contracts/options";
import { fileError } from "./config-place.ts";
import { resolveBlockPaths, valueAt } from "./config-paths.ts";

export interface EvalBlock {
  readonly file: ConfigFile;
  /** Path of the block in the file. */
  readonly at: ValuePath;
  /** The block with absolute paths. A value that is not an object is returned as it is, for core to report. */
  readonly block: unknown;
}

/** Keys under which a file may hold the block. */
const possiblePaths: readonly ValuePath[] = [["eval", "periodic_eval"], ["periodic_eval"]];

/** Returns the paths of the `periodic_eval` blocks in a file. An empty list means that the file itself may be the block. */
export const blockPaths = ({ value }: ConfigFile): readonly ValuePath[] =>
  possiblePaths.filter((path) => valueAt(value, path) !== undefined);

/** Says that a training file measures nothing. */
export const noBlockText = (path: string): string =>
  `${path} has no periodic_eval block: nothing is measured. Add \`periodic_eval: {}\` to measure capability.`;

/** Whether a file describes a training, and not just a `periodic_eval` block, whose `phases` is a map. */
export const isTrainingFile = ({ value }: ConfigFile): boolean =>
  isRecord(value) && Array.isArray(value["phases"]);

/** @throws PeriodicEvalError `config` if the file has two blocks. */
export function refuseTwoBlocks(file: ConfigFile): void {
  const [path, other] = blockPaths(file);
  if (path === undefined || other === undefined) return;
  throw fileError(file, other, {
    got: `a second block next to ${path.join(".")}`,
    expected: "only one of the two",
    fix: "Merge both blocks into one.",
  });
}

/**
 * Reads the `periodic_eval` block of a file as `train` does: relative paths are relative to the file.
 *
 * @throws PeriodicEvalError `config` with file and line if the file is not YAML or has two blocks.
 */
export async function readEvalBlock(path: string): Promise<EvalBlock> {
  const file = await readConfigFile(path);
  refuseTwoBlocks(file);
  const at = blockPaths(file)[0] ?? [];
  const block = valueAt(file.value, at);
  return { file, at, block: isRecord(block) ? resolveBlockPaths(file, at, block) : block };
}
