import { createServer, type Server } from "node:net";
import { spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { PeriodicEvalError, type Evidence } from "@periodic-eval/contracts";
import { errorMessage } from "@periodic-eval/contracts/options";
import { Connection } from "./connection.ts";
import * as modelChecks from "./model-checks.ts";
import { protocolVersion, type Done, type Hello, type RowAbility } from "./protocol.ts";

/** The result of one check of a client. */
export interface ClientCheck {
  readonly name: string;
  /** The fault; null if the check passed. */
  readonly problem: string | null;
}

/** The texts that the checks read: of different lengths, so that a batch has padding. */
const texts = [
  "The",
  "The baker opens the shop early and sells bread to",
  "A cat sat",
  "Please close the gate before",
];

type States = Readonly<Record<string, string | null>>;

/**
 * Plays the host against a client: asks it about its model before the first step, inside of `enter` and `leave` and outside, and checks
 * the answers against each other. The client needs a training of at least two steps.
 */
export class ClientChecks {
  readonly #results: ClientCheck[] = [];
  #steps = 0;
  #isEnded = false;
  #isLost: () => boolean = () => false;

  /** Serves a client until it closes, and returns every check. */
  async serve(input: Readable, output: Writable): Promise<readonly ClientCheck[]> {
    const connection = new Connection({ input, output, where: "the client" });
    this.#isLost = () => connection.ended.aborted;
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
    this.#isLost = () => false;
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
    const requests = { next_step: stop === null ? 1 : null, stop, save: null };
    return { ...requests, metrics: [], state: {}, protocol: protocolVersion };
  }

  async #check(name: string, run: () => Promise<void>): Promise<void> {
    // A client that is gone answers nothing: why it went is one problem.
    if (this.#isLost()) return;
    try {
      await run();
      this.#results.push({ name, problem: null });
    } catch (error) {
      this.#results.push({ name, problem: errorMessage(error) });
    }
  }

  async #checkAll(connection: Connection, hello: Hello): Promise<void> {
    const { guards, model } = hello;
    let before: States = {};
    let evidence: readonly Evidence[] = [];
    await this.#check("hello names a guard of the weights", async () => {
      if (!guards.includes("weights")) throw new Error(`got the guards ${guards.join(", ")}`);
    });
    await this.#check("enter reports every guard", async () => {
      before = await enter(connection);
      const missing = guards.filter((name) => !(name in before));
      if (missing.length > 0) throw new Error(`got no state of ${missing.join(", ")}`);
    });
    const checked = await this.#checkTokenizer(connection, hello);
    let inside: modelChecks.Readings | null = null;
    if (checked.rows.length > 0) {
      await this.#checkModel(checked, hello);
      await this.#check("equal calls have equal answers", async () => {
        inside = await modelChecks.readings(checked, model.abilities);
        await modelChecks.checkSame(checked, model.abilities, inside);
      });
    }
    await this.#check("unknown fields and notices are ignored", async () => {
      connection.notify("no_such_notice" as "ping", { at: 1 });
      const params = { texts, special_tokens: true, no_such_field: [1] };
      const ids = await connection.rows("encode", params, texts.length);
      if (String(ids) !== String(checked.rows)) throw new Error(`got the ids ${String(ids)}`);
    });
    await this.#check("an unknown call is an error, and the client goes on", async () => {
      const answer = await connection.ask("no_such_call" as "leave", {}).then(
        () => "a result",
        (error: unknown) => (PeriodicEvalError.is(error) ? null : errorMessage(error)),
      );
      if (answer !== null) throw new Error(`got ${answer}, expected an error`);
    });
    await this.#check("leave restores what every guard observes", async () => {
      ({ evidence } = await connection.ask("leave", {}));
      checkEvidence(evidence, guards, before);
      expectSame(before, await enter(connection), evidence);
    });
    await this.#check("enter without leave protects the same state", async () => {
      expectSame(before, await enter(connection), evidence);
      ({ evidence } = await connection.ask("leave", {}));
      checkEvidence(evidence, guards, before);
    });
    if (inside === null) return;
    const expected: modelChecks.Readings = inside;
    await this.#check("calls outside of enter and leave are answered as inside", () =>
      modelChecks.checkSame(checked, model.abilities, expected),
    );
    await this.#check("calls outside of enter and leave change nothing", async () => {
      expectSame(before, await enter(connection), evidence);
      await connection.ask("leave", {});
    });
  }

  /** Checks ids and templates, and returns what the model's checks need; without rows if there are no ids. */
  async #checkTokenizer(
    connection: Connection,
    { model, tokenizer }: Hello,
  ): Promise<modelChecks.CheckedModel> {
    let rows: readonly (readonly number[])[] = [];
    await this.#check("ids are those of the texts", async () => {
      rows = await connection.rows("encode", { texts, special_tokens: true }, texts.length);
      const asked = { rows: rows.map((ids) => [...ids]), special_tokens: false };
      const back = await connection.rows("decode", asked, rows.length);
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
    const batch = model.tolerance_nats ?? (model.dtype.startsWith("float32") ? 1e-3 : 0.1);
    return { connection, rows, tolerance: batch + 1e-3, stopIds: tokenizer.stop_ids };
  }

  async #checkModel(checked: modelChecks.CheckedModel, { model }: Hello): Promise<void> {
    const can = (...abilities: readonly RowAbility[]) =>
      abilities.every((ability) => model.abilities.includes(ability));
    const checks: readonly [name: string, isPossible: boolean, typeof modelChecks.checkSum][] = [
      ["the probabilities of all tokens sum to 1", can("next_token"), modelChecks.checkSum],
      ["log_likelihoods equal next_token", can("next_token", "log_likelihoods"), modelChecks.checkScores],
      ["a row does not depend on its batch", can("log_likelihoods"), modelChecks.checkBatch],
      ["greedy answers take the most likely token", can("next_token", "generate"), modelChecks.checkGreedy],
      ["a draw depends on its seed alone", can("generate"), modelChecks.checkDraws],
      ["a stop id or a stop string ends an answer", can("generate"), modelChecks.checkStop],
      ["a long call shows progress, and can be cancelled", can("generate"), modelChecks.checkLongCall],
      ["hidden states are means of their positions", can("hidden_states"), modelChecks.checkHidden],
      ["base answers", model.base && can("next_token"), modelChecks.checkBase],
    ];
    for (const [name, isPossible, check] of checks)
      if (isPossible) await this.#check(name, () => check(checked));
  }
}

const enter = async (connection: Connection): Promise<States> =>
  (await connection.ask("enter", { seed: "check" })).before;

function checkEvidence(evidence: readonly Evidence[], guards: readonly string[], before: States): void {
  for (const name of guards) {
    const finding = evidence.find(({ part }) => part === name);
    if (finding === undefined) throw new Error(`got no evidence of ${name}`);
    if (finding.before !== before[name])
      throw new Error(`${name}: got another state before than enter reported`);
    if (finding.intact === false && finding.advisory !== true)
      throw new Error(`${name}: got "${finding.after}", expected "${finding.before}" again`);
  }
}

/** @throws Error if a guard that proves something observes another state than before. */
function expectSame(before: States, now: States, evidence: readonly Evidence[]): void {
  for (const { part, advisory } of evidence)
    if (advisory !== true && now[part] !== before[part])
      throw new Error(`${part}: got "${now[part]}" at the next enter, expected "${before[part]}" again`);
}

/**
 * Runs a client's command with a host that checks it.
 *
 * @param command A command line that trains at least two steps and starts the host of `PERIODIC_EVAL_HOST`.
 */
export async function checkClient(command: string): Promise<readonly ClientCheck[]> {
  const folder = await mkdtemp(join(tmpdir(), "live-check-"));
  const path = join(folder, "host.sock");
  let server: Server | null = null;
  const checks = new Promise<readonly ClientCheck[]>((resolve) => {
    server = createServer((socket) => {
      server!.close();
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
    server!.close();
    await rm(folder, { recursive: true, force: true });
  }
}
