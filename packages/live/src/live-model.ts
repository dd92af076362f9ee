import type { Abilities, BulkTokenizer, EvaluableModel } from "@periodic-eval/contracts";
import { renderPrompts } from "@periodic-eval/core/model";
import { isRecord } from "@periodic-eval/contracts/options";
import { fitRequests, scorePairs, scorePrompts, type FitLimits } from "@periodic-eval/tokenizers";
import type { Connection } from "./connection.ts";
import { liveTokenizer } from "./live-tokenizer.ts";
import type { Hello, RowAbility } from "./protocol.ts";

type On = "model" | "base";

/** The connection, tokenizer and limits of one model. */
interface Live {
  readonly on: On;
  readonly connection: Connection;
  readonly tokenizer: BulkTokenizer;
  readonly limits: FitLimits;
}

/** Returns the trainer's model as the host measures it: every call is a message, and nothing of the model is in this process. */
export function liveModel(connection: Connection, hello: Hello): EvaluableModel {
  const tokenizer = liveTokenizer(connection, hello.tokenizer);
  const { context_length: window, vocab_size: vocabSize, base } = hello.model;
  const live = { connection, tokenizer, limits: { window: window ?? Infinity, vocabSize } };
  const model = modelOn({ ...live, on: "model" }, hello.model);
  return base ? { ...model, base: modelOn({ ...live, on: "base" }, hello.model) } : model;
}

function modelOn(live: Live, model: Hello["model"]): EvaluableModel {
  const { name, engine, dtype, adapter, context_length, abilities, tolerance_nats, details } = model;
  const can = (ability: RowAbility) => abilities.includes(ability);
  const identity = { name, engine, dtype, weights: null, adapter: live.on === "base" ? null : adapter };
  return {
    identity: { ...identity, ...(details !== null && { details }) },
    contextLength: context_length,
    ...(isRecord(details) && typeof details["layers"] === "number" && { layerCount: details["layers"] }),
    ...(tolerance_nats !== null && { toleranceNats: tolerance_nats }),
    tokenizer: live.tokenizer,
    ...(can("log_likelihoods") && { logLikelihoods: logLikelihoodsOf(live) }),
    ...(can("next_token") && { nextToken: nextTokenOf(live) }),
    ...(can("generate") && { generate: generateOf(live) }),
    ...(can("hidden_states") && { hiddenStates: hiddenStatesOf(live) }),
  };
}

const logLikelihoodsOf =
  ({ on, connection, tokenizer, limits }: Live): Abilities["logLikelihoods"] =>
  (requests, options) =>
    scorePairs(tokenizer, requests, limits, options, async (sequences) => {
      const rows = sequences.map(({ ids, picks }) => ({
        context: ids.slice(0, ids.length + 1 - picks.length),
        continuation: picks.map(([id]) => id!),
      }));
      const greedy_ids = requests.some(({ greedyIds }) => greedyIds === true);
      const call = { on, rows, greedy_ids };
      const answers = await connection.rows("log_likelihoods", call, rows.length, options);
      return answers.map(({ nats, greedy, greedy_ids: greedyIds = [] }, at) => {
        const { length } = rows[at]!.continuation;
        checkLengths(connection, "log_likelihoods", length, nats, greedy, greedy_ids ? greedyIds : nats);
        return { nats, isTop: greedy, greedyIds };
      });
    });

const nextTokenOf =
  ({ on, connection, tokenizer, limits }: Live): Abilities["nextToken"] =>
  (requests, options) =>
    scorePrompts(tokenizer, requests, limits, options, async (sequences) => {
      const rows = sequences.map(({ ids }) => [...ids]);
      // Whole vocabularies are asked for by name: a list of ids for each row would be longer than the answer.
      const isWhole = requests.every(({ candidates }) => isRange(candidates));
      const candidates = isWhole ? ("all" as const) : requests.map((request) => [...request.candidates]);
      const answers = await connection.rows("next_token", { on, rows, candidates }, rows.length, options);
      return answers.map((answer, at) => {
        const vector = floatsOf(answer.nats);
        const { length } = requests[at]!.candidates;
        // The whole width of the logits can exceed the tokenizer's vocabulary.
        const nats = isWhole ? vector.slice(0, length) : vector;
        checkLengths(connection, "next_token", length, nats);
        return { nats: Array.from(nats), entropyNats: answer.entropy_nats };
      });
    });

const generateOf =
  ({ on, connection, tokenizer, limits }: Live): Abilities["generate"] =>
  async (requests, options) => {
    const fitted = await fitRequests(tokenizer, requests, limits.window, options);
    const rows = fitted.map(({ prompt, sampling, room }) => ({
      prompt: [...prompt],
      max_new_tokens: room,
      temperature: sampling.temperature,
      ...(sampling.topP !== undefined && { top_p: sampling.topP }),
      ...(sampling.topK !== undefined && { top_k: sampling.topK }),
      ...(sampling.stop !== undefined && { stop: [...sampling.stop] }),
      ...(sampling.topTokens !== undefined && { top_tokens: sampling.topTokens }),
      seed: sampling.seed,
    }));
    const answers = await connection.rows("generate", { on, rows }, rows.length, options);
    return answers.map(({ text, ids, nats, finish, top }) => {
      checkLengths(connection, "generate", ids.length, nats, top ?? nats);
      return {
        text,
        ids,
        tokenNats: nats,
        finish,
        ...(top !== undefined && {
          topNats: top.map((at) => at.map(([word, p]) => ({ text: word, nats: p }))),
        }),
      };
    });
  };

const hiddenStatesOf =
  ({ on, connection, tokenizer }: Live): Abilities["hiddenStates"] =>
  async (requests, options) => {
    const prompts = await renderPrompts(
      tokenizer,
      requests.map(({ prompt }) => prompt),
      options,
    );
    // The layers of all requests are asked for once.
    const isAll = requests.some((request) => request.layers === undefined);
    const layers = isAll ? "all" : [...new Set(requests.flatMap((request) => request.layers!))];
    const rows = requests.map(({ from }, at) => {
      const { ids } = prompts[at]!;
      return { ids: [...ids], from: from ?? ids.length - 1 };
    });
    const answers = await connection.rows("hidden_states", { on, layers, rows }, rows.length, options);
    return requests.map((request, at) => {
      const vectors = answers[at]!.layers;
      if (layers === "all")
        return (request.layers ?? [...vectors.keys()]).map((layer) => floatsOf(vectors[layer]!));
      checkLengths(connection, "hidden_states", layers.length, vectors);
      return request.layers!.map((layer) => floatsOf(vectors[layers.indexOf(layer)]!));
    });
  };

/** @throws PeriodicEvalError `model` for a row of an answer whose lists have another length than the call asks for. */
function checkLengths(
  connection: Connection,
  method: string,
  expected: number,
  ...lists: readonly { readonly length: number }[]
): void {
  const wrong = lists.find(({ length }) => length !== expected);
  if (wrong !== undefined)
    throw connection.wrong(method, `a row with ${wrong.length} entries`, `${expected} for each list`);
}

/** Whether ids are 0, 1, 2 … in order. */
const isRange = (ids: readonly number[]): boolean => ids.length > 256 && ids.every((id, at) => id === at);

export function floatsOf(base64: string): Float32Array {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
}
