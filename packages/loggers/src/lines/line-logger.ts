import type { Logger, RunProgress, Snapshot } from "@periodic-eval/core";
import type { LineFile } from "./line-file.ts";

/** What a format of lines says of each thing, and which thing a line of it is about. */
export interface LineFormat {
  readonly name: string;
  train(metrics: Readonly<Record<string, number>>, at: RunProgress): readonly string[];
  snapshot(snapshot: Snapshot): readonly string[];
  /** Null where the line is none of ours, which is then kept. */
  read(line: string): { readonly phase: string; readonly step: number } | null;
}

/**
 * A logger over a file of lines. Where a phase goes on from a checkpoint, or begins anew, lines of its later steps are
 * dropped: they are of a training that was cut off, and what still stands of it is told again. So each step and each
 * snapshot stands there once. A snapshot is written when it is settled, not while it is graded.
 */
export function lineLogger(file: LineFile, format: LineFormat): Logger {
  return {
    name: format.name,
    begin: ({ phase, step, resumed }) =>
      file.drop((line) => {
        const of = format.read(line);
        return of !== null && of.phase === phase && (!resumed || of.step > step);
      }),
    train: (metrics, at) => file.append(format.train(metrics, at)),
    snapshot(snapshot) {
      if (snapshot.status !== "grading") file.append(format.snapshot(snapshot));
    },
    close: () => file.close(),
  };
}
