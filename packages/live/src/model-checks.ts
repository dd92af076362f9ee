// Checks of a client's model: its answers are compared with each other.
import type { Connection } from "./connection.ts";
import { floatsOf } from "./live-model.ts";
import type { ParamsOf, RowOf } from "./protocol.ts";

type Ids = readonly number[];

/** The model that checks read, with their rows. */
export interface CheckedModel {
  readonly connection: Connection;
  /** Token ids of texts of different lengths, so that a batch has padding. */
  readonly rows: readonly Ids[];
  /** By how much two readings of a log-prob may differ, in nats. */
  readonly tolerance: number;
  readonly stopIds: Ids;
}

const copy = (rows: readonly Ids[]): number[][] => rows.map((ids) => [...ids]);

const topOf = (nats: Float32Array): number => nats.indexOf(Math.max(...nats));

/** Returns the log-probs of the whole vocabulary after each row. */
async function distributions(
  connection: Connection,
  rows: readonly Ids[],
  on: "model" | "base" = "model",
): Promise<readonly { readonly nats: Float32Array; readonly entropy: number }[]> {
  const params = { on, rows: copy(rows), candidates: "all" as const };
  const answers = await connection.rows("next_token", params, rows.length);
  return answers.map(({ nats, entropy_nats: entropy }) => ({ nats: floatsOf(nats), entropy }));
}

async function checkDistributions({ connection, rows }: CheckedModel, on: "model" | "base"): Promise<void> {
  for (const { nats, entropy } of await distributions(connection, rows, on)) {
    const sum = nats.reduce((total, value) => total + Math.exp(value), 0);
    if (!(Math.abs(Math.log(sum)) <= 2e-3)) throw new Error(`got the sum ${sum}`);
    const expected = -nats.reduce((total, value) => total + Math.exp(value) * Math.max(value, -1e4), 0);
    if (!(Math.abs(entropy - expected) <= 0.01 + 0.01 * expected))
      throw new Error(`got an entropy of ${entropy} nats, the log-probs have ${expected}`);
  }
}

export const checkSum = (model: CheckedModel): Promise<void> => checkDistributions(model, "model");

export const checkBase = (model: CheckedModel): Promise<void> => checkDistributions(model, "base");

const score = (
  connection: Connection,
  rows: ParamsOf<"log_likelihoods">["rows"],
): Promise<readonly RowOf<"log_likelihoods">[]> =>
  connection.rows("log_likelihoods", { on: "model", rows, greedy_ids: true }, rows.length);

/** Checks the scores of the most likely token and of another one after each row. */
export async function checkScores({ connection, rows, tolerance }: CheckedModel): Promise<void> {
  const all = (await distributions(connection, rows)).map(({ nats }) => nats);
  const asked = rows.flatMap((context, at) => {
    const top = topOf(all[at]!);
    return [top, top === 5 ? 6 : 5].map((id) => ({ context, id, expected: all[at]!, top }));
  });
  const scores = await score(
    connection,
    asked.map(({ context, id }) => ({ context: [...context], continuation: [id] })),
  );
  for (const [at, { id, expected, top }] of asked.entries()) {
    const { nats, greedy, greedy_ids: greedyIds } = scores[at]!;
    if (nats.length !== 1 || greedy.length !== 1) throw new Error(`got ${nats.length} numbers for one token`);
    if (!(Math.abs(nats[0]! - expected[id]!) <= tolerance))
      throw new Error(`got ${nats[0]} nats of id ${id}, next_token says ${expected[id]}`);
    const behind = expected[top]! - expected[id]!;
    if ((greedy[0] === true && behind > tolerance) || (greedy[0] === false && behind === 0))
      throw new Error(`got that id ${id} is ${greedy[0] ? "" : "not "}a most likely one, which id ${top} is`);
    const best = greedyIds?.[0];
    if (best === undefined || !(expected[top]! - expected[best]! <= tolerance))
      throw new Error(`got the id ${best} as the most likely one, which id ${top} is`);
  }
}

export async function checkBatch({ connection, rows, tolerance }: CheckedModel): Promise<void> {
  const pairs = rows.map((ids) => ({
    context: ids.slice(0, 1),
    continuation: ids.length > 1 ? ids.slice(1) : [ids[0]!],
  }));
  const together = await score(connection, pairs);
  for (const [at, pair] of pairs.entries()) {
    const [alone] = await score(connection, [pair]);
    alone!.nats.forEach((nats, token) => {
      const other = together[at]!.nats[token];
      if (other === undefined || !(Math.abs(nats - other) <= tolerance))
        throw new Error(`row ${at}, token ${token}: got ${other} nats among others, ${nats} alone`);
    });
  }
}

type GenerateRow = ParamsOf<"generate">["rows"][number];

const answer = (
  connection: Connection,
  rows: readonly Ids[],
  more: Partial<GenerateRow>,
  options: { readonly signal?: AbortSignal; onProgress?(): void } = {},
): Promise<readonly RowOf<"generate">[]> => {
  const defaults = { max_new_tokens: 4, temperature: 0 };
  const asked = rows.map((prompt, at) => ({
    prompt: [...prompt],
    ...defaults,
    seed: `check ${at}`,
    ...more,
  }));
  return connection.rows("generate", { on: "model", rows: asked }, rows.length, options);
};

export async function checkGreedy({ connection, rows, tolerance }: CheckedModel): Promise<void> {
  const answers = await answer(connection, rows, {});
  for (const [at, { ids, nats }] of answers.entries()) {
    if (nats.length !== ids.length) throw new Error(`got ${nats.length} log-probs of ${ids.length} ids`);
    const read = ids.map((_, token) => [...rows[at]!, ...ids.slice(0, token)]);
    (await distributions(connection, read)).forEach(({ nats: all }, token) => {
      // Two tokens may be as likely, within rounding.
      if (!(all[topOf(all)]! - all[ids[token]!]! <= tolerance))
        throw new Error(`got id ${ids[token]}, the most likely one is ${topOf(all)}`);
      if (!(Math.abs(nats[token]! - all[ids[token]!]!) <= tolerance))
        throw new Error(`got ${nats[token]} nats, next_token says ${all[ids[token]!]}`);
    });
  }
}

export async function checkDraws({ connection, rows }: CheckedModel): Promise<void> {
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

export async function checkStop({ connection, rows, stopIds }: CheckedModel): Promise<void> {
  const many = Array.from({ length: 8 }, () => rows).flat();
  const warm = { temperature: 1, max_new_tokens: 40 };
  const answers = await answer(connection, many, warm);
  for (const { ids, finish } of answers) {
    const stopped = ids.findIndex((id) => stopIds.includes(id));
    if (finish === "stop" ? stopped !== ids.length - 1 : stopped >= 0 || ids.length !== 40)
      throw new Error(`got "${finish}" after ${ids.length} of 40 ids, with a stop id at ${stopped}`);
  }
  const at = answers.findIndex(({ text }) => text.trim().length > 6);
  if (at === -1) return;
  const { text } = answers[at]!;
  const stop = text.trim().slice(3, 6);
  const [cut] = await answer(connection, [many[at]!], { ...warm, seed: `check ${at}`, stop: [stop] });
  if (cut!.finish !== "stop" || cut!.text !== text.slice(0, text.indexOf(stop)))
    throw new Error(`got ${JSON.stringify(cut!.text)}, expected the text before ${JSON.stringify(stop)}`);
  const before = { rows: [cut!.ids.slice(0, -1)], special_tokens: false };
  const [whole] = await connection.rows("decode", before, 1);
  if (whole!.includes(stop))
    throw new Error(`got ids after those of the stop string ${JSON.stringify(stop)}: ${String(cut!.ids)}`);
}

/** Seconds in which a call that runs must show progress: the protocol's two, and as many for a busy machine. */
const progressSeconds = 4;

/** Rows of the longest call: also a small model on a fast machine works on them for longer than that. */
const mostRows = 2 ** 18;

/** Asks for ever longer answers, until one shows progress, and cancels it. */
export async function checkLongCall({ connection, rows }: CheckedModel): Promise<void> {
  for (let count = 64; count <= mostRows; count *= 4) {
    const controller = new AbortController();
    const many = Array.from({ length: count }, (_, at) => rows[at % rows.length]!);
    const began = performance.now();
    const seconds = () => (performance.now() - began) / 1000;
    let [progressAt, cancelledAt] = [Infinity, Infinity];
    const cancel = () => {
      cancelledAt = Math.min(cancelledAt, seconds());
      controller.abort(new Error("cancelled"));
    };
    const timer = setTimeout(cancel, 1000 * progressSeconds);
    const options = {
      signal: controller.signal,
      onProgress: () => {
        progressAt = Math.min(progressAt, seconds());
        cancel();
      },
    };
    const long = { max_new_tokens: 100, temperature: 1 };
    const isWhole = await answer(connection, many, long, options).then(
      () => true,
      (error: unknown) => {
        if (!controller.signal.aborted) throw error;
        return false;
      },
    );
    clearTimeout(timer);
    const waited = seconds() - cancelledAt;
    // The call was over when it was cancelled, or nearly.
    if (isWhole && !(waited > 2) && count < mostRows) continue;
    if (progressAt === Infinity && cancelledAt < Infinity)
      throw new Error(`got no progress in ${progressSeconds} s`);
    if (isWhole && waited > 2) throw new Error(`got a whole answer ${waited.toFixed(1)} s after a cancel`);
    return;
  }
}

/** Checks the mean of positions, and that layer 0, the embedding, does not depend on earlier tokens. */
export async function checkHidden({ connection, rows }: CheckedModel): Promise<void> {
  const ids = [...rows[1]!];
  const last = ids.length - 1;
  const positions = ids.map((_, at) => ({ ids: ids.slice(0, at + 1), from: at }));
  const changed = { ids: [...rows[0]!, ...ids].slice(-ids.length).with(0, ids[last]!), from: last };
  const asked = [{ ids, from: 0 }, changed, ...positions];
  const params = { on: "model" as const, rows: asked, layers: [0, 1] };
  const answers = await connection.rows("hidden_states", params, asked.length);
  const [mean, other, ...each] = answers.map(({ layers }) => layers.map(floatsOf));
  const expectClose = (
    layer: number,
    vector: Float32Array,
    expected: (index: number) => number,
    what: string,
  ) =>
    vector.forEach((value, index) => {
      const wanted = expected(index);
      if (!(Math.abs(value - wanted) <= 1e-2 + 1e-2 * Math.abs(wanted)))
        throw new Error(`layer ${layer}: got ${value}, ${what} is ${wanted}`);
    });
  mean!.forEach((vector, layer) => {
    const of = (index: number) => each.reduce((sum, layers) => sum + layers[layer]![index]!, 0) / each.length;
    expectClose(layer, vector, of, "the mean of its positions");
  });
  expectClose(0, other![0]!, (index) => each[last]![0]![index]!, "the embedding after other tokens");
}

/** Log-probs and draws of some rows, which are equal at two times if the weights are. */
export interface Readings {
  readonly nats: readonly number[];
  readonly draws: string;
}

export async function readings(
  { connection, rows }: CheckedModel,
  abilities: readonly string[],
): Promise<Readings> {
  const pairs = rows.map((context) => ({ context: [...context], continuation: [5] }));
  const nats = abilities.includes("log_likelihoods")
    ? (await score(connection, pairs)).map((row) => row.nats[0]!)
    : [];
  const draws = abilities.includes("generate")
    ? (await answer(connection, rows, { temperature: 1 })).map(({ ids }) => ids)
    : [];
  return { nats, draws: JSON.stringify(draws) };
}

export async function checkSame(
  model: CheckedModel,
  abilities: readonly string[],
  expected: Readings,
): Promise<void> {
  const { nats, draws } = await readings(model, abilities);
  const worst = Math.max(0, ...nats.map((value, at) => Math.abs(value - expected.nats[at]!)));
  if (!(worst <= model.tolerance)) throw new Error(`got log-probs that differ by ${worst} nats`);
  if (draws !== expected.draws) throw new Error(`got the draws ${draws}, expected ${expected.draws}`);
}
