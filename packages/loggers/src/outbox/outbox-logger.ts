import type { Logger, RunProgress, Snapshot } from "@periodic-eval/core";
import { errorMessage, numberFromZero, parseOptions } from "@periodic-eval/contracts/options";
import { join } from "node:path";
import * as z from "zod";
import { clockOption, pathOption, wallClock } from "../options.ts";
import { snapshotScalars, trainScalars } from "../scalars.ts";
import { type Point, openJournal, type Changed, type Journal } from "./journal.ts";
import { describeError, startSending, type Destination, type Sending } from "./sending.ts";

export interface OutboxOptions {
  /** The run's folder. Points to be sent are kept in its `loggers/`. */
  readonly runDir: string;
  /** Seconds for which `close` waits for the server. Default: 30. */
  readonly closeSeconds?: number;
  /** Returns milliseconds since 1970. For tests. */
  readonly now?: () => number;
}

/** Schema fields of `OutboxOptions`, for the schemas of loggers that extend it. */
export const outboxFields = {
  runDir: pathOption,
  closeSeconds: numberFromZero("seconds, 0 or more").optional(),
  now: clockOption,
} satisfies Record<keyof OutboxOptions, z.ZodType>;

const schema = z.object(outboxFields);

/**
 * Returns a logger that writes everything to `run_dir/loggers/<name>.jsonl` and sends it to a server from there, in order, in
 * the background and with retries. Training never waits for the server. Points that are unsent when the process ends are sent
 * when the run resumes. A resumed or restarted phase does not send a value twice. If a value has changed, the new one is sent
 * too, because the servers are append-only; `close` then reports the steps.
 */
export function outboxLogger(destination: Destination, options: OutboxOptions): Logger {
  const { name } = destination;
  parseOptions(`${name}Logger options`, schema, options);
  const { runDir, closeSeconds = 30, now = wallClock } = options;
  let open: { readonly journal: Journal; readonly sending: Sending } | null = null;
  /** The error for a file that cannot be read. Stored, so that the next steps do not try again. */
  let broken: { readonly error: unknown } | null = null;

  function opened() {
    if (broken !== null) throw broken.error;
    try {
      if (open === null) {
        const journal = openJournal(join(runDir, "loggers", `${name}.jsonl`));
        open = { journal, sending: startSending(destination, journal) };
      }
      return open;
    } catch (error) {
      broken = { error };
      throw error;
    }
  }

  function add({ journal, sending }: ReturnType<typeof opened>, point: Omit<Point, "time">): void {
    journal.add({ ...point, time: now() });
    sending.wake();
  }

  function addSnapshot(to: ReturnType<typeof opened>, snapshot: Snapshot): void {
    const values = snapshotScalars(snapshot);
    if (Object.keys(values).length > 0)
      add(to, { phase: snapshot.phase, runStep: snapshot.run_step, values, of: "snapshot" });
  }

  return {
    name,
    // `close` has its own timeout; everything else is fast.
    patienceSeconds: closeSeconds + 60,
    begin({ phase, resumed, runStep, standing }) {
      const to = opened();
      to.journal.begin(phase, resumed ? runStep : 0);
      for (const snapshot of standing) addSnapshot(to, snapshot);
    },
    train(metrics, { phase, runStep }: RunProgress) {
      const to = opened();
      add(to, { phase, runStep, values: trainScalars(metrics), of: "training" });
      to.sending.throwFailure();
    },
    snapshot(snapshot) {
      const to = opened();
      addSnapshot(to, snapshot);
      to.sending.throwFailure();
    },
    async close() {
      const unreadable = broken;
      broken = null;
      if (unreadable !== null)
        throw new Error(`nothing was stored or sent: ${errorMessage(unreadable.error)}`, {
          cause: unreadable.error,
        });
      if (open === null) return;
      const { journal, sending } = open;
      open = null;
      try {
        await sending.end(closeSeconds);
      } finally {
        journal.close();
      }
      const messages = [unsentText(journal, sending, closeSeconds), changedText(journal.changed, name)];
      if (messages.some((text) => text !== null)) throw new Error(messages.filter(Boolean).join("; "));
    },
  };
}

function unsentText({ unsent, sent, path }: Journal, { lastError }: Sending, seconds: number): string | null {
  const { length } = unsent;
  if (length === 0) return null;
  const why = lastError === null ? `timeout after ${seconds} s` : describeError(lastError);
  return `${length} of ${sent + length} points were not sent (${why}); they are kept in ${path} and will be sent when the run resumes`;
}

function changedText(changed: Changed | null, name: string): string | null {
  if (changed === null) return null;
  const { values, firstRunStep, lastRunStep } = changed;
  return `${values} values between run steps ${firstRunStep} and ${lastRunStep} changed after they were logged; ${name} is append-only and shows both, of which the later one counts`;
}
