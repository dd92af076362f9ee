import type { Awaitable } from "../contracts/json.ts";
import type { Abilities, EvaluableModel, LogLikelihoodRequest, Sampling } from "../contracts/model.ts";
import { expectEqual, expectRejects, expectThat, type Check } from "./check.ts";
import { withoutMathRandom } from "./math-random.ts";

/** Scores may move by this much with their neighbours in a batch, in nats. */
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
 * What every model must do with the abilities it has; those it lacks are passed over. `makeModel` may give the same
 * model each time. `null` results of optional fields (`isGreedy`, `tokenIsGreedy`, `entropyNats`, `ids`) are always allowed.
 *
 *     for (const check of modelConformance(() => inMemory(lm, tokenizer))) it(check.name, check.run);
 */
export function modelConformance(makeModel: () => Awaitable<EvaluableModel>): readonly Check[] {
  const check = (name: string, run: (model: EvaluableModel) => Promise<void>): Check => ({
    name,
    run: async () => run(await makeModel()),
  });
  return [
    check("says who it is", async ({ identity, contextLength }) => {
      for (const field of ["name", "engine", "dtype"] as const)
        expectThat(identity[field] !== "", `identity.${field} is not empty`);
      expectThat(contextLength === null || contextLength > 0, "contextLength is positive or null");
    }),
    check("scores with nothing from Math.random", (model) =>
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

function tokenizerChecks(check: MakeCheck): readonly Check[] {
  const when = (name: string, run: (tokenizer: Abilities["tokenizer"]) => void) =>
    check(`tokenizer: ${name}`, async ({ tokenizer }) => {
      if (tokenizer !== undefined) run(tokenizer);
    });
  return [
    when("decodes what it encoded", (tokenizer) => {
      for (const text of contexts) {
        const ids = tokenizer.encode(text, { specialTokens: false });
        expectEqual(tokenizer.decode(ids).trim(), text, "decode(encode(text))");
        expectThat(
          ids.every((id) => id >= 0 && id < tokenizer.vocabSize),
          "ids lie in the vocabulary",
        );
      }
    }),
    when("renders text as encode does, and ids as they are", (tokenizer) => {
      expectEqual(
        tokenizer.render({ text: contexts[0]! }).ids,
        tokenizer.encode(contexts[0]!),
        "render(text).ids",
      );
      expectEqual(
        tokenizer.render({ ids: [3, 1, 2] }),
        { text: null, ids: [3, 1, 2], assistantMask: null },
        "render(ids)",
      );
    }),
    when("has a fingerprint and stop ids of its vocabulary", ({ fingerprint, stopIds, eosId, vocabSize }) => {
      expectThat(fingerprint !== "", "the fingerprint is not empty");
      expectThat(
        [...stopIds, eosId ?? 0].every((id) => id >= 0 && id < vocabSize),
        "stop ids lie in the vocabulary",
      );
    }),
  ];
}

function logLikelihoodChecks(check: MakeCheck): readonly Check[] {
  const when = (
    name: string,
    run: (ask: Abilities["logLikelihoods"], model: EvaluableModel) => Promise<void>,
  ) =>
    check(`logLikelihoods: ${name}`, async (model) => {
      if (model.logLikelihoods !== undefined) await run(model.logLikelihoods.bind(model), model);
    });
  return [
    when("answers nothing with nothing", async (ask) => expectEqual(await ask([], live()), [], "answers")),
    when("gives finite log-probabilities that add up", async (ask, { contextLength }) => {
      const answers = await ask(pairs, live());
      expectEqual(answers.length, pairs.length, "answers");
      for (const { sumNats, tokenNats, truncatedTokens } of answers) {
        expectThat(
          tokenNats.length > 0 && tokenNats.every((nats) => Number.isFinite(nats) && nats <= toleranceNats),
          "token log-probabilities are finite and not above 0",
        );
        expectClose(sumNats, sum(tokenNats), "sumNats is the sum of tokenNats");
        // The texts are under 100 bytes, and no tokenizer makes more tokens than bytes, but for a few special ones.
        if (contextLength === null || contextLength >= 128)
          expectThat(truncatedTokens === 0, "nothing is cut where all fits");
      }
    }),
    when("tells of each token whether it was the most likely one, as of all together", async (ask) => {
      for (const { tokenNats, isGreedy, tokenIsGreedy = null } of await ask(pairs, live())) {
        if (tokenIsGreedy === null) continue;
        expectEqual(tokenIsGreedy.length, tokenNats.length, "tokenIsGreedy, one a token");
        if (isGreedy !== null) expectEqual(tokenIsGreedy.every(Boolean), isGreedy, "all of tokenIsGreedy");
      }
    }),
    when("scores ids after ids as the text that they are of", async (ask, { tokenizer }) => {
      if (tokenizer === undefined) return;
      const context = { ids: tokenizer.encode(contexts[0]!) };
      const continuation = " four.";
      const ids = tokenizer.encode(continuation, { specialTokens: false });
      const [asIds] = await ask([{ context, continuation: { ids } }], live());
      const [asText] = await ask([{ context, continuation }], live());
      expectClose(asIds!.sumNats, asText!.sumNats, "the same tokens asked both ways");
    }),
    when("scores a request alike alone, in a batch and in another order", async (ask) => {
      const batched = await ask(pairs, live());
      const reversed = [...(await ask([...pairs].reverse(), live()))].reverse();
      for (const [at, pair] of pairs.entries()) {
        const [alone] = await ask([pair], live());
        expectClose(batched[at]!.sumNats, alone!.sumNats, `request ${at} batched and alone`);
        expectClose(reversed[at]!.sumNats, alone!.sumNats, `request ${at} in reverse order and alone`);
      }
    }),
    when("gives one token what nextToken gives it", async (ask, model) => {
      if (model.tokenizer === undefined || model.nextToken === undefined) return;
      const context = { ids: model.tokenizer.encode(contexts[0]!) };
      const [whole] = await ask([{ context, continuation: "x" }], live());
      const candidates = model.tokenizer.encode("x", { specialTokens: false });
      if (whole!.tokenNats.length !== 1 || candidates.length !== 1) return;
      const [next] = await model.nextToken([{ prompt: context, candidates }], live());
      expectClose(whole!.sumNats, next!.nats[0]!, "the same token asked both ways");
    }),
    when("stops at an aborted signal", async (ask) => {
      await expectRejects(() => ask(pairs, { signal: AbortSignal.abort() }), "an aborted call rejects");
    }),
  ];
}

function nextTokenChecks(check: MakeCheck): readonly Check[] {
  const prompts = contexts.map((text) => ({ text }));
  const when = (name: string, run: (ask: Abilities["nextToken"], model: EvaluableModel) => Promise<void>) =>
    check(`nextToken: ${name}`, async (model) => {
      if (model.nextToken !== undefined) await run(model.nextToken.bind(model), model);
    });
  return [
    when("answers nothing with nothing", async (ask) => expectEqual(await ask([], live()), [], "answers")),
    when("answers candidates in the order asked, alone as in a batch", async (ask) => {
      const batched = await ask(
        prompts.map((prompt) => ({ prompt, candidates: [1, 2, 3, 2] })),
        live(),
      );
      for (const [at, prompt] of prompts.entries()) {
        const [alone] = await ask([{ prompt, candidates: [3, 2, 1] }], live());
        const [one, two, three, again] = batched[at]!.nats;
        expectClose(two!, again!, "a candidate asked twice");
        for (const [i, nats] of [three, two, one].entries())
          expectClose(alone!.nats[i]!, nats!, `candidate ${i} of prompt ${at}`);
      }
    }),
    when("gives a distribution over the vocabulary, and its entropy", async (ask, { tokenizer }) => {
      if (tokenizer === undefined) return;
      const candidates = Array.from({ length: tokenizer.vocabSize }, (_, id) => id);
      const [answer] = await ask([{ prompt: prompts[0]!, candidates }], live());
      expectThat(answer!.nats.every(Number.isFinite), "log-probabilities are finite");
      expectClose(sum(answer!.nats.map(Math.exp)), 1, "the probabilities of all tokens together", 1e-3);
      if (answer!.entropyNats === null) return;
      const entropy = -sum(answer!.nats.map((nats) => nats * Math.exp(nats)));
      expectClose(answer!.entropyNats, entropy, "entropyNats", 1e-3);
    }),
    when("cuts a prompt that is too long on the left, and says how much", async (ask, { contextLength }) => {
      if (contextLength === null || contextLength > 4096) return;
      const ids = Array.from({ length: contextLength + 5 }, (_, at) => 1 + (at % 7));
      const [long, tail] = await ask(
        [ids, ids.slice(-contextLength)].map((some) => ({ prompt: { ids: some }, candidates: [1, 2] })),
        live(),
      );
      expectEqual([long!.truncatedTokens, tail!.truncatedTokens], [5, 0], "truncatedTokens");
      for (const at of [0, 1]) expectClose(long!.nats[at]!, tail!.nats[at]!, "the cut prompt and its tail");
    }),
    when("stops at an aborted signal", async (ask) => {
      await expectRejects(
        () => ask([{ prompt: prompts[0]!, candidates: [1] }], { signal: AbortSignal.abort() }),
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
  const when = (name: string, run: (ask: Abilities["generate"]) => Promise<void>) =>
    check(`generate: ${name}`, async (model) => {
      if (model.generate !== undefined) await run(model.generate.bind(model));
    });
  return [
    when("answers nothing with nothing", async (ask) => expectEqual(await ask([], live()), [], "answers")),
    when("writes no more than it may, and says how it ended", async (ask) => {
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
    when("greedily says the same whatever the seed", async (ask) => {
      const [a, b] = await ask(
        [request(contexts[0]!, { seed: "1" }), request(contexts[0]!, { seed: "2" })],
        live(),
      );
      expectEqual(a!.text, b!.text, "two greedy completions");
    }),
    when("samples by its own seed, whatever stands beside it", async (ask) => {
      const asked = contexts.map((text, at) => request(text, { temperature: 1, seed: `s${at}` }));
      const together = await ask(asked, live());
      for (const [at, one] of asked.entries()) {
        const [alone] = await ask([one], live());
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
    when("stops at an aborted signal", async (ask) => {
      await expectRejects(
        () => ask([request(contexts[0]!)], { signal: AbortSignal.abort() }),
        "an aborted call rejects",
      );
    }),
  ];
}

function sampling(changes: Partial<Sampling>): Sampling {
  return { maxNewTokens: 8, temperature: 0, seed: "seed", ...changes };
}

function live() {
  return { signal: new AbortController().signal };
}

function expectClose(got: number, expected: number, what: string, tolerance = toleranceNats): void {
  if (!(Math.abs(got - expected) <= tolerance))
    throw new Error(`${what}: got ${got}, expected ${expected} ± ${tolerance}`);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
