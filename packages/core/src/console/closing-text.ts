import type { Undisturbed } from "../contracts/run-record.ts";
import type { Snapshot } from "../contracts/snapshot.ts";
import { isWithinGrace, overheadOf, undisturbed, whyNotUndisturbed } from "../snapshots/undisturbed.ts";
import { grouped } from "../statistics/grouping.ts";
import { noColours, type Colours } from "./sentences.ts";

/**
 * Returns the last line of a run: `runs/1: 5 of 6 measurements, overhead 9.8 %, training undisturbed: yes. See the page: …`.
 *
 * @param run The run's folder; null if the run is a custom store.
 */
export function closingText(
  run: string | null,
  snapshots: readonly Snapshot[],
  colours: Colours = noColours,
): string {
  const taken = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed").length;
  const all = snapshots.length;
  const count = `${taken === all ? all : `${taken} of ${all}`} ${all === 1 ? "measurement" : "measurements"}`;
  const place = run === null ? "" : `${colours.bold(run)}: `;
  const page = run === null ? "" : `. See the page: npx periodic-eval report ${shellWord(run)}`;
  const facts = [count, overheadText(snapshots), undisturbedText(undisturbed(snapshots), colours)];
  return `${place}${facts.filter((fact) => fact !== null).join(", ")}${page}`;
}

/** Returns `overhead 9.8 %` or `overhead 142.8 % within the grace`, with the phase's name if there are several; null if none has one. */
function overheadText(snapshots: readonly Snapshot[]): string | null {
  const phases = [...grouped(snapshots, ({ phase }) => phase)];
  const parts = phases.flatMap(([name, ofPhase]) => {
    const percent = overheadOf(ofPhase);
    const limit = isWithinGrace(ofPhase) ? " within the grace" : "";
    return percent === null
      ? []
      : [`${percent.toFixed(1)} %${limit}${phases.length === 1 ? "" : ` (${name})`}`];
  });
  return parts.length === 0 ? null : `overhead ${parts.join(", ")}`;
}

const answerColours = { yes: "green", no: "red", "not proven": "yellow", "not applicable": "dim" } as const;

/** Returns `training undisturbed: yes`, with the reason for every other answer; null if nothing was measured. */
export function undisturbedText(found: Undisturbed | null, colours: Colours = noColours): string | null {
  if (found === null) return null;
  const why = whyNotUndisturbed(found);
  const answer = colours[answerColours[found.answer]](found.answer);
  return `training undisturbed: ${answer}${why === null ? "" : ` (${why})`}`;
}

/** Quotes a path for a shell if it needs quotes. */
const shellWord = (path: string): string => (/^[\w./:@%+~\\-]+$/.test(path) ? path : `"${path}"`);
