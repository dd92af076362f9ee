import type { Logger, PhaseEnd, Snapshot, SnapshotKey } from "@periodic-eval/contracts";
import { printable } from "@periodic-eval/contracts/options";
import { workingSeconds, inRunOrder, keyText } from "@periodic-eval/store";
import {
  closingText,
  measuringText,
  noColours,
  repeatedReason,
  snapshotText,
  trainingText,
  type Colours,
} from "./sentences.ts";
import { ProgressLines } from "./progress-lines.ts";

/** Grading that takes less time is reported by its result only. */
const shortGradingMs = 1_000;

/** Lines about measurements that are being graded. A rule grades before its line is due. */
class GradingLines {
  readonly #keep: (line: string) => void;
  readonly #waiting = new Map<string, { readonly timer: ReturnType<typeof setTimeout>; print(): void }>();

  constructor(keep: (line: string) => void) {
    this.#keep = keep;
  }

  wait(key: SnapshotKey, line: string): void {
    this.end(key);
    const print = () => {
      this.end(key);
      this.#keep(line);
    };
    const timer = setTimeout(print, shortGradingMs);
    // Browsers' timers are numbers.
    timer.unref?.();
    this.#waiting.set(keyText(key), { timer, print });
  }

  end(key: SnapshotKey): void {
    clearTimeout(this.#waiting.get(keyText(key))?.timer);
    this.#waiting.delete(keyText(key));
  }

  flush(): void {
    for (const { print } of this.#waiting.values()) print();
  }
}

/** Where a console logger prints: a screen shows every update in one line; a file or a pipe gets only the lines to keep. */
export interface Display {
  /** Shows a line that the next one replaces; absent if the display cannot. */
  readonly update?: (line: string) => void;
  /** Prints a permanent line. */
  keep(line: string): void;
  warn(where: string, message: string): void;
  close?(): void;
}

export interface DisplayLoggerOptions {
  readonly colours?: Colours;
  /** Whether the last line says where the run is; default true. */
  readonly closingLine?: boolean;
  /** Returns seconds since an arbitrary origin; for tests. */
  readonly clock?: () => number;
}

/**
 * Returns the logger that every session without `loggers` has: plain lines on the console, no colours, no cursor movement.
 * Prints a line for each tenth of a phase, measurement, warning and plan, and one at the end.
 */
export function plainConsoleLogger(): Logger {
  keepRunningWithoutOutput();
  return displayLogger({
    // oxlint-disable-next-line no-console -- printing is the purpose of this logger
    keep: (line) => console.log(printable(line)),
    warn: (where, message) => console.warn(printable(`warning: ${where}: ${message}`)),
  });
}

/** Marks the listener, also for other copies of this module, so that each stream has one. */
const mark: unique symbol = Symbol.for("@periodic-eval/core ignores output errors");
const ignoreError = Object.assign((): void => undefined, { [mark]: true });

/**
 * Without a listener for stream errors (`head` closed the pipe, the disk is full), Node would end the training process. The
 * listeners stay, one for each stream of the process: an error may follow long after the last line.
 */
export function keepRunningWithoutOutput(): void {
  // Browsers have a console but no streams.
  if (typeof process === "undefined") return;
  for (const stream of [process.stdout, process.stderr] as readonly (NodeJS.WriteStream | undefined)[])
    if (stream?.listeners("error").some((listener) => mark in listener) === false)
      stream.on("error", ignoreError);
}

/** Returns a logger that says what happens in a run on a display. */
export function displayLogger(
  display: Display,
  { colours = noColours, closingLine = true, clock = workingSeconds }: DisplayLoggerOptions = {},
): Logger {
  const lines = new ProgressLines(clock);
  const snapshots = new Map<string, Snapshot>();
  /** The last reason of each id without a result. */
  const reasons = new Map<string, Reason>();
  let run: string | null = null;
  let end: PhaseEnd | null = null;
  let phase = "";
  let measured = "";
  const grading = new GradingLines((line) => display.keep(line));
  const isScreen = display.update !== undefined;
  const show = (activity: string) =>
    display.update?.([activity, measured].filter((part) => part !== "").join(colours.dim("  │  ")));
  return {
    name: "console",
    begin(at) {
      run = at.run ?? null;
      ({ phase } = at);
      for (const snapshot of at.standing) snapshots.set(keyText(snapshot), snapshot);
      end = null;
      for (const line of lines.beginning(at, colours)) display.keep(line);
    },
    train(metrics, at) {
      ({ phase } = at);
      const training = trainingText(metrics, at, colours);
      show(training);
      if (lines.isDue(at) && !isScreen) display.keep(training);
    },
    event(event) {
      // A failed measurement is reported once, with its snapshot.
      if (event.kind === "warning" && event.failed !== undefined) return;
      if (event.kind === "warning") return display.warn(event.where, event.message);
      if (event.kind === "graded" || event.kind === "stop") return;
      if (event.kind === "plan") return display.keep(colours.dim(`plan: ${event.message}`));
      const measuring = measuringText(event, phase, colours, lines.secondsOf(event.id));
      show(measuring);
      if (!isScreen && lines.isMeasuringDue(event)) display.keep(measuring);
    },
    snapshot(snapshot) {
      const { phase: name, step, status } = snapshot;
      const earlier = sameReason(snapshot, reasons);
      const isRepeated = earlier?.lastStep === step;
      if (earlier !== null) reasons.set(`${name}/${snapshot.id}`, { ...earlier, lastStep: step });
      const reason = earlier === null ? snapshot.reason : `as at step ${earlier.firstStep}`;
      measured = snapshotText({ ...snapshot, reason }, colours);
      snapshots.set(keyText(snapshot), snapshot);
      lines.learn(snapshot);
      grading.end(snapshot);
      // Measured once more at the same step, with the same outcome.
      if (isRepeated) return;
      const line = `${colours.bold(name)} step ${step}  ${measured}`;
      if (status === "grading") return grading.wait(snapshot, line);
      if (status === "failed") display.warn(`${name} step ${step}`, measured);
      else display.keep(line);
    },
    end(at) {
      end = at;
    },
    close() {
      grading.flush();
      const early = end?.finished === false || end?.stop !== undefined ? end : null;
      const all = inRunOrder([...snapshots.values()]);
      if (closingLine && all.length > 0)
        display.keep(closingText(run, all, colours, early, end?.lost ?? null));
      // The same logger may serve another run.
      snapshots.clear();
      reasons.clear();
      lines.close();
      display.close?.();
    },
  };
}

/** Why an id has no result: the steps at which this was said first and last. */
interface Reason {
  readonly reason: string;
  readonly firstStep: number;
  readonly lastStep: number;
}

/** Returns the reason known of an id if a snapshot without a result repeats it, else remembers the new one and returns null. */
function sameReason(snapshot: Snapshot, reasons: Map<string, Reason>): Reason | null {
  const { phase, id, step, status } = snapshot;
  const text = repeatedReason(snapshot);
  if (text === null || (status !== "failed" && status !== "skipped")) return null;
  const earlier = reasons.get(`${phase}/${id}`);
  if (earlier?.reason === text) return earlier;
  reasons.set(`${phase}/${id}`, { reason: text, firstStep: step, lastStep: step });
  return null;
}
