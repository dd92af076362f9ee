import { type Undisturbed, type PhaseEnd, type Snapshot, grouped } from "@periodic-eval/contracts";
import { shellWord } from "@periodic-eval/contracts/options";
import {
  isVoid,
  isOnlyEdges,
  isWithinGrace,
  overheadOf,
  undisturbed,
  whyNotUndisturbed,
} from "@periodic-eval/store";
import { secondsText } from "../statistics/format.ts";
import { noColours, type Colours } from "./sentences.ts";

/**
 * Returns the last line of a run: `runs/1: 5 of 6 measurements, overhead 9.8 %, training undisturbed: yes. See the page: …`.
 *
 * @param run The run's folder; null if the run is a custom store.
 * @param interrupted Where the last phase was interrupted; null if it finished.
 * @param lost Why nothing more could be written; null if everything was.
 */
export function closingText(
  run: string | null,
  snapshots: readonly Snapshot[],
  colours: Colours = noColours,
  interrupted: Pick<PhaseEnd, "phase" | "step" | "maxSteps"> | null = null,
  lost: string | null = null,
): string {
  const taken = snapshots.filter(({ status }) => status !== "skipped" && status !== "failed").length;
  const all = snapshots.length;
  const count = `${taken === all ? all : `${taken} of ${all}`} ${all === 1 ? "measurement" : "measurements"}`;
  const place = run === null ? "" : `${colours.bold(run)}: `;
  const page =
    run === null || lost !== null ? "" : `. See the page: npx periodic-eval report ${shellWord(run)}`;
  const stop =
    interrupted === null
      ? null
      : colours.yellow(`${interrupted.phase} interrupted at ${placeText(interrupted)}`);
  const facts = [
    stop,
    lost === null ? null : colours.yellow(`writing stopped (${lost})`),
    count,
    ...lastWith(snapshots, isDisabled).map((id) => colours.yellow(`${id} disabled`)),
    ...lastWith(snapshots, isNotJudged).map((id) => colours.yellow(`${id} cannot be judged`)),
    overheadText(snapshots),
    undisturbedText(undisturbed(snapshots), colours),
  ];
  return `${place}${facts.filter((fact) => fact !== null).join(", ")}${page}`;
}

/** Returns the callbacks of whose last snapshot `is` is true. */
const lastWith = (snapshots: readonly Snapshot[], is: (last: Snapshot) => boolean): readonly string[] =>
  [...grouped(snapshots, ({ id }) => id)].flatMap(([id, ofId]) => (is(ofId.at(-1)!) ? [id] : []));

const isNotJudged = (snapshot: Snapshot): boolean =>
  snapshot.primary_metric !== null && isVoid(snapshot, snapshot.primary_metric);

const isDisabled = ({ warnings }: Snapshot): boolean => warnings.some(({ kind }) => kind === "disabled");

/** Returns `step 23 of 200`, or `step 23` if the length is unknown. */
export const placeText = ({ step, maxSteps }: Pick<PhaseEnd, "step" | "maxSteps">): string =>
  `step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;

/**
 * Returns `overhead 9.8 %`, with the phase's name if there are several; null if none has one. Where the grace left everything
 * whole, the seconds count and not the share: `measuring 5.2 s, within the grace of 60 s`. A phase that was measured only at its
 * start and end has no limit: `measuring 5.2 s at start and end`.
 */
function overheadText(snapshots: readonly Snapshot[]): string | null {
  const phases = [...grouped(snapshots, ({ phase }) => phase)];
  const ofPhases = phases.flatMap(([name, ofPhase]) => {
    const percent = overheadOf(ofPhase);
    const ofName = phases.length === 1 ? "" : ` (${name})`;
    const limit = isOnlyEdges(ofPhase) ? "none" : isWithinGrace(ofPhase) ? "grace" : "share";
    return percent === null ? [] : [{ ofPhase, ofName, percent, limit }];
  });
  const limited = ofPhases.filter(({ limit }) => limit === "share");
  const within = ofPhases.filter(({ limit }) => limit === "grace");
  const edges = ofPhases.filter(({ limit }) => limit === "none");
  const secondsOf = (some: typeof ofPhases) =>
    some.map(({ ofPhase, ofName }) => `${secondsText(measuringSeconds(ofPhase))}${ofName}`).join(", ");
  const shares = limited.map(({ percent, ofName }) => `${percent.toFixed(1)} %${ofName}`);
  const parts = [
    ...(shares.length === 0 ? [] : [`overhead ${shares.join(", ")}`]),
    ...(within.length === 0 ? [] : [`measuring ${secondsOf(within)}, ${graceText(within[0]!.ofPhase)}`]),
    ...(edges.length === 0 ? [] : [`measuring ${secondsOf(edges)} at start and end`]),
  ];
  return parts.length === 0 ? null : parts.join(", ");
}

const measuringSeconds = (phase: readonly Snapshot[]): number =>
  phase.reduce((sum, { timing }) => sum + timing.total_seconds, 0);

/** Returns `within the grace of 60 s`. */
export function graceText(phase: readonly Snapshot[]): string {
  const seconds = phase.flatMap(({ timing }) => timing.budget?.grace_seconds ?? []).at(-1);
  return `within the grace${seconds === undefined ? "" : ` of ${secondsText(seconds)}`}`;
}

const answerColours = { yes: "green", no: "red", "not proven": "yellow", "not applicable": "dim" } as const;

/** Returns `training undisturbed: yes`, with the reason for every other answer; null if nothing was measured. */
export function undisturbedText(found: Undisturbed | null, colours: Colours = noColours): string | null {
  if (found === null) return null;
  const why = whyNotUndisturbed(found);
  const answer = colours[answerColours[found.answer]](found.answer);
  return `training undisturbed: ${answer}${why === null ? "" : ` (${why})`}`;
}
