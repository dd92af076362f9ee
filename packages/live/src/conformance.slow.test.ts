import { PassThrough, Transform } from "node:stream";
import { beforeAll, expect, it } from "vitest";
import { tfjsGuards } from "@periodic-eval/tfjs";
import { LiveClient } from "../../../examples/live-client.ts";
import { ClientChecks } from "./conformance.ts";
import { embeddedModel, type EmbeddedModel } from "./scripted-client.test-data.ts";

let embedded: EmbeddedModel;
beforeAll(async () => {
  embedded = await embeddedModel();
});

// oxlint-disable-next-line typescript/no-explicit-any -- A fault changes any part of an answer.
type Answer = Record<string, any>;
/** Changes what a client says: the answer to a call with these params. Returns `leftOut` to leave the message out. */
const leftOut = Symbol("left out");
type Fault = (method: string, answer: Answer, params: Answer) => unknown;

/** Returns the two streams of a client whose answers a fault changes. */
function faultyStreams(fault: Fault) {
  const calls = new Map<number, { readonly method: string; readonly params: Answer }>();
  const eachLine = (change: (message: Answer) => unknown) => {
    let rest = "";
    return new Transform({
      transform(chunk, _, done) {
        const lines = (rest + String(chunk)).split("\n");
        rest = lines.pop()!;
        for (const line of lines) {
          const message = JSON.parse(line) as Answer;
          if (change(message) !== leftOut) this.push(`${JSON.stringify(message)}\n`);
        }
        done();
      },
    });
  };
  const stdout = eachLine((message) => {
    if (message["id"] !== undefined && message["method"] !== undefined)
      calls.set(message["id"], message as never);
    return message["method"] === "cancel" ? fault("cancel", message, {}) : undefined;
  });
  const stdin = eachLine((message) => {
    const call = message["method"] === undefined ? calls.get(message["id"]) : undefined;
    return call && fault(call.method, message, call.params);
  });
  return { stdin, stdout };
}

async function problemsOf(fault: Fault, hello: Answer = {}): Promise<readonly string[]> {
  const { lm, model, tokenizer } = embedded;
  const { stdin, stdout } = faultyStreams(fault);
  const toHost = new PassThrough();
  stdin.pipe(toHost);
  const checked = new ClientChecks().serve(toHost, stdout).finally(() => stdout.end());
  const client = new LiveClient({
    model: model as never,
    tokenizer,
    guards: tfjsGuards(lm),
    host: { stdin, stdout },
    hello: { run_dir: "unused", max_steps: 4, ...hello },
  });
  let done = await client.hello();
  for (let step = 1; step <= 4 && done.stop === null; step += 1)
    done = await client.call("step", { step, logged: [] });
  await client.call("end", {});
  await client.close();
  return (await checked).flatMap(({ name, problem }) => (problem === null ? [] : [`${name}: ${problem}`]));
}

const vectorOf = (base64: string) => new Float32Array(Uint8Array.from(Buffer.from(base64, "base64")).buffer);
const base64Of = (numbers: Float32Array) => Buffer.from(numbers.buffer).toString("base64");

/** Reports another mode from the k-th enter on. */
function changedFrom(k: number): Fault {
  let enters = 0;
  return (method, { result }) => {
    if (method === "enter" && ++enters >= k) result.before.mode = "train";
    // Whoever does not restore believes that nothing has changed.
    if (method === "leave" && enters >= k)
      result.evidence.find(({ part }: Answer) => part === "mode").before = "train";
  };
}

/** A fault of the calls outside of enter and leave. */
function outside(fault: Fault): Fault {
  let isInside = false;
  return (method, message, params) => {
    if (method === "enter") isInside = true;
    if (method === "leave" && "result" in message) isInside = false;
    return isInside ? undefined : fault(method, message, params);
  };
}

/** Sends the second half of an answer before the first. */
function partsOutOfOrder(): Fault {
  return (method, message) => {
    const { rows } = message;
    if (method === "log_likelihoods" && rows?.length > 1)
      message["rows"] = [...rows.slice(rows.length / 2), ...rows.slice(0, rows.length / 2)];
  };
}

it.each<readonly [fault: string, Fault, name: string]>([
  [
    "wrong ids",
    (method, { rows }) => method === "encode" && rows?.forEach((ids: number[]) => (ids[0]! += 1)),
    "ids are those of the texts",
  ],
  ["a missing row", (method, { rows }) => method === "next_token" && rows?.pop(), "sum to 1"],
  [
    "logits in place of log-probs",
    (method, { rows }) =>
      method === "next_token" &&
      rows?.forEach(
        (row: Answer) => (row["nats"] = base64Of(vectorOf(row["nats"]).map((value) => value - 1))),
      ),
    "sum to 1",
  ],
  [
    "NaN",
    (method, { rows }) =>
      method === "log_likelihoods" &&
      rows?.forEach((row: Answer) => (row["nats"] = row["nats"].map(() => null))),
    "log_likelihoods equal next_token",
  ],
  [
    "rows in another order",
    (method, { rows }) => method === "log_likelihoods" && rows?.reverse(),
    "log_likelihoods equal next_token",
  ],
  [
    "padding that is read",
    (method, { rows }) =>
      method === "log_likelihoods" &&
      rows?.length > 1 &&
      rows.forEach((row: Answer) => (row["nats"][0] -= 0.5)),
    "a row does not depend on its batch",
  ],
  [
    "random draws at temperature 0",
    (method, { rows }, { rows: asked }) =>
      method === "generate" &&
      asked[0].temperature === 0 &&
      rows?.forEach((row: Answer) => (row["ids"][2] = 7)),
    "greedy answers take the most likely token",
  ],
  [
    "draws that ignore the seed",
    (method, { rows }, { rows: asked }) =>
      method === "generate" &&
      asked[0].temperature > 0 &&
      rows?.forEach((row: Answer) => (row["ids"][0] = Math.floor(50 * Math.random()))),
    "a draw depends on its seed alone",
  ],
  [
    "a stop id that is passed over",
    (method, { rows }) =>
      method === "generate" &&
      rows?.forEach((row: Answer) => row["finish"] === "stop" && row["ids"].push(9) && row["nats"].push(-1)),
    "a stop id or a stop string ends an answer",
  ],
  [
    "a mode that is not restored",
    (method, { result }) => {
      if (method === "leave") result.evidence.find(({ part }: Answer) => part === "mode")["intact"] = false;
    },
    "leave restores what every guard observes: mode",
  ],
  [
    "a random state that nobody observes",
    (method, { result }) => {
      if (method === "leave") result.evidence.pop();
    },
    "leave restores what every guard observes: got no evidence",
  ],
  [
    "a random state that is not restored, whatever leave says",
    changedFrom(2),
    "leave restores what every guard observes: mode",
  ],
  [
    "a state that a second enter takes for the training's",
    changedFrom(3),
    "enter without leave protects the same state: mode",
  ],
  [
    "a state that calls outside of a window change",
    changedFrom(4),
    "calls outside of enter and leave change nothing: mode",
  ],
  [
    "dropout in calls outside of a window",
    outside((method, { rows }) => {
      if (method === "log_likelihoods") rows?.forEach((row: Answer) => (row["nats"][0] -= 0.3));
    }),
    "calls outside of enter and leave are answered as inside: got log-probs that differ by",
  ],
  [
    "calls outside of a window that fail",
    outside((method, message) => {
      if (method !== "generate" || !("result" in message)) return;
      delete message["result"];
      message["error"] = { code: "model", where: "generate", got: "no window" };
    }),
    "calls outside of enter and leave are answered as inside: ",
  ],
  [
    "a greedy flag that is never set",
    (method, { rows }) =>
      method === "log_likelihoods" && rows?.forEach((row: Answer) => (row["greedy"] = [false])),
    "log_likelihoods equal next_token: got that id",
  ],
  [
    "a greedy flag that is always set",
    (method, { rows }) =>
      method === "log_likelihoods" && rows?.forEach((row: Answer) => (row["greedy"] = [true])),
    "log_likelihoods equal next_token: got that id",
  ],
  [
    "the entropy of the candidates alone",
    (method, { rows }) =>
      method === "next_token" && rows?.forEach((row: Answer) => (row["entropy_nats"] = 0)),
    "the probabilities of all tokens sum to 1: got an entropy",
  ],
  [
    "tokens after a stop string",
    (method, { rows }, { rows: asked }) =>
      method === "generate" &&
      asked[0].stop !== undefined &&
      rows?.forEach((row: Answer) => row["ids"].push(9, 9, 9) && row["nats"].push(-1, -1, -1)),
    "a stop id or a stop string ends an answer: got ids after",
  ],
  [
    "a stop string in the text",
    (method, { rows }, { rows: asked }) =>
      method === "generate" &&
      asked[0].stop !== undefined &&
      rows?.forEach((row: Answer) => (row["text"] += asked[0].stop[0])),
    "a stop id or a stop string ends an answer",
  ],
  [
    "a call that ignores cancel",
    (method) => (method === "cancel" ? leftOut : undefined),
    "a long call shows progress, and can be cancelled: got a whole answer",
  ],
  [
    "a long call without progress",
    (_, message) => ("progress" in message ? leftOut : undefined),
    "a long call shows progress, and can be cancelled: got no progress",
  ],
  ["parts of an answer out of order", partsOutOfOrder(), "log_likelihoods equal next_token"],
  [
    "layers in another order",
    (method, { rows }) =>
      method === "hidden_states" && rows?.forEach((row: Answer) => row["layers"].reverse()),
    "hidden states are means of their positions: layer 0",
  ],
  [
    "the last position in place of the mean",
    (method, { rows }) => method === "hidden_states" && rows?.splice(0, 1, rows.at(-1)),
    "hidden states are means of their positions: layer",
  ],
  [
    "a result for a call that does not exist",
    (method, message) => {
      if (method !== "no_such_call") return;
      delete message["error"];
      message["result"] = { before: {}, evidence: [] };
    },
    "an unknown call is an error",
  ],
])("names %s", { timeout: 60_000 }, async (_, fault, name) => {
  expect((await problemsOf(fault)).join("\n")).toContain(name);
});

it("names the check at which a client crashes, and no later one", async () => {
  const toHost = new PassThrough();
  const stdout = new PassThrough();
  const checked = new ClientChecks().serve(toHost, stdout);
  const hello = {
    protocol: 1,
    client: { name: "test", version: "1" },
    run_dir: "unused",
    max_steps: 2,
    model: {
      name: "m",
      engine: "e",
      dtype: "float32",
      context_length: null,
      vocab_size: 9,
      abilities: [],
      base: false,
    },
    tokenizer: { fingerprint: "f", vocab_size: 9, stop_ids: [], eos_id: null, has_template: false },
    guards: ["weights"],
  };
  toHost.write(`${JSON.stringify({ id: 1, method: "hello", params: hello })}\n`);
  stdout.once("data", () => toHost.end());
  const problems = (await checked).filter(({ problem }) => problem !== null);
  expect(problems.map(({ name, problem }) => `${name}: ${problem}`)).toEqual([
    expect.stringContaining("enter reports every guard: "),
    "a client that is asked to stop sends no further step: got 0 messages of steps, expected 1: next_step was 1, then stop",
    "training that stops is ended: got no end before close",
  ]);
});

it("names a client that observes no weights", { timeout: 60_000 }, async () => {
  const problems = await problemsOf(() => undefined, { guards: ["mode"] });
  expect(problems).toEqual(["hello names a guard of the weights: got the guards mode"]);
});
