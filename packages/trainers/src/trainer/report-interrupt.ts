import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Session } from "@periodic-eval/core";

/** Exit code of a program that Ctrl-C ended. */
const interruptedCode = 130;

/** The training that Ctrl-C ends. */
interface Interrupted {
  readonly session: Pick<Session, "phase" | "progress">;
  readonly runDir: string;
  readonly resume: "auto" | "never";
}

/**
 * Makes Ctrl-C say where training stopped, what is saved and how to continue, before it ends the process as it would anyway.
 * Does nothing if the program listens for Ctrl-C itself, now or later.
 *
 * @returns A function that stops listening.
 */
export function reportInterrupt(interrupted: Interrupted): () => void {
  const report = () => {
    stopListening();
    if (process.listenerCount("SIGINT") > 0) return;
    console.warn(interruptedText(interrupted));
    process.exit(interruptedCode);
  };
  const stopListening = () => void process.off("SIGINT", report);
  if (process.listenerCount("SIGINT") === 0) process.on("SIGINT", report);
  return stopListening;
}

export function interruptedText({ session: { phase, progress }, runDir, resume }: Interrupted): string {
  const { step, maxSteps } = progress;
  const place = `${phase} interrupted at step ${step}${maxSteps === null ? "" : ` of ${maxSteps}`}`;
  const saved = newestCheckpoint(join(runDir, "checkpoints", phase));
  const again = resume === "never" ? 'Run it again with resume: "auto"' : "Run it again";
  const next =
    saved === null
      ? "there is no checkpoint yet: config.saveSteps writes some on the way. Run it again to start over."
      : `the newest checkpoint is of step ${saved}. ${again} to continue from there.`;
  return `[periodic-eval] ${place}. The measurements are saved in ${join(runDir, "periodic_eval")}, and ${next}`;
}

function newestCheckpoint(folder: string): number | null {
  if (!existsSync(folder)) return null;
  const steps = readdirSync(folder).flatMap((name) => /^step_(\d+)$/.exec(name)?.[1] ?? []);
  return steps.length === 0 ? null : Math.max(...steps.map(Number));
}
