import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { PeriodicEvalError } from "@periodic-eval/core";

interface Lines {
  /** Of the logger. */
  readonly name: string;
  readonly path: string;
  /** The run's folder; undefined where it has none, and nothing can be told. */
  readonly run: string | undefined;
  readonly phase: string;
  /** Whether the file has lines of a phase of this name. */
  readonly isThere: boolean;
}

/**
 * Makes sure that lines of a phase are this run's before any is dropped. A file in the run's folder is its own; of one
 * elsewhere the run keeps in `<run>/loggers/<name>.files.json` which phases it has written there.
 *
 * @throws PeriodicEvalError `config` where lines of such a phase are there, and not this run's.
 */
export function claimLines({ name, path, run, phase, isThere }: Lines): void {
  if (run === undefined) return;
  const to = relative(resolve(run), resolve(path));
  if (to !== ".." && !to.startsWith(`..${sep}`) && !isAbsolute(to)) return;
  const kept = join(run, "loggers", `${name}.files.json`);
  const files = existsSync(kept)
    ? (JSON.parse(readFileSync(kept, "utf8")) as Readonly<Record<string, readonly string[]>>)
    : {};
  const own = files[to] ?? [];
  if (own.includes(phase)) return;
  if (isThere) {
    throw new PeriodicEvalError({
      code: "config",
      where: path,
      got: `lines of a phase "${phase}" that the run in ${run} has not written`,
      expected: "a file of this run",
      fix: "Give each run a path of its own, as one in its folder, or move the file away.",
    });
  }
  mkdirSync(dirname(kept), { recursive: true });
  writeFileSync(kept, `${JSON.stringify({ ...files, [to]: [...own, phase] }, null, 2)}\n`);
}
