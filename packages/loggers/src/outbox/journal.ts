import { existsSync, readFileSync, truncateSync } from "node:fs";
import type { Json } from "@periodic-eval/core";
import { storeError } from "@periodic-eval/core/snapshots";
import { lineFile } from "../lines/line-file.ts";
import { nothingLogged, readAlreadyLogged } from "./already-logged.ts";
import { lineText, parseLine, type JournalLine, type Point } from "./journal-line.ts";

/** All that was to be sent of a run, in a file of its folder, so that neither a kill nor a dead server loses any. */
export interface Journal {
  readonly path: string;
  /** Points not sent yet, in order. */
  readonly unsent: readonly Point[];
  /** How many were sent, in all processes. */
  readonly sent: number;
  /** What the server's run is known by; null before there is one. */
  readonly run: Json | null;
  /**
   * Values that this process took and that had been taken otherwise before: by an earlier process or, of a look that is
   * measured again, by this one; null where there are none.
   */
  readonly changed: Changed | null;
  /** A phase begins, or goes on: what is in here of its steps from this one on is not taken twice. */
  begin(phase: string, fromRunStep: number): void;
  /** Takes a point, less what earlier processes took of it. */
  add(point: Point): void;
  keep(run: Json): void;
  /** The first so many of `unsent` are sent. */
  tick(points: number): void;
  close(): void;
}

export interface Changed {
  readonly values: number;
  readonly firstRunStep: number;
  readonly lastRunStep: number;
}

/** @throws PeriodicEvalError `store` where the file cannot be read or is none of ours. */
export function openJournal(path: string): Journal {
  // Whose lines they are is looked at where they are read.
  const file = lineFile(path, { called: "a journal of this logger", isOurs: () => true, isTorn: () => true });
  const unsent: Point[] = [];
  let sent = 0;
  let run: Json | null = null;
  let alreadyLogged = nothingLogged;
  let changed: Changed | null = null;

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
      // Of the steps of a long training only those that are trained again are held in memory.
      alreadyLogged = readAlreadyLogged(linesOf(path), phase, fromRunStep, countChange);
      write({ kind: "begin", phase });
    },
    add(point) {
      const { values, repeated } = alreadyLogged.fresh(point);
      if (Object.keys(values).length === 0) return;
      const isAfter = Object.keys(repeated).length > 0;
      write({ kind: "point", point: { ...point, values }, ...(isAfter && { repeated }) });
    },
    keep: (kept) => write({ kind: "run", run: kept }),
    tick: (points) => write({ kind: "sent", points }),
    close: () => file.close(),
  };
}

function* linesOf(path: string): Generator<JournalLine> {
  for (const text of readWhole(path)) yield parseLine(text, path);
}

/** The whole lines; what a crash left of a last one is cut off. */
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
