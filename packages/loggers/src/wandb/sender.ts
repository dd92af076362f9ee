// The process that holds W&B's SDK: started by destination.ts, told what to do by messages, gone with its parent.
import { setInterval } from "node:timers";
import wandb from "@wandb/sdk";
import { checkKey, FinalError, historyOf, post, type History, type Server } from "./history.ts";
import type { Answer, Order } from "./messages.ts";
import { pollMilliseconds, shortenWaits, type QueueDelay } from "./queue-delay.ts";

/** Longest that the SDK may take to open a run: what was refused it waits for again and again, with no new request. */
const openSeconds = 60;

type Run = Awaited<ReturnType<typeof wandb.init>>;

/** What the SDK keeps to itself and lacks: going on in a run, and looking at what the server answers. */
interface FileStream {
  lastChunks: Record<"wandb-history.jsonl" | "wandb-summary.json", { offset: number; data: object }>;
  delay?: QueueDelay;
  send(chunk: { files?: { "wandb-history.jsonl"?: { content: readonly string[] } } }): Promise<unknown>;
  runPath: string;
}

let apiKey = "";
let run: Run | null = null;
let stream: FileStream | null = null;
/** Lines of the run: handed to the SDK, and taken by the server. */
let [handed, taken] = [0, 0];

async function open(order: Extract<Order, { kind: "open" }>): Promise<void> {
  const { id, project, entity, name, config, baseUrl, sent } = order;
  apiKey = (await wandb.login({ host: baseUrl, timeout: 10_000 }).catch(asFinal))!;
  const server = { baseUrl, apiKey };
  await checkKey(server);
  const history =
    sent === null ? { lines: 0, summary: {} } : await historyOf(server, { id, project, entity });
  const timer = setTimeout(
    () => fail(new Error(`W&B's SDK opened no run in ${openSeconds} s`)),
    1000 * openSeconds,
  );
  run = await wandb.init({
    id,
    project,
    ...(entity !== null && { entity }),
    ...(name !== null && { name }),
    config: Object.fromEntries(Object.entries(config).map(([key, value]) => [key, { value }])),
    settings: { baseUrl, apiKey, silent: true },
  });
  clearTimeout(timer);
  stream = goOn(run, server, { ...history, lines: Math.max(history.lines, sent ?? 0) });
}

/** The SDK would write from line 0 on again, and lose what a server does not take at once. */
function goOn(opened: Run, server: Server, { lines, summary }: History): FileStream {
  const sender = opened._messenger.sender!;
  const fileStream = sender.filestream as unknown as FileStream;
  // They are there only now: the second before a run is opened stays.
  for (const delay of [sender.delay, fileStream.delay]) shortenWaits(delay, () => isAsked);
  fileStream.lastChunks["wandb-history.jsonl"].offset = lines;
  fileStream.lastChunks["wandb-summary.json"].data = { ...summary };
  opened.step = lines;
  [handed, taken] = [lines, lines];
  fileStream.send = async (chunk) => {
    try {
      await post(server, fileStream.runPath, chunk);
      taken += chunk.files?.["wandb-history.jsonl"]?.content.length ?? 0;
    } catch (error) {
      fail(error);
    }
  };
  return fileStream;
}

/** Lines of one each: a step of their own for the SDK, which drops what has an earlier one. */
async function log(lines: readonly Readonly<Record<string, unknown>>[]): Promise<void> {
  for (const line of lines) run!.log({ ...line });
  handed += lines.length;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (taken < handed) return;
      clearInterval(timer);
      resolve();
    }, pollMilliseconds);
  });
}

/** Whether somebody waits for an answer. */
let isAsked = false;

function wakeUp(): void {
  run?._messenger.sender?.delay?.cancel();
  stream?.delay?.cancel();
}

async function follow(order: Order): Promise<void> {
  isAsked = true;
  wakeUp();
  if (order.kind === "open") await open(order);
  if (order.kind === "log") await log(order.lines);
  if (order.kind === "finish") await run?.finish();
  isAsked = false;
  answer({ kind: "done", lines: taken });
}

function fail(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
  // What a server or the SDK says is not ours to trust with the key.
  const message = apiKey === "" ? text + cause : (text + cause).replaceAll(apiKey, "…");
  answer({ kind: "failed", message, isFinal: error instanceof FinalError }, () => process.exit(1));
}

function asFinal(error: unknown): never {
  throw new FinalError(error instanceof Error ? error.message : String(error), { cause: error });
}

const answer = (said: Answer, then = () => {}) => void process.send!(said, then);

// The SDK throws what fails in its own message handlers.
process.on("uncaughtException", fail);
process.on("disconnect", () => process.exit());
process.on("message", (order: Order) => void follow(order).catch(fail));
