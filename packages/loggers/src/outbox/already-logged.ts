import type { Scalars } from "../scalars.ts";
import type { JournalLine, Point } from "./journal-line.ts";

/** Values that earlier processes of a run logged, so that no value is sent twice and every changed value is sent. */
export interface AlreadyLogged {
  /**
   * Returns the values of a point to send: those that were not logged at its step before, or have changed. Durations and rates
   * of training (`…seconds`, `…per_second`) differ in each process and are sent once.
   */
  fresh(point: Point): FreshValues;
}

export interface FreshValues {
  readonly values: Scalars;
  /** By name, the number of repeated values at this step that were left out before this value. Never 0. */
  readonly repeated: Readonly<Record<string, number>>;
}

export const nothingLogged: AlreadyLogged = { fresh: ({ values }) => ({ values, repeated: {} }) };

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
export function readAlreadyLogged(
  lines: Iterable<JournalLine>,
  phase: string,
  fromRunStep: number,
  onChange: (runStep: number) => void,
): AlreadyLogged {
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
  return {
    fresh(point) {
      const values: Record<string, number> = {};
      const repeated: Record<string, number> = {};
      for (const [name, value] of Object.entries(point.values)) {
        const before = repeatedBefore(point, name, value);
        if (before === null) continue;
        values[name] = value;
        if (before > 0) repeated[name] = before;
      }
      return { values, repeated };
    },
  };
}

const keyOf = ({ phase, runStep, of }: Point, name: string) => `${phase} ${runStep} ${of} ${name}`;

/** Compares as JSON does, which has only one zero. */
const isSame = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const isDuration = ({ of }: Point, name: string) => of === "training" && /(?:^|[_/])seconds?$/.test(name);
