import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";
import { makeFolder, readIfPresent, writeFileAtomic } from "@periodic-eval/store";

interface Lines {
  /** Name of the logger. */
  readonly name: string;
  readonly path: string;
  /** The run's folder. Undefined: the run has none, and the lines cannot be checked. */
  readonly run: string | undefined;
  readonly phase: string;
  /** Whether the file has lines of this phase. */
  readonly hasLines: boolean;
}

/**
 * Checks that the lines of a phase belong to this run, before the logger drops any. A file in the run's folder belongs to the run.
 * For a file elsewhere, the run stores the phases that it has written in `<run>/loggers/<name>.files.json`.
 *
 * @throws PeriodicEvalError `config` if the file has lines of this phase from another run.
 */
export async function claimLines({ name, path, run, phase, hasLines }: Lines): Promise<void> {
  if (run === undefined) return;
  const relativePath = relative(resolve(run), resolve(path));
  const isInRun = relativePath !== ".." && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath);
  if (isInRun) return;
  const claimsPath = join(run, "loggers", `${name}.files.json`);
  const text = await readIfPresent(claimsPath);
  const files = JSON.parse(text ?? "{}") as Readonly<Record<string, readonly string[]>>;
  const phases = files[relativePath] ?? [];
  if (phases.includes(phase)) return;
  if (hasLines) {
    throw new PeriodicEvalError({
      code: "config",
      where: path,
      got: `lines of phase "${phase}" that a run other than ${run} wrote`,
      expected: "a file of this run",
      fix: "Give each run its own path, for example in its folder, or move the file away.",
    });
  }
  await makeFolder(dirname(claimsPath));
  await writeFileAtomic(
    claimsPath,
    `${JSON.stringify({ ...files, [relativePath]: [...phases, phase] }, null, 2)}\n`,
  );
}
