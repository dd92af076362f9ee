import { fork, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { extname } from "node:path";
import { AbortError } from "p-retry";
import { jsonNumbers } from "../json-number.ts";
import type { Point } from "../outbox/journal-line.ts";
import type { Destination } from "../outbox/sending.ts";
import type { Answer, Command } from "./messages.ts";

export interface WandbPlace {
  readonly project: string;
  readonly entity: string | null;
  readonly name: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly baseUrl: string;
}

/** Maximum number of lines in a request. */
const batchSize = 1000;

/**
 * Writes a W&B run with the SDK in a child process, because version 0.5.1 exits its process when a run cannot be opened and on
 * SIGINT, and draws from `Math.random`. Any failure ends the child process. The next attempt continues after the lines that the
 * server reports.
 *
 * @param execArgv Node flags of the child process. Default: the flags of this process, so that it also runs from source if this process does.
 * @param senderFile Program of the child process. Default: sender.ts next to this file, or its compiled form.
 */
export function wandbDestination(
  place: WandbPlace,
  execArgv: readonly string[] = process.execArgv.filter((flag) => !flag.startsWith("--inspect")),
  senderFile: URL = new URL(`./sender${extname(import.meta.url)}`, import.meta.url),
): Destination {
  let sender: Sender | null = null;
  let id = "";
  /** Number of points that the server has accepted. */
  let sent = 0;
  /** Whether the server may have the run. */
  let mayExist = false;

  async function start(): Promise<{ readonly opened: Sender; readonly lines: number }> {
    sender?.end();
    const opened = startSender(senderFile, execArgv);
    sender = opened;
    const lines = await opened.ask({ kind: "open", id, ...place, sent: mayExist ? sent : null });
    mayExist = true;
    return { opened, lines };
  }

  return {
    name: "wandb",
    pauseSeconds: 5,
    async open({ run, sent: sentBefore, storeRun }) {
      const known = run as { readonly id: string; readonly project: string } | null;
      if (known !== null && known.project !== place.project)
        throw new AbortError(`this run was logged to another project, ${known.project}`);
      mayExist ||= known !== null;
      id = known?.id ?? randomBytes(4).toString("hex");
      // Store the id before the server learns of it, so that a process that dies in between leaves no second run.
      if (known === null) storeRun({ id, project: place.project });
      const { lines } = await start();
      sent = Math.max(sentBefore, lines);
      return lines;
    },
    async send(points) {
      let open = sender;
      if (open === null || open.hasEnded) {
        const { opened, lines } = await start();
        // The last request may have been accepted although its answer was lost.
        const arrived = Math.min(lines - sent, points.length);
        if (arrived > 0) {
          sent += arrived;
          return arrived;
        }
        open = opened;
      }
      const taken = points.slice(0, batchSize);
      await open.ask({ kind: "log", lines: taken.map(lineOf) });
      sent += taken.length;
      return taken.length;
    },
    async close(isDone) {
      if (isDone) {
        const open = sender === null || sender.hasEnded ? (await start()).opened : sender;
        await open.ask({ kind: "finish" });
      }
      sender?.end();
      sender = null;
    },
  };
}

/** Adds `run_step` for the x axis, because W&B's own step only counts lines. */
const lineOf = ({ values, runStep, phase }: Point) => ({ ...jsonNumbers(values), run_step: runStep, phase });

interface Sender {
  readonly hasEnded: boolean;
  /** Sends a command and resolves with the number of lines in the run. One command at a time. */
  ask(command: Command): Promise<number>;
  end(): void;
}

function startSender(file: URL, execArgv: readonly string[]): Sender {
  const child = fork(file, {
    execArgv: [...execArgv],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    // Keeps a Ctrl-C in the terminal from reaching the child process; training handles it.
    detached: true,
  });
  let hasEnded = false;
  let settle: ((answer: Answer) => void) | null = null;
  const end = (why: string) => {
    hasEnded = true;
    settle?.({ kind: "failed", message: why, isPermanent: false });
  };
  child.on("message", (answer: Answer) => {
    if (answer.kind === "failed") hasEnded = true;
    settle?.(answer);
  });
  child.on("error", (error) => end(error.message));
  child.on("exit", (code) => end(`the process of @wandb/sdk ended with code ${code}`));
  return {
    get hasEnded() {
      return hasEnded;
    },
    async ask(command) {
      keepAlive(child, true);
      try {
        const answer = await new Promise<Answer>((resolve) => {
          settle = resolve;
          if (hasEnded) end("the process of @wandb/sdk has ended");
          else child.send(command);
        });
        if (answer.kind === "done") return answer.lines;
        throw answer.isPermanent ? new AbortError(answer.message) : new Error(answer.message);
      } finally {
        settle = null;
        keepAlive(child, false);
      }
    },
    end() {
      hasEnded = true;
      // The SDK catches softer signals and keeps running.
      child.kill("SIGKILL");
    },
  };
}

/** Makes the child keep this process alive only while a command is pending. */
function keepAlive(child: ChildProcess, isPending: boolean): void {
  if (isPending) {
    child.ref();
    child.channel?.ref();
  } else {
    child.unref();
    child.channel?.unref();
  }
}
