import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** A checkpoint in a folder, complete or not. */
export interface Candidate {
  readonly name: string;
  readonly step: number;
  /** The folder of the model. */
  readonly path: string;
}

export const stepPlaceholder = "{step}";

/** Returns the checkpoints among the names in a folder, in order of steps. */
export function candidatesOf(
  folder: string,
  names: readonly string[],
  pattern?: string,
): readonly Candidate[] {
  return names
    .flatMap((name) => {
      const parsed = stepOf(name, pattern);
      return parsed === null ? [] : [{ name, step: parsed.step, path: join(folder, name, ...parsed.rest) }];
    })
    .toSorted((a, b) => a.step - b.step);
}

/** Returns the checkpoints of a folder, complete or not, in order of steps; none if the folder cannot be listed. */
export async function listCheckpoints(folder: string, pattern?: string): Promise<readonly Candidate[]> {
  const names = await readdir(folder).catch(() => []);
  return candidatesOf(folder, names, pattern);
}

/** Returns the step in a folder's name, and the path to the model in the folder; null for another folder. */
function stepOf(
  name: string,
  pattern: string | undefined,
): { readonly step: number; readonly rest: readonly string[] } | null {
  const [first = "", ...rest] = pattern?.split("/") ?? [];
  const [before, behind] = first
    .split(stepPlaceholder)
    .map((text) => text.replaceAll(/[^\w-]/g, String.raw`\$&`));
  const digits = (
    pattern === undefined ? /^(?:checkpoint-|step_)(\d+)$/ : new RegExp(`^${before}(\\d+)${behind}$`)
  ).exec(name)?.[1];
  const at = Number(digits);
  return Number.isSafeInteger(at) ? { step: at, rest } : null;
}
