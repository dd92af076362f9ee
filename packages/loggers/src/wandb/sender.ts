// The child process that runs W&B's SDK. destination.ts starts it and sends it commands; it exits with its parent.
import { setInterval } from "node:timers";
import wandb from "@wandb/sdk";
import {
  checkKey,
  PermanentError,
  historyOf,
  post,
  withoutKey,
  type History,
  type Server,
} from "./history.ts";
import type { Answer, Command } from "./messages.ts";
import { pollMilliseconds, shortenWaits, type QueueDelay } from "./queue-delay.ts";

/** Timeout for the SDK to open a run. After a rejection, the SDK would wait forever without a new request. */
const openSeconds = 60;

/** The SDK itself needs about 100 MB. */
const maxMemoryBytes = 2 ** 30;

type Run = Awaited<ReturnType<typeof wandb.init>>;

/** Internals of the SDK. Without them it can neither resume a run nor check the server's answers. */
interface FileStream {
  lastChunks: Record<"wandb-history.jsonl" | "wandb-summary.json", { offset: number; data: object }>;
  delay?: QueueDelay;
  send(chunk: { files?: { "wandb-history.jsonl"?: { content: readonly string[] } } }): Promise<unknown>;
  runPath: string;
}

let apiKey = "";
let run: Run | null = null;
let stream: FileStream | null = null;
/** Number of lines that the SDK received, and number of lines that the server accepted. */
let [queued, accepted] = [0, 0];

async function open(command: Extract<Command, { kind: "open" }>): Promise<void> {
  const { id, project, entity, name, config, baseUrl, sent } = command;
  apiKey = (await wandb.login({ host: baseUrl, timeout: 10_000 }).catch(asPermanent))!;
  const server = { baseUrl, apiKey };
  await checkKey(server);
  const history =
    sent === null ? { lines: 0, summary: {} } : await historyOf(server, { id, project, entity });
  const timer = setTimeout(
    () => fail(new Error(`W&B's SDK did not open a run within ${openSeconds} s`)),
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
  stream = resumeAt(run, server, { ...history, lines: Math.max(history.lines, sent ?? 0) });
}

/** Makes the SDK append after the existing lines and check every answer. Unchanged, it overwrites from line 0 and ignores failures. */
function resumeAt(opened: Run, server: Server, { lines, summary }: History): FileStream {
  const sender = opened._messenger.sender!;
  const fileStream = sender.filestream as unknown as FileStream;
  // The delays exist only now, so opening a run still takes a second.
  for (const delay of [sender.delay, fileStream.delay]) shortenWaits(delay, () => isAwaited);
  fileStream.lastChunks["wandb-history.jsonl"].offset = lines;
  fileStream.lastChunks["wandb-summary.json"].data = { ...summary };
  opened.step = lines;
  [queued, accepted] = [lines, lines];
  fileStream.send = async (chunk) => {
    try {
      await post(server, fileStream.runPath, chunk);
      accepted += chunk.files?.["wandb-history.jsonl"]?.content.length ?? 0;
    } catch (error) {
      fail(error);
    }
  };
  return fileStream;
}

/** Logs one line per call, so that each gets its own SDK step: the SDK drops lines with an earlier step. */
async function log(lines: readonly Readonly<Record<string, unknown>>[]): Promise<void> {
  for (const line of lines) run!.log({ ...line });
  queued += lines.length;
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      if (accepted < queued) return;
      clearInterval(timer);
      resolve();
    }, pollMilliseconds);
  });
}

/** Whether the parent is waiting for an answer. */
let isAwaited = false;

function wakeUp(): void {
  run?._messenger.sender?.delay?.cancel();
  stream?.delay?.cancel();
}

async function execute(command: Command): Promise<void> {
  isAwaited = true;
  wakeUp();
  if (command.kind === "open") await open(command);
  if (command.kind === "log") await log(command.lines);
  if (command.kind === "finish") await run?.finish();
  isAwaited = false;
  answer({ kind: "done", lines: accepted });
}

function fail(error: unknown): void {
  const text = error instanceof Error ? error.message : String(error);
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : "";
  // Messages of the server or the SDK might contain the API key.
  answer(
    {
      kind: "failed",
      message: withoutKey(text + cause, apiKey),
      isPermanent: error instanceof PermanentError,
    },
    () => process.exit(1),
  );
}

function asPermanent(error: unknown): never {
  throw new PermanentError(error instanceof Error ? error.message : String(error), { cause: error });
}

const answer = (message: Answer, then = () => {}) => void process.send!(message, then);

// The SDK's own requests have no size limit.
setInterval(() => {
  if (process.memoryUsage.rss() > maxMemoryBytes)
    fail(new PermanentError(`W&B's SDK needs more than ${maxMemoryBytes} bytes of memory`));
}, 500).unref();

// Errors in the message handlers of the SDK arrive here.
process.on("uncaughtException", fail);
process.on("disconnect", () => process.exit());
process.on("message", (command: Command) => void execute(command).catch(fail));
