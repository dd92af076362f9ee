import { closeSync, existsSync, fsyncSync, openSync, readFileSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import type { Json } from "@periodic-eval/core";
import { errnoOf, storeError } from "@periodic-eval/store";
import { lineFile } from "../lines/line-file.ts";
import { jsonNumbers, type Scalars } from "../scalars.ts";

/** Values of one step as a server receives them. */
export interface Point {
  readonly phase: string;
  readonly runStep: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly values: Scalars;
  readonly of: "training" | "snapshot";
}

/** A line of the journal, which stores everything that a run sends. */
type JournalLine =
  | { readonly kind: "run"; readonly run: Json }
  | { readonly kind: "begin"; readonly phase: string }
  | {
      readonly kind: "point";
      readonly point: Point;
      /** By name, the number of values of earlier processes at this step that were repeated before this value. */
      readonly repeated?: Readonly<Record<string, number>>;
    }
  | { readonly kind: "sent"; readonly points: number };

const lineText = (line: JournalLine): string =>
  JSON.stringify(
    line.kind === "point"
      ? { ...line, point: { ...line.point, values: jsonNumbers(line.point.values) } }
      : line,
  );

/** @throws PeriodicEvalError `store` if the line of the file at `path` is not a journal line. */
function parseLine(text: string, path: string): JournalLine {
  try {
    const line = JSON.parse(text) as JournalLine;
    if (line.kind !== "point") return line;
    const values = Object.entries(line.point.values).map(([name, value]) => [name, Number(value)] as const);
    return { ...line, point: { ...line.point, values: Object.fromEntries(values) } };
  } catch (error) {
    throw storeError(
      path,
      error,
      "lines that a logger of this run wrote; move the file away to send everything to a new run",
    );
  }
}

/**
 * Returns the values of a point to send, so that no value is sent twice and every changed value is sent: those that no earlier process
 * logged at its step, or that have changed. Durations and rates of training (`…seconds`, `…per_second`) differ in each process and are
 * sent once.
 */
type Fresh = (point: Point) => FreshValues;

interface FreshValues {
  readonly values: Scalars;
  /** By name, the number of repeated values at this step that were left out before this value. Never 0. */
  readonly repeated: Readonly<Record<string, number>>;
}

/** Values of one name at one step, in the order of the latest attempt. */
interface LoggedValues {
  /** Index of the last attempt at this phase that logged one of the values; it repeated the earlier ones. */
  readonly attempt: number;
  readonly values: number[];
  /** How many of them this process has repeated. */
  repeated: number;
}

/**
 * Reads the logged training values of a phase from a run step on, and the values of every snapshot.
 *
 * @param onChange Called with the run step of each value that has changed.
 */
function freshSince(
  lines: Iterable<JournalLine>,
  phase: string,
  fromRunStep: number,
  onChange: (runStep: number) => void,
): Fresh {
  const logged = new Map<string, LoggedValues>();
  let attempt = 0;
  for (const line of lines) {
    if (line.kind === "begin" && line.phase === phase) attempt += 1;
    if (line.kind !== "point") continue;
    const { point, repeated } = line;
    const isTraining = point.of === "training";
    if (isTraining && (point.phase !== phase || point.runStep < fromRunStep)) continue;
    for (const [name, value] of Object.entries(point.values)) {
      const key = keyOf(point, name);
      const earlier = logged.get(key);
      // A snapshot has one value per name and step; training may log several.
      if (isTraining && earlier?.attempt === attempt) earlier.values.push(value);
      else {
        const before = earlier?.values.slice(0, repeated?.[name] ?? 0) ?? [];
        logged.set(key, { attempt, values: [...before, value], repeated: 0 });
      }
    }
  }

  /** Returns the number of repeated values of this name before this one, or null if this one is repeated too. */
  function repeatedBefore(point: Point, name: string, value: number): number | null {
    const key = keyOf(point, name);
    const earlier = logged.get(key);
    const known = earlier?.values[earlier.repeated];
    const isKnown = known !== undefined && (isSame(known, value) || isDuration(point, name));
    if (point.of === "snapshot") logged.set(key, { attempt, values: [value], repeated: 0 });
    else if (isKnown) earlier!.repeated += 1;
    // Values after a changed one are new, even if an earlier attempt logged equal values.
    else logged.delete(key);
    if (known !== undefined && !isKnown) onChange(point.runStep);
    return isKnown ? null : (earlier?.repeated ?? 0);
  }
  return (point) => {
    const values: Record<string, number> = {};
    const repeated: Record<string, number> = {};
    for (const [name, value] of Object.entries(point.values)) {
      const before = repeatedBefore(point, name, value);
      if (before === null) continue;
      values[name] = value;
      if (before > 0) repeated[name] = before;
    }
    return { values, repeated };
  };
}

const keyOf = ({ phase, runStep, of }: Point, name: string) => `${phase} ${runStep} ${of} ${name}`;

/** Compares as JSON does, which has only one zero. */
const isSame = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const isDuration = ({ of }: Point, name: string) => of === "training" && /(?:^|[_/])seconds?$/.test(name);

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
  let fresh: Fresh = ({ values }) => ({ values, repeated: {} });
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
      fresh = freshSince(linesOf(path), phase, fromRunStep, countChange);
      write({ kind: "begin", phase });
    },
    add(point) {
      const { values, repeated } = fresh(point);
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
