import type { Scalars } from "../scalars.ts";
import type { JournalLine, Point } from "./journal-line.ts";

/** What a run's earlier processes logged, so that nothing is sent twice and nothing that changed is lost. */
export interface AlreadyLogged {
  /**
   * What of a point is to be sent: what was not logged of its step before, or is another value now. Durations and rates of
   * training are another each time (`…seconds`, `…per_second`), and are sent once.
   */
  fresh(point: Point): FreshValues;
}

export interface FreshValues {
  readonly values: Scalars;
  /** By name, how many earlier values at its step were told again, and left out, ahead of it; none has no entry. */
  readonly repeated: Readonly<Record<string, number>>;
}

export const nothingLogged: AlreadyLogged = { fresh: ({ values }) => ({ values, repeated: {} }) };

/** Values of one name at one step, in the order in which the training that stands told them. */
interface LoggedValues {
  /** The last training that logged any of them; the values before were told again by it. */
  readonly attempt: number;
  readonly values: number[];
  /** How many of them this process has told again. */
  repeated: number;
}

/**
 * Reads what was logged of a phase's training from a run step on, and of every snapshot.
 *
 * @param onChange told the run step of each value that is told again and is another now.
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
      // A snapshot stands for its step whole; training may tell one name several times at one.
      if (isTraining && earlier?.attempt === attempt) earlier.values.push(value);
      else {
        const before = earlier?.values.slice(0, repeated?.[name] ?? 0) ?? [];
        logged.set(key, { attempt, values: [...before, value], repeated: 0 });
      }
    }
  }

  /** How many values of the name were told again ahead of this one; null where this one is told again too. */
  function repeatedBefore(point: Point, name: string, value: number): number | null {
    const key = keyOf(point, name);
    const earlier = logged.get(key);
    const known = earlier?.values[earlier.repeated];
    const isKnown = known !== undefined && (isSame(known, value) || isOfClock(point, name));
    if (point.of === "snapshot") logged.set(key, { attempt, values: [value], repeated: 0 });
    else if (isKnown) earlier!.repeated += 1;
    // After a value that differs all is another training's.
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

/** As JSON has them: it knows one zero. */
const isSame = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const isOfClock = ({ of }: Point, name: string) => of === "training" && /(?:^|[_/])seconds?$/.test(name);
