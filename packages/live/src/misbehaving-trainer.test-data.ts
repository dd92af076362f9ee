import { expect, vi } from "vitest";
import type { Snapshot } from "@periodic-eval/contracts";
import { fileStore, readRun } from "@periodic-eval/store";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { endedText } from "./connection.ts";
import { maximumLine } from "./protocol.ts";
import { send, train, type Message, type Written } from "./scripted-client.test-data.ts";

/** Returns what the host gets in place of a message; undefined if the message cannot have this fault. */
type Write = (message: Message) => Written | undefined;

export interface Fault {
  readonly write: Write;
  /** What the host says; null if the call fails, and training goes on. */
  readonly says: string | null;
  /** Whether the trainer sends nothing after the fault. */
  readonly isLast?: boolean;
  readonly isGone?: boolean;
}

const inRows =
  (change: (row: unknown, at: number) => readonly unknown[]): Write =>
  ({ rows, ...message }) =>
    rows === undefined ? undefined : send({ ...message, rows: (rows as unknown[]).flatMap(change) });

const isScored = (row: unknown): row is { readonly nats: unknown } =>
  typeof row === "object" && row !== null && "nats" in row;

/** Changes the answer to `enter`. A wrong answer to `leave` is a broken receipt. */
const inResult =
  (write: (message: Message) => string): Write =>
  (message) =>
    message["result"]?.before === undefined ? undefined : write(message);

/** The ways in which a trainer misbehaves at a message. */
export const faults: Readonly<Record<string, Fault>> = {
  "ends its output": { write: () => ({ last: "" }), says: endedText },
  "ends in the middle of a line": {
    write: (message) => ({ last: send(message).slice(0, -10) }),
    says: endedText,
  },
  "is gone, while a process that it forked holds the pipe": {
    write: () => "",
    says: endedText,
    isLast: true,
    isGone: true,
  },
  "says nothing more": {
    write: ({ method }) => (method === undefined ? "" : undefined),
    says: "the trainer's process said nothing for 300 seconds",
    isLast: true,
  },
  "writes a line that is not JSON": {
    write: () => "Traceback (most recent call last):\n",
    says: 'the trainer sent a line that is not JSON: "Traceback (most recent call last):"',
  },
  "writes JSON that is no message": {
    write: () => "[]\n",
    says: "the trainer sent a line that is no message: []",
  },
  "writes a line of more than 64 MB": {
    write: () => `"${" ".repeat(maximumLine)}"\n`,
    says: `the trainer sent a line of more than ${maximumLine} bytes`,
  },
  "answers a call that nobody made": {
    write: () => send({ id: 1_000_000, result: {} }),
    says: "the trainer sent an answer to the call 1000000, which nobody made",
  },
  "leaves out a row": { write: inRows((row, at) => (at === 0 ? [] : [row])), says: null },
  "sends a row too many": { write: inRows((row, at) => (at === 0 ? [row, row] : [row])), says: null },
  "answers rows of another shape": { write: inRows(() => [{ surprise: true }]), says: null },
  "answers NaN": {
    write: inRows((row) => [isScored(row) && Array.isArray(row.nats) ? { ...row, nats: [null] } : row]),
    says: null,
  },
  "answers vectors of NaN": {
    write: inRows((row) => [
      isScored(row) && typeof row.nats === "string"
        ? { ...row, nats: Buffer.from(row.nats, "base64").fill(255).toString("base64") }
        : row,
    ]),
    says: null,
  },
  "answers too few numbers": {
    write: inRows((row) => [isScored(row) ? { ...row, nats: Array.isArray(row.nats) ? [] : "" } : row]),
    says: null,
  },
  "answers vectors that are cut off": {
    write: inRows((row) => [isScored(row) && typeof row.nats === "string" ? { ...row, nats: "AAAA" } : row]),
    says: null,
  },
  "answers a result of another shape": {
    write: inResult(({ id }) => send({ id, result: { surprise: true } })),
    says: null,
  },
  "answers rows where a result belongs": {
    write: inResult((message) => send({ id: message["id"], rows: [1] }) + send(message)),
    says: null,
  },
  "answers an error": {
    write: inResult(({ id }) =>
      send({ id, error: { code: "memory", where: "", got: "CUDA out of memory" } }),
    ),
    says: null,
  },
};

/** Trains with a fault at the k-th message that can have it. Returns what the host said; null if there is no such message. */
async function trainWith(runDir: string, { write, isLast, isGone }: Fault, k: number) {
  let [seen, isFaulty] = [0, false];
  let later: NodeJS.Timeout | undefined;
  const said: string[] = [];
  const change = (message: Message): Written => {
    if (isFaulty && isLast) return "";
    const faulty = write(message);
    if (faulty === undefined || (seen += 1) !== k) return send(message);
    isFaulty = true;
    later = setTimeout(() => vi.advanceTimersByTime(301_000), 20);
    return faulty;
  };
  await train({
    runDir,
    change,
    host: { isTrainerGone: () => isFaulty && isGone === true },
    logger: { event: (event) => void (event.kind === "warning" && said.push(event.message)) },
  }).catch((error: unknown) => said.push((error as Error).message));
  clearTimeout(later);
  return isFaulty ? said : null;
}

/** Returns the snapshots of a run without times and their hashes. */
async function snapshotsOf(runDir: string): Promise<readonly unknown[]> {
  const strip = (snapshot: Snapshot) => ({ ...snapshot, created_at: "", timing: {}, sha256: "" });
  return (await fileStore(runDir).list()).map(strip);
}

/** Returns the snapshots of a training without faults. */
export async function undisturbed(): Promise<readonly unknown[]> {
  const runDir = temporaryFolder();
  expect(await train({ runDir })).toBeNull();
  return snapshotsOf(runDir);
}

/**
 * Checks a training with a fault: what the host says, that its run can be read, and that the next training leaves the snapshots of an
 * undisturbed one. Needs fake intervals.
 *
 * @returns False if no k-th message can have the fault.
 */
export async function checkFault(fault: Fault, k: number, whole: readonly unknown[]): Promise<boolean> {
  const runDir = temporaryFolder();
  const said = await trainWith(runDir, fault, k);
  if (said === null) return false;
  const { says } = fault;
  const ends = said.filter((line) => /training failed|no hello|the live connection/.test(line));
  const closings = (await fileStore(runDir).closings?.()) ?? [];
  const isOver = closings.some(({ finished }) => finished);
  // A training that has ended lost nothing.
  expect(ends).toEqual(says === null || isOver ? [] : [expect.stringContaining(says)]);
  const { problems } = await readRun(runDir);
  expect(problems).toEqual([]);
  expect(await train({ runDir })).toBeNull();
  // A measurement that took place after a start that failed was compared with nothing.
  const compared = (one: unknown) => (says === null ? { ...(one as Snapshot), paired: null } : one);
  expect((await snapshotsOf(runDir)).map(compared)).toEqual(whole.map(compared));
  return true;
}
