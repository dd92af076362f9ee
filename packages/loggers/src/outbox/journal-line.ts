import type { Json } from "@periodic-eval/core";
import { storeError } from "@periodic-eval/store";
import { jsonNumbers } from "../json-number.ts";
import type { Scalars } from "../scalars.ts";

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
export type JournalLine =
  | { readonly kind: "run"; readonly run: Json }
  | { readonly kind: "begin"; readonly phase: string }
  | {
      readonly kind: "point";
      readonly point: Point;
      /** By name, the number of values of earlier processes at this step that were repeated before this value. */
      readonly repeated?: Readonly<Record<string, number>>;
    }
  | { readonly kind: "sent"; readonly points: number };

export const lineText = (line: JournalLine): string =>
  JSON.stringify(
    line.kind === "point"
      ? { ...line, point: { ...line.point, values: jsonNumbers(line.point.values) } }
      : line,
  );

/** @throws PeriodicEvalError `store` if the line of the file at `path` is not a journal line. */
export function parseLine(text: string, path: string): JournalLine {
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
