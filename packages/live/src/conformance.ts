import { createServer } from "node:net";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { PeriodicEvalError } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { Connection } from "./connection.ts";
import { floatsOf } from "./live-model.ts";
import type { Done, Hello, ParamsOf, RowOf } from "./protocol.ts";

/** The result of one check of a client. */
export interface ClientCheck {
  readonly name: string;
  /** What is wrong; null if the check passed. */
  readonly problem: string | null;
}

/** The texts that the checks read: of different lengths, so that a batch has padding. */
const texts = [
  "The",
  "The baker opens the shop early and sells bread to",
  "A cat sat",
  "Please close the gate before",
];

/** A difference between two readings of one row that rounding explains, in nats. */
const close = (a: number, b: number, tolerance: number): boolean => Math.abs(a - b) <= tolerance + 1e-3;

/**
 * Plays the host against a client: asks it about its model before the first step, inside `enter` and `leave`, and checks the answers
 * against each other. The client needs a training of at least two steps.
 */
export class ClientChecks {
  readonly #results: ClientCheck[] = [];
  #steps = 0;
  #isEnded = false;

  /** Serves a client until it closes, and returns every check. */
  async serve(input: Readable, output: Writable): Promise<readonly ClientCheck[]> {
    const connection = new Connection({ input, output, where: "the client" });
    const serving = connection.serve({
      call: async (method, params): Promise<Done> => {
        if (method === "hello") await this.#checkAll(connection, params as Hello);
        if (method === "step") this.#steps += 1;
        if (method === "end") this.#isEnded = true;
        return this.#done(method === "step" ? "the check is over" : null);
      },
      warn: () => undefined,
    });
    await this.#check("the connection ends in order", () => serving);
    await this.#check("a client that is asked to stop sends no further step", async () => {
      if (this.#steps !== 1)
        throw new Error(`got ${this.#steps} messages of steps, expected 1: next_step was 1, then stop`);
    });
    await this.#check("training that stops is ended", async () => {
      if (!this.#isEnded) throw new Error("got no end before close");
    });
    return this.#results;
  }

  #done(stop: string | null): Done {
    return { next_step: stop === null ? 1 : null, stop, save: null, metrics: [], state: {}, protocol: 1 };
  }

  async #check(name: string, run: () => Promise<void>): Promise<void> {
    try {
      await run();
      this.#results.push({ name, problem: null });
    } catch (error) {
      this.#results.push({ name, problem: errorMessage(error) });
    }
  }

  async #checkAll(connection: Connection, hello: Hello): Promise<void> {
    const { model, guards, tokenizer } = hello;
    const can = (ability: (typeof model.abilities)[number]) => model.abilities.includes(ability);
    const tolerance = model.tolerance_nats ?? (model.dtype.startsWith("float32") ? 1e-3 : 0.1);
    const before = { value: {} as Readonly<Record<string, string | null>> };
    await this.#check("enter reports every guard", async () => {
      before.value = (await connection.ask("enter", { seed: "check" })).before;
      const missing = guards.filter((name) => !(name in before.value));
      if (missing.length > 0) throw new Error(`got no state of ${missing.join(", ")}`);
    });
    let rows: readonly (readonly number[])[] = [];
    await this.#check("ids are those of the texts", async () => {
      rows = await connection.rows("encode", { texts, special_tokens: true }, texts.length);
      const back = await connection.rows("decode", { rows: copy(rows), special_tokens: false }, rows.length);
      texts.forEach((text, at) => {
        if (back[at]!.trim() !== text) throw new Error(`got "${back[at]}" for the ids of "${text}"`);
      });
      const high = rows.flat().find((id) => id >= model.vocab_size);
      if (high !== undefined)
        throw new Error(`got the id ${high}, outside of the ${model.vocab_size} logits`);
    });
    if (tokenizer.has_template)
      await this.#check("a chat ends in its generation prompt", async () => {
        const chats = [{ messages: [{ role: "user", content: "Hello" }] }];
        const [open] = await connection.rows("render", { chats, ending: "generation" }, 1);
        const [whole] = await connection.rows("render", { chats, ending: "complete" }, 1);
        if (!open!.text.startsWith(whole!.text)) throw new Error(`got ${JSON.stringify(open!.text)}`);
      });
    if (can("next_token"))
      await this.#check("the probabilities of all tokens sum to 1", () => checkSum(connection, rows));
    if (can("next_token") && can("log_likelihoods")) {
      await this.#check("log_likelihoods equal next_token", () => checkScores(connection, rows, tolerance));
      await this.#check("a row does not depend on its batch", () => checkBatch(connection, rows, tolerance));
    }
    if (can("next_token") && can("generate")) {
      await this.#check("greedy answers take the most likely token", () =>
        checkGreedy(connection, rows, tolerance),
      );
      await this.#check("a draw depends on its seed alone", () => checkDraws(connection, rows));
      await this.#check("a stop id or a stop string ends an answer", () =>
        checkStop(connection, rows, tokenizer.stop_ids),
      );
      await this.#check("a long call can be cancelled", () => checkCancel(connection, rows));
    }
    if (can("hidden_states"))
      await this.#check("hidden states are means of their positions", () => checkHidden(connection, rows));
    if (model.base) await this.#check("base answers", () => checkBase(connection, rows));
    await this.#check("an unknown call is an error, and the client goes on", async () => {
      const answer = await connection.ask("no_such_call" as "leave", {}).then(
        () => "a result",
        (error: unknown) => (PeriodicEvalError.is(error) ? null : errorMessage(error)),
      );
      if (answer !== null) throw new Error(`got ${answer}, expected an error`);
    });
    await this.#check("leave restores what every guard observes", async () => {
      const { evidence } = await connection.ask("leave", {});
      for (const name of guards) {
        const found = evidence.find(({ part }) => part === name);
        if (found === undefined) throw new Error(`got no evidence of ${name}`);
        if (found.before !== before.value[name])
          throw new Error(`${name}: got another state before than enter reported`);
        if (found.intact === false && found.advisory !== true)
          throw new Error(`${name}: got "${found.after}", expected "${found.before}" again`);
      }
    });
  }
}

const copy = (rows: readonly (readonly number[])[]): number[][] => rows.map((ids) => [...ids]);

/** Returns the log-probs of the whole vocabulary after each row. */
async function distributions(
  connection: Connection,
  rows: readonly (readonly number[])[],
): Promise<readonly Float32Array[]> {
  const params = { on: "model" as const, rows: copy(rows), candidates: "all" as const };
  return (await connection.rows("next_token", params, rows.length)).map(({ nats }) => floatsOf(nats));
}

const topOf = (nats: Float32Array): number => nats.indexOf(Math.max(...nats));

async function checkSum(connection: Connection, rows: readonly (readonly number[])[]): Promise<void> {
  for (const nats of await distributions(connection, rows)) {
    const sum = nats.reduce((total, value) => total + Math.exp(value), 0);
    if (!close(Math.log(sum), 0, 1e-3)) throw new Error(`got the sum ${sum}`);
  }
}

const score = (
  connection: Connection,
  rows: ParamsOf<"log_likelihoods">["rows"],
): Promise<readonly RowOf<"log_likelihoods">[]> =>
  connection.rows("log_likelihoods", { on: "model", rows, greedy_ids: true }, rows.length);

async function checkScores(
  connection: Connection,
  rows: readonly (readonly number[])[],
  tolerance: number,
): Promise<void> {
  const all = await distributions(connection, rows);
  const pairs = rows.flatMap((context, at) => [
    { context: [...context], continuation: [topOf(all[at]!)] },
    { context: [...context], continuation: [5] },
  ]);
  const scores = await score(connection, pairs);
  pairs.forEach(({ continuation: [id] }, at) => {
    const { nats, greedy, greedy_ids } = scores[at]!;
    const expected = all[at >> 1]!;
    if (nats.length !== 1 || greedy.length !== 1) throw new Error(`got ${nats.length} numbers for one token`);
    if (!close(nats[0]!, expected[id!]!, tolerance))
      throw new Error(`got ${nats[0]} nats of id ${id}, next_token says ${expected[id!]}`);
    const isTop = at % 2 === 0;
    if (isTop && (!greedy[0] || greedy_ids?.[0] !== id))
      throw new Error(`got that id ${id} is not the most likely one`);
  });
}

async function checkBatch(
  connection: Connection,
  rows: readonly (readonly number[])[],
  tolerance: number,
): Promise<void> {
  const pairs = rows.map((ids) => ({
    context: ids.slice(0, 1),
    continuation: ids.length > 1 ? ids.slice(1) : [ids[0]!],
  }));
  const together = await score(connection, pairs);
  for (const [at, pair] of pairs.entries()) {
    const [alone] = await score(connection, [pair]);
    alone!.nats.forEach((nats, token) => {
      const other = together[at]!.nats[token];
      if (other === undefined || !close(nats, other, tolerance))
        throw new Error(`row ${at}, token ${token}: got ${other} nats among others, ${nats} alone`);
    });
  }
}

const answer = (
  connection: Connection,
  rows: readonly (readonly number[])[],
  more: Partial<ParamsOf<"generate">["rows"][number]>,
  signal?: AbortSignal,
): Promise<readonly RowOf<"generate">[]> =>
  connection.rows(
    "generate",
    {
      on: "model",
      rows: rows.map((prompt, at) => ({
        prompt: [...prompt],
        max_new_tokens: 4,
        temperature: 0,
        seed: `check ${at}`,
        ...more,
      })),
    },
    rows.length,
    signal && { signal },
  );

async function checkGreedy(
  connection: Connection,
  rows: readonly (readonly number[])[],
  tolerance: number,
): Promise<void> {
  const answers = await answer(connection, rows, {});
  for (const [at, { ids, nats }] of answers.entries()) {
    if (nats.length !== ids.length) throw new Error(`got ${nats.length} log-probs of ${ids.length} ids`);
    const read = ids.map((_, token) => [...rows[at]!, ...ids.slice(0, token)]);
    (await distributions(connection, read)).forEach((all, token) => {
      const best = Math.max(...all);
      // Two tokens may be as likely, within rounding.
      if (best - all[ids[token]!]! > tolerance + 1e-3)
        throw new Error(`got id ${ids[token]}, the most likely one is ${topOf(all)}`);
      if (!close(nats[token]!, all[ids[token]!]!, tolerance))
        throw new Error(`got ${nats[token]} nats, next_token says ${all[ids[token]!]}`);
    });
  }
}

async function checkDraws(connection: Connection, rows: readonly (readonly number[])[]): Promise<void> {
  const warm = { temperature: 1, max_new_tokens: 8 };
  const first = await answer(connection, rows, warm);
  const again = await answer(connection, rows, warm);
  if (JSON.stringify(first.map(({ ids }) => ids)) !== JSON.stringify(again.map(({ ids }) => ids)))
    throw new Error("got other draws for the same seeds");
  const same = await answer(connection, rows.slice(0, 1), { ...warm, seed: "check 0" });
  if (String(same[0]!.ids) !== String(first[0]!.ids)) throw new Error("got other draws in another batch");
  const different = await answer(connection, rows, { ...warm, max_new_tokens: 16, seed: "another" });
  const earlier = await answer(connection, rows, { ...warm, max_new_tokens: 16 });
  if (different.every(({ ids }, at) => String(ids) === String(earlier[at]!.ids)))
    throw new Error("got the same draws for other seeds");
}

async function checkStop(
  connection: Connection,
  rows: readonly (readonly number[])[],
  stopIds: readonly number[],
): Promise<void> {
  const many = Array.from({ length: 8 }, () => rows).flat();
  const answers = await answer(connection, many, { temperature: 1, max_new_tokens: 40 });
  for (const { ids, finish } of answers) {
    const stopped = ids.findIndex((id) => stopIds.includes(id));
    if (finish === "stop" ? stopped !== ids.length - 1 : stopped >= 0 || ids.length !== 40)
      throw new Error(`got "${finish}" after ${ids.length} of 40 ids, with a stop id at ${stopped}`);
  }
  const long = answers.find(({ text }) => text.trim().length > 6);
  if (long === undefined) return;
  const at = answers.indexOf(long);
  const stop = long.text.trim().slice(3, 6);
  const [cut] = await answer(connection, [many[at]!], {
    temperature: 1,
    max_new_tokens: 40,
    seed: `check ${at}`,
    stop: [stop],
  });
  if (cut!.finish !== "stop" || cut!.text !== long.text.slice(0, long.text.indexOf(stop)))
    throw new Error(`got ${JSON.stringify(cut!.text)}, expected the text before ${JSON.stringify(stop)}`);
}

async function checkCancel(connection: Connection, rows: readonly (readonly number[])[]): Promise<void> {
  const controller = new AbortController();
  const many = Array.from({ length: 64 }, (_, at) => rows[at % rows.length]!);
  const long = answer(connection, many, { max_new_tokens: 100 }, controller.signal);
  const began = performance.now();
  setTimeout(() => controller.abort(new Error("cancelled")), 50);
  await long.then(
    () => undefined,
    () => undefined,
  );
  if (performance.now() - began > 30_000) throw new Error("got no end within 30 s");
}

async function checkHidden(connection: Connection, rows: readonly (readonly number[])[]): Promise<void> {
  const ids = [...rows[1]!];
  const ask = (from: number, end = ids.length) => ({ ids: ids.slice(0, end), from });
  const asked = [ask(0), ...ids.map((_, at) => ask(at, at + 1))];
  const answers = await connection.rows(
    "hidden_states",
    { on: "model", rows: asked, layers: [0, 1] },
    asked.length,
  );
  const [mean, ...each] = answers.map(({ layers }) => layers.map(floatsOf));
  mean!.forEach((vector, layer) =>
    vector.forEach((value, place) => {
      const expected = each.reduce((sum, one) => sum + one[layer]![place]!, 0) / each.length;
      if (!(Math.abs(value - expected) <= 1e-2 + 1e-2 * Math.abs(expected)))
        throw new Error(`layer ${layer}: got ${value}, the mean of its positions is ${expected}`);
    }),
  );
}

async function checkBase(connection: Connection, rows: readonly (readonly number[])[]): Promise<void> {
  const params = { on: "base" as const, rows: copy(rows), candidates: "all" as const };
  const answers = await connection.rows("next_token", params, rows.length);
  for (const { nats } of answers)
    if (floatsOf(nats).some((value) => Number.isNaN(value))) throw new Error("got NaN");
}

/**
 * Runs a client's command with a host that checks it.
 *
 * @param command A command line that trains at least two steps and starts the host of `PERIODIC_EVAL_HOST`.
 */
export async function checkClient(command: string): Promise<readonly ClientCheck[]> {
  const folder = await mkdtemp(join(tmpdir(), "live-check-"));
  const path = join(folder, "host.sock");
  const checks = new Promise<readonly ClientCheck[]>((resolve) => {
    const server = createServer((socket) => {
      server.close();
      resolve(new ClientChecks().serve(socket, socket).finally(() => socket.end()));
    }).listen(path);
  });
  const relay = `process.stdin.pipe(require("net").connect(${JSON.stringify(path)})).pipe(process.stdout)`;
  const program = join(folder, "relay.cjs");
  await writeFile(program, relay);
  const client = spawn(command, {
    shell: true,
    stdio: ["ignore", "inherit", "inherit"],
    env: {
      ...process.env,
      PERIODIC_EVAL_HOST: `${process.execPath} ${program}`,
      PERIODIC_EVAL_CHECK: folder,
    },
  });
  const ended = new Promise<readonly ClientCheck[]>((resolve, reject) => {
    client.on("error", reject);
    client.on("exit", (code, signal) => {
      // The checks end after the client.
      setTimeout(
        () =>
          resolve([
            { name: "the command connects", problem: `it ended with ${code ?? signal} and no connection` },
          ]),
        2000,
      );
    });
  });
  try {
    return await Promise.race([checks, ended]);
  } finally {
    client.kill();
    await rm(folder, { recursive: true, force: true });
  }
}
