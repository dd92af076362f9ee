import { existsSync, readFileSync, truncateSync } from "node:fs";
import type { Json } from "@periodic-eval/core";
import { storeError } from "@periodic-eval/core/snapshots";
import { jsonNumbers } from "../json-number.ts";
import { lineFile } from "../lines/line-file.ts";
import type { Scalars } from "../scalars.ts";

/** What was measured or trained at one step, as a server gets it. */
export interface Point {
  readonly phase: string;
  readonly runStep: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  readonly values: Scalars;
  /** The snapshot, and when it was made; null for metrics of training. */
  readonly snapshot: { readonly key: string; readonly createdAt: string } | null;
}

/** All that was to be sent of a run, in a file of its folder, so that neither a kill nor a dead server loses any. */
export interface Journal {
  readonly path: string;
  /** Points not sent yet, in order. */
  readonly unsent: readonly Point[];
  /** How many were sent, in all processes. */
  readonly sent: number;
  /** What the server's run is known by; null before there is one. */
  readonly run: Json | null;
  /** A phase begins: where it goes on from a checkpoint, what is in here of later steps is not taken twice. */
  begin(phase: string, resumed: boolean): void;
  /** Takes a point, less what earlier processes took of it. */
  add(point: Point): void;
  keep(run: Json): void;
  /** The first so many of `unsent` are sent. */
  tick(points: number): void;
  close(): void;
}

type Line =
  | { readonly kind: "run"; readonly run: Json }
  | { readonly kind: "begin"; readonly phase: string; readonly resumed: boolean }
  | { readonly kind: "point"; readonly point: Point }
  | { readonly kind: "sent"; readonly points: number };

/** @throws PeriodicEvalError `store` where the file cannot be read or is none of ours. */
export function openJournal(path: string): Journal {
  const file = lineFile(path);
  const unsent: Point[] = [];
  let sent = 0;
  let run: Json | null = null;
  /** Largest run step of each training metric, by phase; only what is taken twice after a resume asks. */
  const taken = new Map<string, Map<string, number>>();
  const looks = new Map<string, string>();
  /** What `taken` was when the phase was resumed. */
  const before = new Map<string, ReadonlyMap<string, number>>();

  function apply(line: Line): void {
    if (line.kind === "run") ({ run } = line);
    if (line.kind === "begin") {
      if (!line.resumed) taken.delete(line.phase);
      before.set(line.phase, new Map(taken.get(line.phase)));
    }
    if (line.kind === "sent") {
      unsent.splice(0, line.points);
      sent += line.points;
    }
    if (line.kind === "point") {
      unsent.push(line.point);
      remember(line.point);
    }
  }

  function remember({ phase, runStep, values, snapshot }: Point): void {
    if (snapshot !== null) {
      looks.set(snapshot.key, snapshot.createdAt);
      return;
    }
    const steps = taken.get(phase) ?? new Map<string, number>();
    taken.set(phase, steps);
    for (const name of Object.keys(values)) steps.set(name, Math.max(runStep, steps.get(name) ?? 0));
  }

  /** A resumed training repeats itself to the bit: what it says again is left out. */
  function fresh({ phase, runStep, values, snapshot }: Point): Scalars {
    if (snapshot !== null) return looks.get(snapshot.key) === snapshot.createdAt ? {} : values;
    const steps = before.get(phase);
    return Object.fromEntries(Object.entries(values).filter(([name]) => runStep > (steps?.get(name) ?? -1)));
  }

  function write(line: Line): void {
    file.append([textOf(line)]);
    apply(line);
  }

  for (const text of readWhole(path)) apply(parse(text, path));
  return {
    path,
    unsent,
    get sent() {
      return sent;
    },
    get run() {
      return run;
    },
    begin: (phase, resumed) => write({ kind: "begin", phase, resumed }),
    add(point) {
      const values = fresh(point);
      if (Object.keys(values).length > 0) write({ kind: "point", point: { ...point, values } });
    },
    keep: (kept) => write({ kind: "run", run: kept }),
    tick: (points) => write({ kind: "sent", points }),
    close: () => file.close(),
  };
}

const textOf = (line: Line): string =>
  JSON.stringify(
    line.kind === "point"
      ? { ...line, point: { ...line.point, values: jsonNumbers(line.point.values) } }
      : line,
  );

function parse(text: string, path: string): Line {
  try {
    const line = JSON.parse(text) as Line;
    if (line.kind !== "point") return line;
    const values = Object.entries(line.point.values).map(([name, value]) => [name, Number(value)] as const);
    return { ...line, point: { ...line.point, values: Object.fromEntries(values) } };
  } catch (error) {
    throw storeError(
      path,
      error,
      "the lines that a logger of this run wrote; move it away to send all to a new run",
    );
  }
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
