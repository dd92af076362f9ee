import type {
  Awaitable,
  Abilities,
  Ability,
  EvaluableModel,
  LogLikelihoodRequest,
  Sampling,
} from "@periodic-eval/contracts";
import { expectEqual, expectRejects, expectThat, type Check, withoutMathRandom } from "./check.ts";

/** Tokens of a served model's vocabulary that are scored. */
const maxServedCandidates = 512;

/** Scores may change by this much with the other requests of a batch, in nats. */
const toleranceNats = 1e-4;

const contexts = [
  "The capital of France is",
  "A",
  "Two and two make",
  "Once upon a time, in a small village by the sea, there lived",
];
const pairs: readonly LogLikelihoodRequest[] = contexts.flatMap((text) =>
  [" Paris", " four.", " a baker and his three daughters"].map((continuation) => ({
    context: { text },
    continuation,
  })),
);

/**
 * Returns the checks that every model must pass. Abilities that the model lacks are skipped, and `null` is allowed for `isGreedy`,
 * `tokenIsGreedy`, `entropyNats` and `ids`.
 *
 * @param makeModel Returns the model. It may return the same model each time.
 *
 *     for (const check of modelConformance(() => inMemory(lm, tokenizer))) it(check.name, check.run);
 */
export function modelConformance(makeModel: () => Awaitable<EvaluableModel>): readonly Check[] {
  const check = (name: string, run: (model: EvaluableModel) => Promise<void>): Check => ({
    name,
    run: async () => run(await makeModel()),
  });
  return [
    check("reports its identity", async ({ identity, contextLength }) => {
      for (const field of ["name", "engine", "dtype"] as const)
        expectThat(identity[field] !== "", `identity.${field} is not empty`);
      expectThat(contextLength === null || contextLength > 0, "contextLength is positive or null");
    }),
    check("does not draw from Math.random", (model) =>
      withoutMathRandom(async () => {
        await model.logLikelihoods?.(pairs.slice(0, 2), live());
        await model.generate?.(
          [{ prompt: { text: contexts[0]! }, sampling: sampling({ temperature: 1 }) }],
          live(),
        );
      }),
    ),
    ...tokenizerChecks(check),
    ...logLikelihoodChecks(check),
    ...nextTokenChecks(check),
    ...generateChecks(check),
  ];
}

type MakeCheck = (name: string, run: (model: EvaluableModel) => Promise<void>) => Check;

/** Makes checks of one ability, which pass for models without it. */
const checksOf =
  <A extends Exclude<Ability, "tokenizer">>(ability: A, check: MakeCheck) =>
  (name: string, run: (ask: Abilities[A], model: EvaluableModel) => Promise<void>): Check =>
    check(`${ability}: ${name}`, async (model) => {
      const ask = model[ability]?.bind(model) as Abilities[A] | undefined;
      if (ask !== undefined) await run(ask, model);
    });

function tokenizerChecks(check: MakeCheck): readonly Check[] {
  const when = (name: string, run: (tokenizer: Abilities["tokenizer"]) => Awaitable<void>) =>
    check(`tokenizer: ${name}`, async ({ tokenizer }) => {
      if (tokenizer !== undefined) await run(tokenizer);
    });
  return [
    when("returns empty arrays for no texts, rows and prompts", async (tokenizer) => {
      expectEqual(await tokenizer.encode([]), [], "encoded texts");
      expectEqual(await tokenizer.decode([]), [], "decoded rows");
      expectEqual(await tokenizer.render([]), [], "rendered prompts");
    }),
    when("decodes the ids that it encodes, in order", async (tokenizer) => {
      const rows = await tokenizer.encode(contexts, { specialTokens: false });
      const texts = await tokenizer.decode(rows);
      expectEqual(
        texts.map((text) => text.trim()),
        contexts,
        "decode(encode(texts))",
      );
      expectThat(
        rows.flat().every((id) => id >= 0 && id < tokenizer.vocabSize),
        "ids are within the vocabulary",
      );
    }),
    when("renders text like encode, and ids unchanged", async (tokenizer) => {
      const [text, ids] = await tokenizer.render([{ text: contexts[0]! }, { ids: [3, 1, 2] }]);
      const [encoded] = await tokenizer.encode([contexts[0]!]);
      expectEqual(text!.ids, encoded, "render(text).ids");
      expectEqual(ids, { text: null, ids: [3, 1, 2], assistantMask: null }, "render(ids)");
    }),
    when(
      "has a fingerprint, and stop ids within its vocabulary",
      ({ fingerprint, stopIds, eosId, vocabSize }) => {
        expectThat(fingerprint !== "", "the fingerprint is not empty");
        expectThat(
          [...stopIds, eosId ?? 0].every((id) => id >= 0 && id < vocabSize),
          "stop ids are within the vocabulary",
        );
      },
    ),
  ];
}

function logLikelihoodChecks(check: MakeCheck): readonly Check[] {
  const when = checksOf("logLikelihoods", check);
  return [
    when("returns an empty array for no requests", async (ask) =>
      expectEqual(await ask([], live()), [], "answers"),
    ),
    when("returns finite log-probabilities and their sum", async (ask, { contextLength }) => {
      const answers = await ask(pairs, live());
      expectEqual(answers.length, pairs.length, "answers");
      for (const { sumNats, tokenNats, truncatedTokens } of answers) {
        expectThat(
          tokenNats.length > 0 && tokenNats.every((nats) => Number.isFinite(nats) && nats <= toleranceNats),
          "token log-probabilities are finite and at most 0",
        );
        expectClose(sumNats, sum(tokenNats), "sumNats is the sum of tokenNats");
        // The texts have less than 100 bytes, and tokenizers make at most one token per byte, plus a few special ones.
        if (contextLength === null || contextLength >= 128)
          expectThat(truncatedTokens === 0, "nothing is cut if everything fits");
      }
    }),
    when("reports isGreedy per token consistently with all tokens", async (ask) => {
      const asked = pairs.map((pair) => ({ ...pair, greedyIds: true }));
      for (const { tokenNats, isGreedy, tokenIsGreedy = null, tokenGreedyIds = null } of await ask(
        asked,
        live(),
      )) {
        if (tokenGreedyIds !== null)
          expectEqual(tokenGreedyIds.length, tokenNats.length, "tokenGreedyIds, one per token");
        if (tokenIsGreedy === null) continue;
        expectEqual(tokenIsGreedy.length, tokenNats.length, "tokenIsGreedy, one per token");
        if (isGreedy !== null) expectEqual(tokenIsGreedy.every(Boolean), isGreedy, "all of tokenIsGreedy");
      }
    }),
    when("scores ids like the text they encode", async (ask, { tokenizer }) => {
      if (tokenizer === undefined) return;
      const [before] = await tokenizer.encode([contexts[0]!]);
      const context = { ids: before! };
      const continuation = " four.";
      const [ids] = await tokenizer.encode([continuation], { specialTokens: false });
      const [asIds] = await ask([{ context, continuation: { ids: ids! } }], live());
      const [asText] = await ask([{ context, continuation }], live());
      expectClose(asIds!.sumNats, asText!.sumNats, "the same tokens, requested both ways");
    }),
    when("scores a request the same alone, in a batch and in another order", async (ask) => {
      const batched = await ask(pairs, live());
      const reversed = [...(await ask([...pairs].reverse(), live()))].reverse();
      for (const [at, pair] of pairs.entries()) {
        const [alone] = await ask([pair], live());
        expectClose(batched[at]!.sumNats, alone!.sumNats, `request ${at} batched and alone`);
        expectClose(reversed[at]!.sumNats, alone!.sumNats, `request ${at} in reverse order and alone`);
      }
    }),
    when("scores one token like nextToken", async (ask, model) => {
      if (model.tokenizer === undefined || model.nextToken === undefined) return;
      const [before] = await model.tokenizer.encode([contexts[0]!]);
      const context = { ids: before! };
      const [whole] = await ask([{ context, continuation: "x" }], live());
      const [candidates] = await model.tokenizer.encode(["x"], { specialTokens: false });
      if (whole!.tokenNats.length !== 1 || candidates!.length !== 1) return;
      const [next] = await model.nextToken([{ prompt: context, candidates: candidates! }], live());
      expectClose(whole!.sumNats, next!.nats[0]!, "the same token, requested both ways");
    }),
    when("rejects for an aborted signal", async (ask) => {
      await expectRejects(() => ask(pairs, aborted), "an aborted call rejects");
    }),
  ];
}

function nextTokenChecks(check: MakeCheck): readonly Check[] {
  const prompts = contexts.map((text) => ({ text }));
  const when = checksOf("nextToken", check);
  return [
    when("returns an empty array for no requests", async (ask) =>
      expectEqual(await ask([], live()), [], "answers"),
    ),
    when("returns candidates in the order of the request, alone and in a batch", async (ask) => {
      const batched = await ask(
        prompts.map((prompt) => ({ prompt, candidates: [1, 2, 3, 2] })),
        live(),
      );
      for (const [at, prompt] of prompts.entries()) {
        const [alone] = await ask([{ prompt, candidates: [3, 2, 1] }], live());
        const [one, two, three, again] = batched[at]!.nats;
        expectClose(two!, again!, "a candidate requested twice");
        for (const [i, nats] of [three, two, one].entries())
          expectClose(alone!.nats[i]!, nats!, `candidate ${i} of prompt ${at}`);
      }
    }),
    when(
      "returns a distribution over the vocabulary, and its entropy",
      async (ask, { tokenizer, isServed }) => {
        if (tokenizer === undefined) return;
        // A server scores each token that is not among the most likely ones as a prompt of its own.
        const isSample = isServed === true && tokenizer.vocabSize > maxServedCandidates;
        const step = isSample ? Math.ceil(tokenizer.vocabSize / maxServedCandidates) : 1;
        const all = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
        const candidates = all.filter((id) => id % step === 0);
        const [answer] = await ask([{ prompt: prompts[0]!, candidates }], live());
        expectThat(answer!.nats.every(Number.isFinite), "log-probabilities are finite");
        const total = sum(answer!.nats.map(Math.exp));
        if (isSample)
          return expectThat(total <= 1 + 1e-3, "the probabilities of some tokens are at most 1 together");
        expectClose(total, 1, "the probabilities of all tokens together", 1e-3);
        if (answer!.entropyNats === null) return;
        const entropy = -sum(answer!.nats.map((nats) => nats * Math.exp(nats)));
        expectClose(answer!.entropyNats, entropy, "entropyNats", 1e-3);
      },
    ),
    when("cuts a long prompt on the left and reports the tokens cut", async (ask, { contextLength }) => {
      if (contextLength === null || contextLength > 4096) return;
      const ids = Array.from({ length: contextLength + 5 }, (_, at) => 1 + (at % 7));
      const [long, tail] = await ask(
        [ids, ids.slice(-contextLength)].map((some) => ({ prompt: { ids: some }, candidates: [1, 2] })),
        live(),
      );
      expectEqual([long!.truncatedTokens, tail!.truncatedTokens], [5, 0], "truncatedTokens");
      for (const at of [0, 1]) expectClose(long!.nats[at]!, tail!.nats[at]!, "the cut prompt and its tail");
    }),
    when("rejects for an aborted signal", async (ask) => {
      await expectRejects(
        () => ask([{ prompt: prompts[0]!, candidates: [1] }], aborted),
        "an aborted call rejects",
      );
    }),
  ];
}

function generateChecks(check: MakeCheck): readonly Check[] {
  const request = (text: string, changes: Partial<Sampling> = {}) => ({
    prompt: { text },
    sampling: sampling(changes),
  });
  const when = checksOf("generate", check);
  return [
    when("returns an empty array for no requests", async (ask) =>
      expectEqual(await ask([], live()), [], "answers"),
    ),
    when("generates at most maxNewTokens and reports how it ended", async (ask) => {
      const answers = await ask(
        contexts.map((text) => request(text, { maxNewTokens: 3 })),
        live(),
      );
      expectEqual(answers.length, contexts.length, "answers");
      for (const { ids, finish } of answers) {
        expectThat(ids === null || ids.length <= 3, "at most 3 tokens");
        expectThat(finish === "stop" || finish === "length", "finish is stop or length");
      }
    }),
    when("generates the same greedily for any seed", async (ask) => {
      const [a, b] = await ask(
        [request(contexts[0]!, { seed: "1" }), request(contexts[0]!, { seed: "2" })],
        live(),
      );
      expectEqual(a!.text, b!.text, "two greedy completions");
    }),
    when("samples by the seed of its request, in any batch", async (ask) => {
      const asked = contexts.map((text, at) => request(text, { temperature: 1, seed: `s${at}` }));
      const together = await ask(asked, live());
      for (const [at, single] of asked.entries()) {
        const [alone] = await ask([single], live());
        expectEqual(alone!.text, together[at]!.text, `completion ${at}`);
      }
    }),
    when("ends before a stop string", async (ask) => {
      const [whole] = await ask([request(contexts[0]!)], live());
      const stop = whole!.text.slice(2, 4);
      if (stop.length < 2) return;
      const [cut] = await ask([request(contexts[0]!, { stop: [stop] })], live());
      expectEqual(
        cut!.text,
        whole!.text.slice(0, whole!.text.indexOf(stop)),
        "the text before the stop string",
      );
      expectEqual(cut!.finish, "stop", "finish");
    }),
    when("rejects for an aborted signal", async (ask) => {
      await expectRejects(() => ask([request(contexts[0]!)], aborted), "an aborted call rejects");
    }),
  ];
}

function sampling(changes: Partial<Sampling>): Sampling {
  return { maxNewTokens: 8, temperature: 0, seed: "seed", ...changes };
}

const live = () => ({ signal: new AbortController().signal });
const aborted = { signal: AbortSignal.abort() };

function expectClose(got: number, expected: number, what: string, tolerance = toleranceNats): void {
  if (!(Math.abs(got - expected) <= tolerance))
    throw new Error(`${what}: got ${got}, expected ${expected} ± ${tolerance}`);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
