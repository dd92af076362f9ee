import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import type { Json } from "@periodic-eval/core";
import { errnoOf, storeError } from "@periodic-eval/store";
import { lineFile } from "../lines/line-file.ts";
import { nothingLogged, readAlreadyLogged } from "./already-logged.ts";
import { lineText, parseLine, type JournalLine, type Point } from "./journal-line.ts";

/** A file in the run's folder with everything that the run sends, so that neither a kill nor a server that is down loses data. */
export interface Journal {
  readonly path: string;
  /** Unsent points, in order. */
  readonly unsent: readonly Point[];
  /** Number of points that all processes have sent. */
  readonly sent: number;
  /** Identifies the server's run; null before it exists. */
  readonly run: Json | null;
  /**
   * Counts values that differ from an earlier value of the same step, logged by an earlier process or by this process before it
   * repeated a measurement. Null if there are none.
   */
  readonly changed: Changed | null;
  /** Begins or resumes a phase. `add` then skips values of later steps that the journal already has. */
  begin(phase: string, fromRunStep: number): void;
  /** Adds a point without the values that earlier processes added. */
  add(point: Point): void;
  storeRun(run: Json): void;
  /** Records that the first `points` of `unsent` were sent. */
  markSent(points: number): void;
  /** Makes everything so far durable, so that a server never has points that a crash of the machine takes from the file. */
  sync(): void;
  close(): void;
}

export interface Changed {
  readonly values: number;
  readonly firstRunStep: number;
  readonly lastRunStep: number;
}

/** @throws PeriodicEvalError `store` if the file cannot be read or is not a journal. */
export function openJournal(path: string): Journal {
  // `parseLine` checks the format.
  const file = lineFile(path, {
    description: "a journal of this logger",
    hasThisFormat: () => true,
    isCutOff: () => true,
  });
  const unsent: Point[] = [];
  let sent = 0;
  let run: Json | null = null;
  let alreadyLogged = nothingLogged;
  let changed: Changed | null = null;
  /** Whether the names of the file and its folder are durable. */
  let isNamed = false;

  function apply(line: JournalLine): void {
    if (line.kind === "run") ({ run } = line);
    if (line.kind === "point") unsent.push(line.point);
    if (line.kind === "sent") {
      unsent.splice(0, line.points);
      sent += line.points;
    }
  }

  function write(line: JournalLine): void {
    file.append([lineText(line)]);
    apply(line);
  }

  function countChange(runStep: number): void {
    changed = {
      values: (changed?.values ?? 0) + 1,
      firstRunStep: Math.min(runStep, changed?.firstRunStep ?? runStep),
      lastRunStep: Math.max(runStep, changed?.lastRunStep ?? runStep),
    };
  }

  for (const line of linesOf(path)) apply(line);
  return {
    path,
    unsent,
    get sent() {
      return sent;
    },
    get run() {
      return run;
    },
    get changed() {
      return changed;
    },
    begin(phase, fromRunStep) {
      // Only steps that will be repeated are kept in memory, because a training may be long.
      alreadyLogged = readAlreadyLogged(linesOf(path), phase, fromRunStep, countChange);
      write({ kind: "begin", phase });
    },
    add(point) {
      const { values, repeated } = alreadyLogged.fresh(point);
      if (Object.keys(values).length === 0) return;
      const isAfter = Object.keys(repeated).length > 0;
      write({ kind: "point", point: { ...point, values }, ...(isAfter && { repeated }) });
    },
    storeRun: (stored) => write({ kind: "run", run: stored }),
    markSent: (points) => write({ kind: "sent", points }),
    sync() {
      file.sync();
      if (isNamed) return;
      for (const folder of [dirname(path), dirname(dirname(path))]) syncFolderSync(folder);
      isNamed = true;
    },
    close: () => file.close(),
  };
}

/** Makes the names in a folder durable, where the platform can: Windows opens no folder. */
function syncFolderSync(folder: string): void {
  let opened: number | null = null;
  try {
    opened = openSync(folder, "r");
    fsyncSync(opened);
  } catch (error) {
    if (!["EISDIR", "EPERM", "EINVAL", "ENOTSUP", "EACCES"].includes(errnoOf(error) ?? ""))
      throw storeError(folder, error);
  } finally {
    if (opened !== null) closeSync(opened);
  }
}

function* linesOf(path: string): Generator<JournalLine> {
  for (const text of readWhole(path)) yield parseLine(text, path);
}

/** Returns the complete lines, and truncates a last line that a crash cut off. */
function readWhole(path: string): readonly string[] {
  if (!existsSync(path)) return [];
  try {
    const text = readFileSync(path, "utf8");
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    if (whole !== text) truncateSync(path, Buffer.byteLength(whole));
    return whole.split("\n").slice(0, -1);
  } catch (error) {
    throw storeError(path, error);
  }
}
