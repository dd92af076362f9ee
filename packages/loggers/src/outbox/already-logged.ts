import type { Scalars } from "../scalars.ts";
import type { JournalLine, Point } from "./journal-line.ts";

/** Returns the values of a point to send: those that were not logged at its step before, or have changed. */
export type FreshValues = (point: Point) => Scalars;

/**
 * Reads the logged training values of a phase from a run step on, and the values of every snapshot, so that no value is sent twice and
 * every changed value is sent. Durations and rates of training (`…seconds`, `…per_second`) differ in each process and are sent once.
 *
 * @param onChange Called with the run step of each value that has changed.
 */
export function readAlreadyLogged(
  lines: Iterable<JournalLine>,
  phase: string,
  fromRunStep: number,
  onChange: (runStep: number) => void,
): FreshValues {
  const logged = new Map<string, number>();
  for (const line of lines) {
    if (line.kind !== "point") continue;
    const { point } = line;
    if (point.of === "training" && (point.phase !== phase || point.runStep < fromRunStep)) continue;
    for (const [name, value] of Object.entries(point.values)) logged.set(keyOf(point, name), value);
  }
  function isFresh(point: Point, name: string, value: number): boolean {
    const key = keyOf(point, name);
    const known = logged.get(key);
    const isKnown = known !== undefined && (isSame(known, value) || isDuration(point, name));
    // A measurement may be repeated in this process.
    if (point.of === "snapshot") logged.set(key, value);
    else logged.delete(key);
    if (known !== undefined && !isKnown) onChange(point.runStep);
    return !isKnown;
  }
  return (point) =>
    Object.fromEntries(Object.entries(point.values).filter(([name, value]) => isFresh(point, name, value)));
}

const keyOf = ({ phase, runStep, of }: Point, name: string) => `${phase} ${runStep} ${of} ${name}`;

/** Compares as JSON does, which has only one zero. */
const isSame = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const isDuration = ({ of }: Point, name: string) => of === "training" && /(?:^|[_/])seconds?$/.test(name);
