import type { EvaluableModel } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { onTestFinished } from "vitest";

type Fields = Readonly<Record<string, unknown>>;

export interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Fields;
}

/** A fault in place of the right answer; a function changes the right answer. */
export type Fault =
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly message?: string;
    }
  | { readonly body: string; readonly status?: number }
  | ((reply: never) => unknown)
  | "stall"
  | "drip"
  | "reset";

export interface ScriptedServerOptions {
  /** The base model, whose numbers the server returns. It needs `tokenizer` and `nextToken`. */
  readonly model: EvaluableModel;
  /** The folder of the base model, as the server lists it. */
  readonly root?: string;
  /** Returns the model with the adapter of a folder. */
  readonly adapterModel?: (folder: string) => EvaluableModel;
  readonly contextLimit?: number;
  /** Returns null for the right answer. */
  readonly fault?: (request: Received, count: number) => Fault | null;
  /** Milliseconds that each completion takes. */
  readonly delay?: number;
  readonly port?: number;
}

const call = { signal: new AbortController().signal };

/** A server on loopback with the part of vLLM's API that the engine uses, until the end of the test. */
export async function scriptedServer(options: ScriptedServerOptions) {
  const {
    model,
    root = "/models/tiny",
    adapterModel,
    contextLimit = 128,
    fault = () => null,
    delay = 0,
    port = 0,
  } = options;
  const received: Received[] = [];
  const models = new Map([["base", model]]);
  /** Names of the models of the completions in flight. */
  const inFlight: unknown[] = [];
  const state = { mixed: 0, most: 0 };

  async function answer({ path, body }: Received): Promise<[status: number, reply: unknown]> {
    const error = (status: number, message: string): [number, unknown] => [
      status,
      { error: { message, code: status } },
    ];
    if (path === "/v1/models")
      return [200, { data: [...models.keys()].map((id) => entryOf(id, contextLimit, root)) }];
    if (path === "/health") return [200, ""];
    if (path === "/version") return [200, { version: "0.0.0" }];
    if (path === "/tokenize") {
      const { prompt, add_special_tokens: specialTokens } = body as {
        prompt: string;
        add_special_tokens: boolean;
      };
      const [tokens] = await model.tokenizer!.encode([prompt], { specialTokens });
      return [200, { tokens }];
    }
    const { lora_name: name, lora_path: folder } = body as { lora_name: string; lora_path: string };
    if (path === "/v1/load_lora_adapter") {
      if (models.has(name)) return error(400, "already loaded");
      models.set(name, adapterModel!(folder));
      return [200, "Success"];
    }
    if (path === "/v1/unload_lora_adapter")
      return models.delete(name) ? [200, "Success"] : error(404, "not loaded");
    const asked = models.get(String(body["model"]));
    if (asked === undefined) return error(404, "The model does not exist.");
    if (path === "/v1/chat/completions") return [200, await chat(asked, body, contextLimit)];
    if (path !== "/v1/completions") return error(404, "Not Found");
    return [200, { model: body["model"], choices: await complete(asked, body, contextLimit) }];
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const text = Buffer.concat(chunks).toString();
      const one: Received = {
        path: request.url!,
        headers: request.headers,
        body: text === "" ? {} : (JSON.parse(text) as Fields),
      };
      received.push(one);
      perform(one, response, fault(one, received.length)).catch((error: unknown) => {
        response.destroy();
        throw error;
      });
    });
  });

  async function perform(one: Received, response: ServerResponse, act: Fault | null): Promise<void> {
    const isCompletion = one.path.endsWith("completions");
    if (isCompletion) {
      if (inFlight.some((name) => name !== one.body["model"])) state.mixed++;
      inFlight.push(one.body["model"]);
      state.most = Math.max(state.most, inFlight.length);
      response.on("close", () => inFlight.splice(inFlight.indexOf(one.body["model"]), 1));
      if (delay > 0) await sleep(delay);
    }
    if (act === "stall") return;
    if (act === "reset") return void response.socket!.resetAndDestroy();
    if (act === "drip") {
      response.writeHead(200, { "content-type": "application/json" });
      while (!response.destroyed) {
        response.write(" ");
        await sleep(20);
      }
      return;
    }
    if (act !== null && "body" in act) {
      response.writeHead(act.status ?? 200);
      return void response.end(act.body);
    }
    if (act !== null && "status" in act) {
      response.writeHead(act.status, act.headers);
      return void response.end(JSON.stringify({ error: { message: act.message ?? "no luck" } }));
    }
    const [status, reply] = await answer(one);
    const changed = typeof act === "function" ? act(reply as never) : reply;
    response.writeHead(status);
    response.end(typeof changed === "string" ? changed : JSON.stringify(changed));
  }

  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const close = () => {
    server.closeAllConnections();
    server.close();
  };
  onTestFinished(close);
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    port: (server.address() as AddressInfo).port,
    received,
    /** Names of the loaded adapters. */
    adapters: () => [...models.keys()].slice(1),
    models,
    /** Completions that began while one of another model was in flight, and the most at a time. */
    state,
    /** Ends all connections, as a killed process does. */
    close,
  };
}

const entryOf = (id: string, limit: number, root: string) => ({
  id,
  root: id === "base" ? root : "/adapters",
  parent: id === "base" ? null : "base",
  max_model_len: limit,
});

const known = new WeakMap<EvaluableModel, Map<string, readonly number[]>>();

/** Returns log p of every token after `ids`. */
async function nextNats(model: EvaluableModel, ids: readonly number[]): Promise<readonly number[]> {
  const cache = known.get(model) ?? new Map<string, readonly number[]>();
  known.set(model, cache);
  const found = cache.get(ids.join());
  if (found !== undefined) return found;
  const candidates = Array.from({ length: model.tokenizer!.vocabSize }, (_, id) => id);
  const [next] = await model.nextToken!([{ prompt: { ids }, candidates }], call);
  cache.set(ids.join(), next!.nats);
  return next!.nats;
}

async function complete(model: EvaluableModel, body: Fields, limit: number): Promise<unknown[]> {
  const prompt = body["prompt"] as readonly number[] | readonly (readonly number[])[];
  const prompts = (Array.isArray(prompt[0]) ? prompt : [prompt]) as readonly (readonly number[])[];
  const choices: unknown[] = [];
  for (const [index, ids] of prompts.entries()) {
    const scored = body["prompt_logprobs"] === undefined ? null : await scoresOf(model, ids);
    choices.push({
      index,
      prompt_token_ids: ids,
      prompt_logprobs: scored,
      ...(await write(model, ids, body, limit)),
    });
  }
  // A server need not keep the order.
  return choices.reverse();
}

async function scoresOf(model: EvaluableModel, ids: readonly number[]): Promise<unknown[]> {
  const scores: unknown[] = [null];
  for (const [index, id] of ids.entries()) {
    if (index === 0) continue;
    const nats = await nextNats(model, ids.slice(0, index));
    const top = nats.indexOf(Math.max(...nats));
    const own = { logprob: nats[id], rank: nats.filter((one) => one >= nats[id]!).length };
    scores.push({ [id]: own, [top]: { logprob: nats[top], rank: 1 } });
  }
  return scores;
}

async function write(model: EvaluableModel, prompt: readonly number[], body: Fields, limit: number) {
  const {
    temperature,
    seed,
    stop = [],
    stop_token_ids: stopIds = [],
  } = body as {
    temperature: number;
    seed?: number;
    stop?: readonly string[];
    stop_token_ids?: readonly number[];
  };
  const most = Math.min(body["max_tokens"] as number, limit - prompt.length);
  const random = namedStream(`${seed}`);
  const ids: number[] = [];
  const top: Record<string, number>[] = [];
  const own: number[] = [];
  let ending = "length";
  while (ids.length < most && ending === "length") {
    const nats = await nextNats(model, [...prompt, ...ids]);
    const weights = nats.map((one) => Math.exp(one / (temperature || 1)));
    let share = random() * weights.reduce((sum, one) => sum + one, 0);
    const drawn = weights.findIndex((one) => (share -= one) < 0);
    const id = temperature === 0 ? nats.indexOf(Math.max(...nats)) : drawn;
    ids.push(id);
    own.push(nats[id]!);
    const best = [...nats.entries()]
      .sort(([, a], [, b]) => b - a)
      .slice(0, (body["logprobs"] as number) ?? 0);
    top.push(
      Object.fromEntries(
        [[id, nats[id]!] as const, ...best].map(([one, value]) => [`token_id:${one}`, value]),
      ),
    );
    const [text] = await model.tokenizer!.decode([ids]);
    if (stopIds.includes(id) || stop.some((one) => text!.includes(one))) ending = "stop";
  }
  const logprobs = { token_logprobs: own, top_logprobs: top };
  const [text] = await model.tokenizer!.decode([ids]);
  return { token_ids: ids, finish_reason: ending, text, logprobs };
}

async function chat(model: EvaluableModel, body: Fields, limit: number): Promise<unknown> {
  const [rendered] = await model.tokenizer!.render([{ messages: body["messages"] as never }]);
  const { ids } = rendered!;
  const { text, token_ids: written, finish_reason: ending } = await write(model, ids, body, limit);
  return {
    model: body["model"],
    choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: ending }],
    usage: { prompt_tokens: ids.length, completion_tokens: written.length },
  };
}
