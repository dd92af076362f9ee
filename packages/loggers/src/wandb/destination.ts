import { fork, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { extname } from "node:path";
import { AbortError } from "p-retry";
import { jsonNumbers } from "../json-number.ts";
import type { Point } from "../outbox/journal-line.ts";
import type { Destination } from "../outbox/outbox-logger.ts";
import type { Answer, Order } from "./messages.ts";

export interface WandbPlace {
  readonly project: string;
  readonly entity: string | null;
  readonly name: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly baseUrl: string;
}

/** Most lines in one request. */
const batchSize = 1000;

/**
 * A run of W&B, written by its SDK in a process of its own: version 0.5.1 ends its process where a run cannot be opened and
 * on SIGINT, and draws from `Math.random`. Whatever fails there ends that process, and the next try begins with what the
 * server says it holds.
 *
 * @param execArgv of that process; the flags of this one by default, so that sources run where these do.
 */
export function wandbDestination(
  place: WandbPlace,
  execArgv: readonly string[] = process.execArgv.filter((flag) => !flag.startsWith("--inspect")),
): Destination {
  let sender: Sender | null = null;
  let id = "";
  /** Points that the server took. */
  let sent = 0;
  /** Whether there is something to go on from. */
  let isThere = false;

  async function start(): Promise<{ readonly opened: Sender; readonly lines: number }> {
    sender?.end();
    const opened = startSender(execArgv);
    sender = opened;
    const lines = await opened.ask({ kind: "open", id, ...place, sent: isThere ? sent : null });
    isThere = true;
    return { opened, lines };
  }

  return {
    name: "wandb",
    pauseSeconds: 5,
    async open({ run, sent: sentBefore, keep }) {
      const known = run as { readonly id: string; readonly project: string } | null;
      if (known !== null && known.project !== place.project)
        throw new AbortError(`this run was logged to another project, ${known.project}`);
      isThere ||= known !== null;
      id = known?.id ?? randomBytes(4).toString("hex");
      // Before the server hears of it: a process that dies meanwhile leaves no second run.
      if (known === null) keep({ id, project: place.project });
      const { lines } = await start();
      sent = Math.max(sentBefore, lines);
      return lines;
    },
    async send(points) {
      let open = sender;
      if (open === null || open.hasEnded) {
        const { opened, lines } = await start();
        // The last try may have arrived though its answer did not.
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

/** The axis stands beside the values: W&B's own steps only count lines. */
const lineOf = ({ values, runStep, phase }: Point) => ({ ...jsonNumbers(values), run_step: runStep, phase });

interface Sender {
  readonly hasEnded: boolean;
  /** Resolves with the lines that the run holds. One question at a time. */
  ask(order: Order): Promise<number>;
  end(): void;
}

function startSender(execArgv: readonly string[]): Sender {
  // The source's own ending: `.ts` where it runs from source.
  const file = new URL(`./sender${extname(import.meta.url)}`, import.meta.url);
  const child = fork(file, {
    execArgv: [...execArgv],
    stdio: ["ignore", "ignore", "ignore", "ipc"],
    // Out of reach of a Ctrl-C in the terminal, which is training's to answer.
    detached: true,
  });
  let hasEnded = false;
  let settle: ((answer: Answer) => void) | null = null;
  const end = (why: string) => {
    hasEnded = true;
    settle?.({ kind: "failed", message: why, isFinal: false });
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
    async ask(order) {
      keepAlive(child, true);
      try {
        const answer = await new Promise<Answer>((resolve) => {
          settle = resolve;
          if (hasEnded) end("the process of @wandb/sdk has ended");
          else child.send(order);
        });
        if (answer.kind === "done") return answer.lines;
        throw answer.isFinal ? new AbortError(answer.message) : new Error(answer.message);
      } finally {
        settle = null;
        keepAlive(child, false);
      }
    },
    end() {
      hasEnded = true;
      // The SDK listens for a gentler signal and stays.
      child.kill("SIGKILL");
    },
  };
}

/** Only while it is asked something does it keep this process from its end. */
function keepAlive(child: ChildProcess, isAsked: boolean): void {
  if (isAsked) {
    child.ref();
    child.channel?.ref();
  } else {
    child.unref();
    child.channel?.unref();
  }
}
