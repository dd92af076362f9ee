import { PassThrough, Writable } from "node:stream";
import type { Guard, Logger } from "@periodic-eval/contracts";
import { buildPeriodicEval } from "@periodic-eval/core";
import { fakeGuard, fakeModel, fakeTokenizer } from "@periodic-eval/testing";
import { LiveClient } from "../../../examples/live-client.ts";
import { inMemory } from "@periodic-eval/tfjs";
import { loadCausalLM, useBackend } from "@periodic-eval/models";
import { loadTokenizer } from "@periodic-eval/models/tokenizer";
import { microWorld } from "../../../examples/micro-world/paths.ts";
import { serveTrainer, type LiveHostOptions } from "./host.ts";

// oxlint-disable-next-line typescript/no-explicit-any -- A fault changes any part of a message.
export type Message = Record<string, any>;

/** Loads the embedded model. */
export async function embeddedModel() {
  await useBackend();
  const lm = await loadCausalLM(microWorld());
  const tokenizer = await loadTokenizer(microWorld());
  return { lm, tokenizer, model: inMemory(lm, tokenizer) };
}
export type EmbeddedModel = Awaited<ReturnType<typeof embeddedModel>>;

/** What is written in place of a message; `last` ends the stream. */
export type Written = string | { readonly last: string };

/** Returns a stream that reads messages, and writes into `output` what `change` returns for each. */
export function eachLine(output: PassThrough, change: (message: Message) => Written): Writable {
  let [rest, isEnded] = ["", false];
  const write = (line: string) => {
    const written = change(JSON.parse(line) as Message);
    isEnded = typeof written !== "string";
    output.write(typeof written === "string" ? written : written.last);
    if (isEnded) output.end();
  };
  return new Writable({
    write(chunk, _, done) {
      const lines = (rest + String(chunk)).split("\n");
      rest = lines.pop()!;
      for (const line of lines) if (!isEnded) write(line);
      done();
    },
    final(done) {
      if (!isEnded) output.end();
      done();
    },
  });
}

export const block = {
  questions: microWorld("questions.jsonl"),
  subsample_n: 4,
  eval_every_percent: 50,
  budget: { overhead_percent: null },
};

/** The parts of a training that the scripted client observes. */
export const parts = ["weights", "optimizer", "mode", "random-fake"];

export interface TrainingOptions {
  readonly runDir: string;
  /** Reads what the client sends, and returns what the host gets. */
  readonly change?: (message: Message) => Written;
  /** Reads what the host sends. */
  readonly heard?: (message: Message) => void;
  readonly hello?: Message;
  /** Default: each of `parts` observes the step. */
  readonly guards?: readonly Guard[];
  readonly logger?: Omit<Logger, "name">;
  readonly host?: Partial<LiveHostOptions>;
}

/**
 * Trains a scripted model for four steps, measured by a host at the other end of two streams. Rejects if the host does, and resolves to
 * what the client threw; null if it threw nothing.
 */
export async function train(options: TrainingOptions): Promise<Error | null> {
  const { runDir, change = send, heard = () => undefined, logger = {}, host } = options;
  const [input, stdout] = [new PassThrough(), new PassThrough()];
  const stdin = eachLine(input, change);
  const output = eachLine(stdout, (message) => {
    heard(message);
    return send(message);
  });
  const served = serveTrainer({
    input,
    output,
    async open({ config, phase }) {
      const { callbacks, session } = await buildPeriodicEval(config, { phase });
      return { callbacks, ...session, loggers: [{ name: "test", ...logger }] };
    },
    warn: () => undefined,
    ...host,
  }).finally(() => output.end());
  const at = { step: 0 };
  const weights = () => `step ${at.step}`;
  const client = new LiveClient({
    model: fakeModel({ weights }),
    tokenizer: fakeTokenizer(),
    guards: options.guards ?? parts.map((name) => fakeGuard({ name, observe: weights })),
    host: { stdin, stdout },
    hello: { run_dir: runDir, config: block, max_steps: 4, ...options.hello },
  });
  const training = trainSteps(client, at).then(
    () => null,
    (error: unknown) => error as Error,
  );
  await served;
  return training;
}

export const send = (message: Message): string => `${JSON.stringify(message)}\n`;

async function trainSteps(client: LiveClient, at: { step: number }): Promise<void> {
  let { next_step: next } = await client.hello();
  for (let step = 1; step <= 4; step += 1) {
    at.step = step;
    if (next === null || step < next) continue;
    const logged = [{ step, metrics: { loss: 1 / step } }];
    ({ next_step: next } = await client.call("step", { step, epoch: step / 4, logged }));
  }
  await client.call("end", {});
  await client.close();
}
