import type { Logger, PhaseBegin, RunProgress, Snapshot } from "@periodic-eval/core";
import { claimLines } from "./claim-lines.ts";
import type { LineFile } from "./line-file.ts";

/** What a format of lines says of each thing, and which thing a line of it is about. */
export interface LineFormat {
  readonly name: string;
  train(metrics: Readonly<Record<string, number>>, at: RunProgress): readonly string[];
  snapshot(snapshot: Snapshot): readonly string[];
  /** `id` of a snapshot, else null. Null where the line is none of ours, which is then kept. */
  read(line: string): { readonly phase: string; readonly step: number; readonly id: string | null } | null;
}

/**
 * A logger over a file of lines. Where a phase goes on from a checkpoint, or begins anew, lines of its later steps are
 * dropped: they are of a training that was cut off, and what still stands of it is told again. A snapshot is written when
 * it is settled, not while it is graded, and in place of what the file says of an earlier measurement at its step. So each
 * snapshot stands there once, and those that a killed process did not come to tell of are added. Metrics of a step stand
 * there as often as they were told in the training that stands: once by its loop, and once more for what a callback reports
 * or `session.log` adds. They are not gathered: each is in the file when it is told.
 */
export function lineLogger(path: string, file: LineFile, format: LineFormat): Logger {
  // A mistake in a path shall show before training.
  file.refuseOthers();
  /** Why the file is another's: nothing is written to it. */
  let refused: { readonly error: unknown } | null = null;
  /** By snapshot, its lines in the file. */
  const held = new Map<string, readonly string[]>();

  /** Refuses a file of another kind or run, until a phase begins that may write there. */
  async function claim({ phase, run }: PhaseBegin): Promise<void> {
    refused = null;
    try {
      file.refuseOthers();
      const isThere = (await file.lines()).some((line) => format.read(line)?.phase === phase);
      claimLines({ name: format.name, path, run, phase, isThere });
    } catch (error) {
      refused = { error };
      throw error;
    }
  }

  function append(lines: readonly string[]): void {
    if (refused !== null) throw refused.error;
    file.append(lines);
  }

  async function write(snapshot: Snapshot): Promise<void> {
    if (snapshot.status === "grading") return;
    if (refused !== null) throw refused.error;
    const key = keyOf(snapshot);
    const lines = format.snapshot(snapshot);
    const earlier = held.get(key) ?? [];
    if (earlier.join("\n") === lines.join("\n")) return;
    if (earlier.length > 0) {
      await file.drop((line) => {
        const of = format.read(line);
        return of !== null && keyOf(of) === key;
      });
      held.delete(key);
    }
    file.append(lines);
    held.set(key, lines);
  }

  return {
    name: format.name,
    async begin(at) {
      const { phase, step, resumed, standing } = at;
      held.clear();
      await claim(at);
      await file.drop((line) => {
        const of = format.read(line);
        if (of === null) return false;
        if (of.phase === phase && (!resumed || of.step > step)) return true;
        if (of.id !== null) held.set(keyOf(of), [...(held.get(keyOf(of)) ?? []), line]);
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
