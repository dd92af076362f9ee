import { PeriodicEvalError } from "@periodic-eval/core";
import { namedStream } from "@periodic-eval/core/random";
import type { ForwardLimits } from "../batching/batches.ts";
import type { CausalLM } from "../causal-lm/causal-lm.ts";
import { windowLength } from "../causal-lm/forward.ts";
import { scorePacked } from "./score-packed.ts";
import { scorePlain, type AllScores, type ScoredSequence } from "./score-plain.ts";
import { packingOf } from "./score-sequences.ts";

/** Nats per token. Rounding changes scores by about 1e-5; a wrong mask or position by 1e-2 or more. */
const tolerance = 1e-3;

/**
 * Checks that packed scoring agrees with plain scoring, on two questions with two choices each, made of random tokens with a
 * fixed seed.
 *
 * @throws PeriodicEvalError `model` if a token's score differs by more than 1e-3 nats; `aborted`.
 */
export async function selfCheck(lm: CausalLM, limits: ForwardLimits, signal: AbortSignal): Promise<void> {
  const incremental = packingOf(lm, limits);
  if (incremental === null) return;
  const sequences = questions(lm.vocabSize, Math.min(windowLength(lm), incremental.reach));
  const options = { signal, limits, withEntropy: false };
  const packed = await scorePacked(lm, incremental, sequences, options);
  const plain = await scorePlain(lm, sequences, options);
  const most = furthest(plain, packed);
  if (most <= tolerance) return;
  // Scores that do not repeat (dropout left on) are no fault of packing. The session's probe warns of them.
  if (furthest(plain, await scorePlain(lm, sequences, options)) > tolerance) return;
  throw new PeriodicEvalError({
    code: "model",
    where: "inMemory scoring",
    got: `packed scores that differ from plain ones by up to ${most.toPrecision(2)} nats per token`,
    expected: `at most ${tolerance}`,
    fix: 'Score with `inMemory(lm, tokenizer, { scoring: "plain" })`, and correct the model\'s `incremental` or its causal mask.',
  });
}

/** Returns the largest difference of two scores. A diverged model returns NaN both ways; its measurement reports that. */
function furthest(some: AllScores, others: AllScores): number {
  const far = some.scores.flatMap(({ nats }, index) =>
    nats.map((value, at) => Math.abs(value - others.scores[index]!.nats[at]!)),
  );
  return Math.max(0, ...far.filter((value) => !Number.isNaN(value)));
}

function questions(vocabSize: number, longest: number): readonly ScoredSequence[] {
  const random = namedStream("self-check");
  const draw = (count: number) => Array.from({ length: count }, () => Math.floor(random() * vocabSize));
  // All four begin with the same tokens, like questions after the same few-shot examples.
  const lengths = longest < 18 ? [1, 2, 1] : [9, 6, 3];
  const [shared, context, choice] = lengths as [number, number, number];
  const start = draw(shared);
  return [draw(context), draw(context)].flatMap((own) =>
    [draw(choice), draw(choice)].map((last) => ({
      ids: [...start, ...own, ...last],
      picks: [...last.slice(0, 1), ...last].map((token) => [token]),
    })),
  );
}
