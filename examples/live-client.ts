/**
 * A client of the live protocol (docs/reference/live-protocol.md) in 150 lines: it starts the host, answers its calls about a model, and
 * tells it of steps. Clients for other languages look like it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import type { EnteredGuard, EvaluableModel, Guard, Sampling, Tokenizer } from "@periodic-eval/core";

/** What the host wants after a call. */
export interface Done {
  readonly next_step: number | null;
  readonly stop: string | null;
  readonly save: string | null;
  readonly state?: unknown;
}

export interface LiveClientOptions {
  readonly model: Required<
    Pick<EvaluableModel, "logLikelihoods" | "nextToken" | "generate" | "hiddenStates">
  > &
    EvaluableModel;
  readonly tokenizer: Tokenizer;
  readonly guards: readonly Guard[];
  /** The host's stdin and stdout. Default: starts the host of `PERIODIC_EVAL_HOST`. */
  readonly host?: { readonly stdin: Writable; readonly stdout: Readable };
  /** The fields of `hello` that say what is trained: `run_dir`, `config`, `max_steps` … */
  readonly hello: Readonly<Record<string, unknown>>;
}

// oxlint-disable typescript/no-explicit-any -- The host checks its own messages: docs/reference/live-protocol.md says what they hold.
type Params = Readonly<Record<string, any>>;
type Row = Readonly<Record<string, any>>;
// oxlint-enable typescript/no-explicit-any

export class LiveClient {
  readonly #options: LiveClientOptions;
  readonly #host;
  readonly #lines;
  readonly #entered: EnteredGuard[] = [];
  #calls = 0;
  #aborts = new Map<number, AbortController>();

  constructor(options: LiveClientOptions) {
    this.#options = options;
    this.#host = options.host ?? startHost();
    this.#lines = createInterface({ input: this.#host.stdout })[Symbol.asyncIterator]();
  }

  hello(): Promise<Done> {
    const { model, tokenizer, guards, hello } = this.#options;
    return this.call("hello", {
      protocol: 1,
      client: { name: "live-client", version: "1" },
      model: {
        ...model.identity,
        context_length: model.contextLength,
        vocab_size: tokenizer.vocabSize,
        abilities: ["log_likelihoods", "next_token", "generate", "hidden_states"],
        base: model.base !== undefined,
      },
      tokenizer: {
        fingerprint: tokenizer.fingerprint,
        vocab_size: tokenizer.vocabSize,
        stop_ids: tokenizer.stopIds,
        eos_id: tokenizer.eosId ?? null,
        has_template: true,
      },
      guards: guards.map(({ name }) => name),
      ...hello,
    });
  }

  /** Calls the host, and answers what it asks until it answers. */
  async call(method: string, params: Params): Promise<Done> {
    const id = ++this.#calls;
    this.#send({ id, method, params });
    for (let next = await this.#lines.next(); next.done !== true; next = await this.#lines.next()) {
      const message = JSON.parse(next.value) as Params;
      if (message["method"] === "cancel") this.#aborts.get(message["params"].call)?.abort();
      else if (message["method"] !== undefined && message["id"] !== undefined) void this.#answer(message);
      else if (message["id"] === id) {
        // Training goes on, whatever the host has left.
        await this.#leave();
        if (message["error"] === undefined) return message["result"] as Done;
        throw new Error(`${message["error"].where}: ${message["error"].got}. ${message["error"].fix}`);
      }
    }
    await this.#leave();
    throw new Error("the host has ended");
  }

  async close(): Promise<void> {
    await this.call("close", {});
    this.#host.stdin.end();
    await once(this.#host.stdout, "close");
  }

  async #answer({ id, method, params }: Params): Promise<void> {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    let tokens = 0;
    const countTokens = (more: number) => void (tokens += more);
    const timer = setInterval(() => this.#send({ id, progress: { tokens } }), 1000);
    try {
      const answer = await this.#result(method, params, { signal: abort.signal, countTokens });
      if (Array.isArray(answer)) this.#send({ id, rows: answer });
      this.#send({ id, result: Array.isArray(answer) ? {} : answer });
    } catch (error) {
      const code = abort.signal.aborted ? "cancelled" : ((error as { code?: string }).code ?? "model");
      this.#send({
        id,
        error: { code, where: `client ${method}`, got: String(error), expected: "", fix: "" },
      });
    } finally {
      clearInterval(timer);
      this.#aborts.delete(id);
    }
  }

  #result(
    method: string,
    params: Params,
    options: { signal: AbortSignal; countTokens(tokens: number): void },
  ) {
    const { model: live, tokenizer } = this.#options;
    const model = params["on"] === "base" ? (live.base as typeof live) : live;
    const rows = (params["rows"] ?? params["chats"] ?? params["texts"]) as readonly Row[];
    const special = { specialTokens: params["special_tokens"] as boolean };
    const calls: Readonly<Record<string, () => unknown>> = {
      encode: () => params["texts"].map((text: string) => tokenizer.encode(text, special)),
      decode: () => params["rows"].map((ids: number[]) => tokenizer.decode(ids, special)),
      render: () =>
        rows.map(({ messages, template_kwargs: templateKwargs }) => {
          const prompt = { messages, ...(templateKwargs && { templateKwargs }) } as never;
          const { text, ids } = tokenizer.render(prompt, { ending: params["ending"] });
          return { text, ids };
        }),
      log_likelihoods: async () => {
        const requests = rows.map(({ context, continuation }) => ({
          context: { ids: context },
          continuation: { ids: continuation },
          greedyIds: params["greedy_ids"],
        }));
        const answers = await model.logLikelihoods(requests, options);
        return answers.map(({ tokenNats, tokenIsGreedy, tokenGreedyIds }) => ({
          nats: tokenNats,
          greedy: tokenIsGreedy,
          ...(params["greedy_ids"] && { greedy_ids: tokenGreedyIds }),
        }));
      },
      next_token: async () => {
        const all =
          params["candidates"] === "all" ? Array.from({ length: tokenizer.vocabSize }, (_, id) => id) : null;
        const requests = rows.map((ids, at) => ({
          prompt: { ids: ids as unknown as number[] },
          candidates: all ?? params["candidates"][at],
        }));
        const answers = await model.nextToken(requests, options);
        return answers.map(({ nats, entropyNats }) => ({ nats: base64Of(nats), entropy_nats: entropyNats }));
      },
      generate: async () => {
        const requests = rows.map((row) => ({ prompt: { ids: row["prompt"] }, sampling: samplingOf(row) }));
        const answers = await model.generate(requests, options);
        return answers.map(({ text, ids, tokenNats, finish }) => ({ text, ids, nats: tokenNats, finish }));
      },
      hidden_states: async () => {
        const requests = rows.map((row) => ({
          prompt: { ids: row["ids"] },
          from: row["from"],
          ...(params["layers"] !== "all" && { layers: params["layers"] }),
        }));
        const answers = await model.hiddenStates(requests, options);
        return answers.map((vectors) => ({ layers: vectors.map((vector) => base64Of([...vector])) }));
      },
      enter: async () => {
        await this.#leave();
        const before: Record<string, string | null> = {};
        for (const guard of this.#options.guards) {
          const entered = await guard.enter({ seed: params["seed"] });
          this.#entered.unshift(entered);
          before[guard.name] = entered.before;
        }
        return { before };
      },
      leave: async () => ({ evidence: await this.#leave() }),
    };
    if (calls[method] === undefined) throw new Error(`unknown call ${method}`);
    return calls[method]();
  }

  async #leave(): Promise<readonly unknown[]> {
    const evidence = [];
    for (const entered of this.#entered.splice(0)) evidence.unshift(await entered.leave());
    return evidence;
  }

  #send(message: object): void {
    this.#host.stdin.write(`${JSON.stringify(message)}\n`);
  }
}

function startHost() {
  const [program, ...args] = (process.env["PERIODIC_EVAL_HOST"] ?? "npx periodic-eval live").split(" ");
  return spawn(program!, args, { stdio: ["pipe", "pipe", "inherit"], detached: true });
}

const samplingOf = (row: Row): Sampling => ({
  maxNewTokens: row["max_new_tokens"],
  temperature: row["temperature"],
  ...(row["top_p"] !== undefined && { topP: row["top_p"] }),
  ...(row["top_k"] !== undefined && { topK: row["top_k"] }),
  ...(row["stop"] !== undefined && { stop: row["stop"] }),
  ...(row["top_tokens"] !== undefined && { topTokens: row["top_tokens"] }),
  seed: row["seed"],
});

const base64Of = (numbers: readonly number[]): string =>
  Buffer.from(Float32Array.from(numbers).buffer).toString("base64");
