import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import {
  PeriodicEvalError,
  type Logger,
  type PhaseBegin,
  type RunProgress,
  type Snapshot,
} from "@periodic-eval/core";
import { makeFolder, readIfPresent, writeFileAtomic } from "@periodic-eval/store";
import type { LineFile } from "./line-file.ts";

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
async function claimLines({ name, path, run, phase, hasLines }: Lines): Promise<void> {
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

/** Converts metrics and snapshots to lines, and lines to their keys. */
interface LineFormat {
  readonly name: string;
  train(metrics: Readonly<Record<string, number>>, at: RunProgress): readonly string[];
  snapshot(snapshot: Snapshot): readonly string[];
  /** Returns the key of a line; `id` is null for training metrics. Returns null for an unknown line, which is kept. */
  read(line: string): { readonly phase: string; readonly step: number; readonly id: string | null } | null;
}

/**
 * Returns a logger over a file of lines. When a phase resumes or starts over, it drops the lines of later steps; the session
 * logs the snapshots that are still valid again. A snapshot is written once grading has finished, and replaces an earlier
 * measurement at its step, so each snapshot appears once, and snapshots that a killed process did not log are added. Metrics
 * of a step are written each time they are logged: once by the loop, and once for each callback or `session.log` that adds
 * some. They are not buffered.
 */
export function lineLogger(path: string, file: LineFile, format: LineFormat): Logger {
  // Report a wrong path before training starts.
  file.checkFormat();
  /** The error for a file that this run must not write. */
  let rejection: { readonly error: unknown } | null = null;
  /** Lines in the file, by snapshot. */
  const loggedLines = new Map<string, readonly string[]>();

  /** Rejects a file of another format or run, until the file passes this check in a later phase. */
  async function claim({ phase, run }: PhaseBegin): Promise<void> {
    rejection = null;
    try {
      file.checkFormat();
      const hasLines = (await file.lines()).some((line) => format.read(line)?.phase === phase);
      await claimLines({ name: format.name, path, run, phase, hasLines });
    } catch (error) {
      rejection = { error };
      throw error;
    }
  }

  function append(lines: readonly string[]): void {
    if (rejection !== null) throw rejection.error;
    file.append(lines);
  }

  async function write(snapshot: Snapshot): Promise<void> {
    if (snapshot.status === "grading") return;
    if (rejection !== null) throw rejection.error;
    const key = keyOf(snapshot);
    const lines = format.snapshot(snapshot);
    const earlier = loggedLines.get(key) ?? [];
    if (earlier.join("\n") === lines.join("\n")) return;
    if (earlier.length > 0) {
      await file.drop((line) => {
        const of = format.read(line);
        return of !== null && keyOf(of) === key;
      });
      loggedLines.delete(key);
    }
    file.append(lines);
    // Measurements are rare, so this costs little, and training metrics until here become durable too.
    file.sync();
    loggedLines.set(key, lines);
  }

  return {
    name: format.name,
    async begin(at) {
      const { phase, step, resumed, standing } = at;
      loggedLines.clear();
      await claim(at);
      await file.drop((line) => {
        const of = format.read(line);
        if (of === null) return false;
        if (of.phase === phase && (!resumed || of.step > step)) return true;
        if (of.id !== null) loggedLines.set(keyOf(of), [...(loggedLines.get(keyOf(of)) ?? []), line]);
        return false;
      });
      for (const snapshot of standing) await write(snapshot);
    },
    train: (metrics, at) => append(format.train(metrics, at)),
    snapshot: write,
    close: () => file.close(),
  };
}

const keyOf = ({ phase, step, id }: { phase: string; step: number; id: string | null }): string =>
  `${phase}/${id}/${step}`;
