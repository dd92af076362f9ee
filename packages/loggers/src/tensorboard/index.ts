import { join } from "node:path";
import type { Logger, Snapshot } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { checkPath } from "../check-path.ts";
import { snapshotScalars, trainScalars, type Scalars } from "../scalars.ts";
import { wallClock } from "../wall-clock.ts";
import { newEventFile, type EventFile } from "./event-file.ts";
import { readScalars, scalarKey } from "./read-scalars.ts";

export interface TensorBoardOptions {
  /** What `tensorboard --logdir` is given; each phase is a folder in it, which TensorBoard shows as a run. */
  readonly logDir: string;
  /** Milliseconds since 1970; for tests. */
  readonly now?: () => number;
}

/**
 * Event files for TensorBoard, a folder a phase, over `run_step`: phases lie one behind the other on the axis, and late
 * grading stands at the step that it is of. Names are those of `snapshotScalars` and `trainScalars`.
 *
 * Each process writes a file of its own. Where a phase goes on from a checkpoint, or begins anew, it opens with the mark
 * by which TensorBoard forgets what earlier files say of later steps.
 */
export function tensorBoardLogger(options: TensorBoardOptions): Logger {
  checkKeys("tensorBoardLogger", options, ["logDir", "now"]);
  const { logDir, now = wallClock } = options;
  checkPath("tensorBoardLogger logDir", logDir);
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

  /** Those that a process which died did not come to write. */
  function writeMissing(phase: string, looks: readonly Snapshot[]): void {
    const scalarsOf = (look: Snapshot) => Object.entries(snapshotScalars(look));
    const wanted = looks.flatMap((look) => scalarsOf(look).map(([tag]) => scalarKey(look.run_step, tag)));
    const held = readScalars(join(logDir, phase), new Set(wanted));
    for (const look of looks) {
      const missing = scalarsOf(look).filter(
        ([tag, value]) => !Object.is(held.get(scalarKey(look.run_step, tag)), Math.fround(value)),
      );
      write(phase, look.run_step, Object.fromEntries(missing));
    }
  }

  return {
    name: "tensorboard",
    begin({ phase, runStep, resumed, standing }) {
      fileOf(phase).write({ startsAgainAt: resumed ? runStep + 1 : runStep }, seconds());
      for (const of of new Set(standing.map((look) => look.phase)))
        writeMissing(
          of,
          standing.filter((look) => look.phase === of),
        );
    },
    train: (metrics, { phase, runStep }) => write(phase, runStep, trainScalars(metrics)),
    snapshot: (snapshot) => write(snapshot.phase, snapshot.run_step, snapshotScalars(snapshot)),
    close() {
      for (const file of files.values()) file.close();
      files.clear();
    },
  };
}
