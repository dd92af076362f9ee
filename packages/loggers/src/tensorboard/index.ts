import { join } from "node:path";
import type { Logger, Snapshot } from "@periodic-eval/core";
import { grouped } from "@periodic-eval/contracts";
import { parseOptions } from "@periodic-eval/contracts/options";
import * as z from "zod";
import { clockOption, pathOption, wallClock } from "../options.ts";
import { snapshotScalars, trainScalars, type Scalars } from "../scalars.ts";
import { newEventFile, type EventFile } from "./event-file.ts";
import { readScalars, scalarKey } from "./read-scalars.ts";

export interface TensorBoardOptions {
  /** Folder for `tensorboard --logdir`. Each phase is a folder in it, which TensorBoard shows as a run. */
  readonly logDir: string;
  /** Returns milliseconds since 1970. For tests. */
  readonly now?: () => number;
}

const schema = z.strictObject({
  logDir: pathOption,
  now: clockOption,
} satisfies Record<keyof TensorBoardOptions, z.ZodType>);

/**
 * Writes event files for TensorBoard, one folder per phase, over `run_step`: phases follow each other on the axis, and late
 * grading appears at its own step. Names are those of `snapshotScalars` and `trainScalars`.
 *
 * Each process writes its own file. When a phase resumes or starts over, the file begins with a marker that makes TensorBoard
 * discard later steps of earlier files.
 *
 * @throws PeriodicEvalError `config` for a wrong option.
 */
export function tensorBoardLogger(options: TensorBoardOptions): Logger {
  parseOptions("tensorBoardLogger options", schema, options);
  const { logDir, now = wallClock } = options;
  const files = new Map<string, EventFile>();
  const seconds = () => now() / 1000;

  function fileOf(phase: string): EventFile {
    const file = files.get(phase) ?? newEventFile(join(logDir, phase), seconds());
    files.set(phase, file);
    return file;
  }

  function write(phase: string, step: number, scalars: Scalars): void {
    if (Object.keys(scalars).length > 0) fileOf(phase).write({ step, scalars }, seconds());
  }

  /** Writes scalars that a killed process did not get to write. */
  function writeMissing(phase: string, snapshots: readonly Snapshot[]): void {
    const scalarsOf = (snapshot: Snapshot) => Object.entries(snapshotScalars(snapshot));
    const wanted = snapshots.flatMap((snapshot) =>
      scalarsOf(snapshot).map(([tag]) => scalarKey(snapshot.run_step, tag)),
    );
    const written = readScalars(join(logDir, phase), new Set(wanted));
    for (const snapshot of snapshots) {
      const missing = scalarsOf(snapshot).filter(
        ([tag, value]) => !Object.is(written.get(scalarKey(snapshot.run_step, tag)), Math.fround(value)),
      );
      write(phase, snapshot.run_step, Object.fromEntries(missing));
    }
  }

  return {
    name: "tensorboard",
    begin({ phase, runStep, resumed, standing }) {
      fileOf(phase).write({ restartsAt: resumed ? runStep + 1 : runStep }, seconds());
      for (const [name, snapshots] of grouped(standing, (snapshot) => snapshot.phase))
        writeMissing(name, snapshots);
    },
    train: (metrics, { phase, runStep }) => write(phase, runStep, trainScalars(metrics)),
    snapshot: (snapshot) => write(snapshot.phase, snapshot.run_step, snapshotScalars(snapshot)),
    close() {
      for (const file of files.values()) file.close();
      files.clear();
    },
  };
}
