import { type Undisturbed, type Evidence, type Snapshot, grouped } from "@periodic-eval/contracts";

/**
 * The guards that prove an undisturbed training, and what each observes. A training in another process has a guard for each of its
 * random states instead of `math-random`: `random-torch`, `random-python`.
 */
const required = {
  weights: "the weights",
  optimizer: "the optimizer",
  mode: "the mode",
  "math-random": "the random numbers",
} as const;

type Part = keyof typeof required;
const requiredParts = Object.keys(required) as readonly Part[];

const checkpointPart = "checkpoint";

/**
 * Returns the evidence of a measurement whose weights were read from a checkpoint: guards cannot observe a training in another
 * process.
 */
export function checkpointEvidence(path: string): Evidence {
  const name = path.split(/[\\/]/).findLast((segment) => segment !== "") ?? path;
  const note = `the weights were read from the checkpoint ${name} of another process`;
  return { part: checkpointPart, before: null, after: null, intact: null, note };
}

/** Whether the weights of a measurement were read from a checkpoint of another process. */
export const isOfCheckpoint = ({ receipt }: Pick<Snapshot, "receipt">): boolean =>
  receipt.some(({ part }) => part === checkpointPart);

/** The parts of a snapshot that show whether measuring disturbed training. */
type Measured = Pick<Snapshot, "phase" | "status" | "receipt" | "served" | "timing">;

/**
 * Answers whether measuring left training undisturbed. Only measurements that took place count: a skipped or failed one proves
 * nothing, but a disturbance that it recorded does. If none took place, the answer is `not proven`. Returns null without
 * snapshots.
 */
export function undisturbed(snapshots: readonly Measured[]): Undisturbed | null {
  if (snapshots.length === 0) return null;
  const taken = snapshots.filter(tookPlace);
  const results = [...grouped(taken, ({ phase }) => phase).values()].flatMap((phase) => {
    const elsewhere = whyElsewhere(phase);
    return phase.map((entry) => ({ missing: missingParts(entry), broken: brokenParts(entry), elsewhere }));
  });
  const broken = unique(results.flatMap((result) => result.broken));
  const unproven = results.filter(({ missing }) => missing.length > 0);
  const missing = unique(
    unproven.filter(({ elsewhere }) => elsewhere === null).flatMap((result) => result.missing),
  );
  const elsewhere = unproven.find((result) => result.elsewhere !== null)?.elsewhere ?? null;
  return {
    answer:
      broken.length > 0
        ? "no"
        : missing.length > 0 || taken.length === 0
          ? "not proven"
          : elsewhere !== null
            ? "not applicable"
            : "yes",
    measurements: results.length,
    proven: results.filter((result) => result.missing.length === 0 && result.broken.length === 0).length,
    disturbed: results.filter((result) => result.broken.length > 0).length,
    broken,
    missing,
    elsewhere,
  };
}

/** Returns why the answer is not yes: `no guard observed the optimizer`; null for yes. */
export function whyNotUndisturbed(found: Undisturbed): string | null {
  const { answer, measurements, broken, missing, elsewhere } = found;
  switch (answer) {
    case "yes":
      return null;
    case "no":
      return `measuring changed ${nameParts(broken)}`;
    case "not proven":
      if (measurements === 0) return "no measurement took place: all were skipped or failed";
      return `no guard observed ${nameParts(missing)}`;
    case "not applicable":
      return elsewhere === "checkpoint"
        ? "the weights were read from a checkpoint"
        : "the model was measured on a server";
  }
}

/** Returns the overhead of a phase in percent, from its last snapshot that reports it; null if training ran elsewhere. */
export function overheadOf(phase: readonly Measured[]): number | null {
  if (undisturbed(phase)?.answer === "not applicable") return null;
  return phase.findLast(({ timing }) => timing.overhead_percent !== null)?.timing.overhead_percent ?? null;
}

/** Whether the budget's grace, and not its ceiling, left every measurement of a phase whole. */
export function isWithinGrace(phase: readonly Measured[]): boolean {
  const decisions = phase.flatMap((snapshot) => snapshot.timing.budget ?? []);
  // Missing memory says nothing about time.
  const ofTime = decisions.filter(({ limit }) => limit !== "min_free_bytes");
  return ofTime.length > 0 && ofTime.every(({ limit, reduced }) => limit === "grace_seconds" && !reduced);
}

/**
 * Returns where a governed phase was measured, if only at its start or end, which the budget never limits: `at start and end`, `at the
 * start` or `at the end`. Null if it was measured between them, and without a budget.
 */
export function edgesText(phase: readonly Placed[]): string | null {
  const isEdge = (snapshot: Placed) =>
    snapshot.timing.governor !== "off" && (isStart(snapshot) || isEnd(snapshot));
  if (phase.length === 0 || !phase.every(isEdge)) return null;
  if (!phase.some(isEnd)) return "at the start";
  return phase.some((snapshot) => !isEnd(snapshot)) ? "at start and end" : "at the end";
}

/** The parts of a snapshot that say where in its phase it was measured. */
type Placed = Pick<Snapshot, "timing" | "step" | "max_steps" | "crossed">;

const isStart = ({ step, crossed }: Placed): boolean => step === 0 || crossed.includes("start");
const isEnd = ({ step, max_steps: maxSteps, crossed }: Placed): boolean =>
  step === maxSteps || crossed.includes("end");

function tookPlace({ status, receipt }: Measured): boolean {
  return (status !== "skipped" && status !== "failed") || receipt.some(isBroken);
}

const isBroken = ({ intact, advisory }: Evidence) => intact === false && advisory !== true;
const nameParts = (parts: readonly string[]): string =>
  parts.map((part) => (Object.hasOwn(required, part) ? required[part as Part] : part)).join(", ");
const unique = <T>(values: readonly T[]): readonly T[] => [...new Set(values)];
/** A part may name its guard and, after a slash, what the guard observed. */
const guardOf = ({ part }: Evidence): string => part.split("/", 1)[0]!;
const isProofOf = (part: Part, guard: string): boolean =>
  guard === part || (part === "math-random" && guard.startsWith("random-"));

const brokenParts = ({ receipt }: Measured): readonly string[] =>
  receipt.filter(isBroken).map((evidence) => guardOf(evidence));

/** Returns the required parts that no guard observed, and all parts whose guard observed nothing. */
function missingParts({ receipt }: Measured): readonly string[] {
  const unobserved = receipt
    .filter(({ part, intact, advisory }) => intact === null && advisory !== true && part !== checkpointPart)
    .map(guardOf);
  const isMissing = (part: Part) =>
    unobserved.includes(part) || !receipt.some((evidence) => isProofOf(part, guardOf(evidence)));
  return unique([...requiredParts.filter(isMissing), ...unobserved]);
}

/** Returns where the training of a phase runs if its guards cannot apply; null if it runs in the process that measures. */
function whyElsewhere(phase: readonly Measured[]): Undisturbed["elsewhere"] {
  if (phase.some(isOfCheckpoint)) return "checkpoint";
  return phase.every(({ served }) => served === true) ? "server" : null;
}
