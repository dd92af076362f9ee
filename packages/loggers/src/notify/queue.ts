import { existsSync } from "node:fs";
import { storeError } from "@periodic-eval/store";
import { lineFile } from "../lines/line-file.ts";
import type { Message } from "./messages.ts";

/** A message with the time of its event. */
export type QueuedMessage = Message & { readonly at: string };

/** A line of the file. A message is `sending` before each request and `waiting` after one that certainly failed. */
type QueueLine =
  | { readonly kind: "begun" }
  | { readonly kind: "queued"; readonly message: QueuedMessage }
  | { readonly kind: "sending" | "waiting" | "sent" | "skipped"; readonly key: string }
  | { readonly kind: "dropped"; readonly key: string; readonly why: string };

/** A file in the run's folder with every message and what became of it, so that a resumed run sends none twice. */
export interface Queue {
  readonly path: string;
  /** Whether no process wrote to the file before. */
  readonly isNew: boolean;
  /** Messages that may be sent, in order. */
  readonly waiting: readonly QueuedMessage[];
  /** Why each message was dropped in this process. */
  readonly dropped: readonly string[];
  /** Returns false for a message that is known. */
  add(message: QueuedMessage): boolean;
  /** Marks a message as known without sending it. */
  skip(key: string): void;
  /** Records what happens to the first waiting message. */
  mark(kind: "sending" | "waiting" | "sent"): void;
  /** Gives up the first waiting message. */
  drop(why: string): void;
  close(): void;
}

/** Returns a message's name in a warning: `verdict of em step 4`. */
export const messageName = ({ event, phase, step }: Message): string => `${event} of ${phase} step ${step}`;

/** @throws PeriodicEvalError `store` if the file cannot be read. */
export async function openQueue(path: string): Promise<Queue> {
  const isNew = !existsSync(path);
  const file = lineFile(path, {
    description: "a queue of this logger",
    hasThisFormat: () => true,
    isCutOff: () => true,
  });
  // Removes a last line that a crash cut off.
  await file.drop(() => false);
  const known = new Set<string>();
  const waiting: QueuedMessage[] = [];
  const dropped: string[] = [];

  function write(line: QueueLine): void {
    file.append([JSON.stringify(line)]);
  }

  function remove(key: string): void {
    const at = waiting.findIndex((message) => message.key === key);
    if (at !== -1) waiting.splice(at, 1);
  }

  function drop(message: QueuedMessage, why: string): void {
    write({ kind: "dropped", key: message.key, why });
    remove(message.key);
    dropped.push(`${messageName(message)} (${why})`);
  }

  if (isNew) write({ kind: "begun" });
  const sending = new Set<string>();
  for (const text of await file.lines()) {
    const line = parsedLine(text, path);
    if (line.kind === "begun") continue;
    if (line.kind === "queued") waiting.push(line.message);
    else if (line.kind === "sending") sending.add(line.key);
    else if (line.kind === "waiting") sending.delete(line.key);
    else remove(line.key);
    known.add(line.kind === "queued" ? line.message.key : line.key);
  }
  for (const message of waiting.filter(({ key }) => sending.has(key)))
    drop(message, "the process ended while it was sent, so it may have arrived");

  return {
    path,
    isNew,
    waiting,
    dropped,
    add(message) {
      if (known.has(message.key)) return false;
      known.add(message.key);
      write({ kind: "queued", message });
      waiting.push(message);
      return true;
    },
    skip(key) {
      known.add(key);
      write({ kind: "skipped", key });
    },
    mark(kind) {
      const { key } = waiting[0]!;
      // Even if the disk is full, a message that was sent does not wait.
      if (kind === "sent") waiting.shift();
      write({ kind, key });
      // A crash of the machine must not forget that a message is being sent.
      if (kind === "sending") file.sync();
    },
    drop: (why) => drop(waiting[0]!, why),
    close: () => file.close(),
  };
}

function parsedLine(text: string, path: string): QueueLine {
  try {
    return JSON.parse(text) as QueueLine;
  } catch (error) {
    throw storeError(path, error, "lines that this logger wrote; move the file away to begin a new one");
  }
}
