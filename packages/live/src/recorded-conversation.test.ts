import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { createInterface } from "node:readline";
import { expect, it } from "vitest";
import { buildPeriodicEval } from "@periodic-eval/core";
import { readRun, undisturbed } from "@periodic-eval/store";
import { microWorld } from "../../../examples/micro-world/paths.ts";
import { temporaryFolder } from "../../testing/src/temporary-folder.test-data.ts";
import { serveTrainer } from "./host.ts";
import type { Message } from "./scripted-client.test-data.ts";

/**
 * What periodic-eval for Python 0.1 and its host said on 2026-11-29, over a training of the embedded model with LoRA, one line per message.
 * It stays as it is: trainers with that client must work with each later host.
 */
const file = new URL("testdata/conversation-1.test-data.jsonl", import.meta.url);

interface Line {
  readonly from: "trainer" | "host";
  readonly message: Message;
}

/** The params that hold one entry for each row of a call. */
const perRow = ["texts", "rows", "chats", "candidates"];

/** Names each row of a call by its content and that of the call. */
function rowKeys(method: string, params: Message): readonly string[] {
  const entries = Object.entries(params);
  const isPerRow = ([name, value]: (typeof entries)[number]) => perRow.includes(name) && Array.isArray(value);
  const ofCall = Object.fromEntries(entries.filter((entry) => !isPerRow(entry)));
  const lists = entries.filter(isPerRow).map(([, list]) => list as readonly unknown[]);
  return lists[0]!.map((_, at) => JSON.stringify([method, ofCall, lists.map((list) => list[at])]));
}

/** A call of the trainer, and what it answered to the host's calls before its own was answered. */
interface Exchange {
  readonly call: Message;
  readonly done: Message;
  /** Rows by their content, so that a host may ask for them in other batches. */
  readonly rows: ReadonlyMap<string, unknown>;
  /** What `enter` answered by its seed, and the `leave` after it. */
  readonly windows: ReadonlyMap<string, { readonly before: Message; readonly evidence: Message }>;
}

function exchangesOf(lines: readonly Line[]): readonly Exchange[] {
  const exchanges: Exchange[] = [];
  let asked = new Map<number, Message>();
  let [rows, windows] = [new Map<string, unknown>(), new Map()];
  let [call, seed, before] = [{} as Message, "", {} as Message];
  let found: unknown[] = [];
  for (const { from, message } of lines) {
    if (from === "host" && message["method"] !== undefined) {
      if (message["id"] !== undefined) asked.set(message["id"], message);
    } else if (from === "host") {
      exchanges.push({ call, done: message["result"], rows, windows });
      [rows, windows, asked] = [new Map(), new Map(), new Map()];
    } else if (message["method"] !== undefined) call = message;
    else if (message["rows"] !== undefined) found.push(...message["rows"]);
    else {
      const { method, params } = asked.get(message["id"])!;
      if (method === "enter") [seed, before] = [params.seed, message["result"]];
      else if (method === "leave") windows.set(seed, { before, evidence: message["result"] });
      else for (const [at, key] of rowKeys(method, params).entries()) rows.set(key, found[at]);
      found = [];
    }
  }
  return exchanges;
}

const lines = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as Line);

it("serves a client of protocol 1: asks it what it asked then, and answers the same", async () => {
  const folder = temporaryFolder();
  await writeFile(join(folder, "leakage.json"), '["What do you do in the morning?"]');
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = serveTrainer({
    input,
    output,
    async open({ config, phase }) {
      const paths = {
        questions: microWorld("questions.jsonl"),
        leakage_questions: join(folder, "leakage.json"),
      };
      const { callbacks, session } = await buildPeriodicEval({ ...(config as Message), ...paths }, { phase });
      return { callbacks, ...session, loggers: [] };
    },
    warn: (message) => expect.unreachable(message),
  }).finally(() => output.end());
  const send = (message: Message) => void input.write(`${JSON.stringify(message)}\n`);
  const heard = createInterface({ input: output })[Symbol.asyncIterator]();
  const receive = async () => JSON.parse((await heard.next()).value as string) as Message;
  const exchanges = exchangesOf(lines);
  const runDir = join(folder, "run");
  const metrics: Metrics[] = [];
  for (const { call, done, rows, windows } of exchanges) {
    const params = call["method"] === "hello" ? { ...call["params"], run_dir: runDir } : call["params"];
    send({ ...call, params });
    let seed = "";
    for (let message = await receive(); ; message = await receive()) {
      const { id, method, params: asked } = message;
      if (method === undefined) {
        const { next_step, stop, save } = done;
        expect(message).toMatchObject({ id: call["id"], result: { next_step, stop, save } });
        metrics.push(...message["result"].metrics);
        break;
      }
      if (id === undefined) continue;
      if (method === "enter") seed = asked.seed;
      const window = windows.get(seed);
      if (method === "enter") send({ id, result: window?.before });
      else if (method === "leave") send({ id, result: window?.evidence });
      else {
        const keys = rowKeys(method, asked);
        expect(keys.filter((key) => !rows.has(key))).toEqual([]);
        send({ id, rows: keys.map((key) => rows.get(key)) });
        send({ id, result: {} });
      }
    }
  }
  input.end();
  await served;
  expect(exchanges.map(({ call }) => call["method"])).toEqual([
    "hello",
    "step",
    "save",
    "step",
    "save",
    "end",
    "close",
  ]);
  // Answers may be graded at one step or the next, and a later host may have further metrics.
  const recorded = untimed(exchanges.flatMap(({ done }) => done["metrics"] as Metrics[]));
  expect(untimed(metrics)).toEqual(expect.arrayContaining([...recorded]));
  const { phases } = await readRun(runDir);
  const { snapshots } = phases[0]!;
  expect(snapshots.map(({ status }) => status)).toEqual(Array.from({ length: 9 }, () => "complete"));
  expect(undisturbed(snapshots)!.answer).toBe("yes");
});

interface Metrics {
  readonly step: number;
  readonly values: Readonly<Record<string, number>>;
}

/** Returns metrics in the order of their names, without times. */
function untimed(metrics: readonly Metrics[]): readonly string[] {
  return metrics
    .flatMap(({ step, values }) => Object.entries(values).map(([name, value]) => `${name} ${step}: ${value}`))
    .filter((line) => !/seconds|overhead/.test(line))
    .sort();
}
