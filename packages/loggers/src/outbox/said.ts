import type { Scalars } from "../scalars.ts";
import type { JournalLine, Point } from "./journal-line.ts";

/** What a run's earlier processes said, so that nothing is sent twice and nothing that changed is lost. */
export interface Said {
  /**
   * What of a point is to be sent: what was not said of its step before, or is another value now. Durations and rates of
   * training are another each time (`…seconds`, `…per_second`), and are sent once.
   */
  fresh(point: Point): Scalars;
}

export const nothingSaid: Said = { fresh: ({ values }) => values };

/** Values of one name at one step, in the order in which the last training that said any said them. */
interface Saying {
  readonly attempt: number;
  readonly values: number[];
}

/**
 * Reads what was said of a phase's training from a run step on, and of every snapshot.
 *
 * @param onChange told the run step of each value that is said again and is another now.
 */
export function readSaid(
  lines: Iterable<JournalLine>,
  phase: string,
  fromRunStep: number,
  onChange: (runStep: number) => void,
): Said {
  const said = new Map<string, Saying>();
  let attempt = 0;
  for (const line of lines) {
    if (line.kind === "begin" && line.phase === phase) attempt += 1;
    if (line.kind !== "point") continue;
    const { point } = line;
    const isTraining = point.of === "training";
    if (isTraining && (point.phase !== phase || point.runStep < fromRunStep)) continue;
    for (const [name, value] of Object.entries(point.values)) {
      const key = keyOf(point, name);
      const earlier = said.get(key);
      // A snapshot stands for its step whole; training may say one name several times at one.
      if (isTraining && earlier?.attempt === attempt) earlier.values.push(value);
      else said.set(key, { attempt, values: [value] });
    }
  }

  function isFresh(point: Point, name: string, value: number): boolean {
    const key = keyOf(point, name);
    const earlier = said.get(key);
    const known = earlier?.values[0];
    const isRepeated = known !== undefined && (isSame(known, value) || isOfClock(point, name));
    if (point.of === "snapshot") said.set(key, { attempt, values: [value] });
    else if (isRepeated && earlier!.values.length > 1) earlier!.values.shift();
    else said.delete(key);
    if (known !== undefined && !isRepeated) onChange(point.runStep);
    return !isRepeated;
  }
  return {
    fresh: (point) =>
      Object.fromEntries(Object.entries(point.values).filter(([name, value]) => isFresh(point, name, value))),
  };
}

const keyOf = ({ phase, runStep, of }: Point, name: string) => `${phase} ${runStep} ${of} ${name}`;

/** As JSON has them: it knows one zero. */
const isSame = (a: number, b: number) => a === b || (Number.isNaN(a) && Number.isNaN(b));

const isOfClock = ({ of }: Point, name: string) => of === "training" && /(?:^|[_/])seconds?$/.test(name);
