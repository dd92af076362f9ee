// Shows with two small batches, before training, whether a model's log-probs can mean something.
import type { CallOptions, EvaluableModel, MeasurementWarning } from "@periodic-eval/contracts";
import { withSeededRandom } from "../../guard/randomness.ts";
import { namedStream } from "../../random/streams.ts";
import { vocabularyFault, type Fault, type Ids, type Score } from "./probe-vocabulary.ts";

/**
 * Rounding changes the log-prob of a token by about 1e-5 nats in float32; dropout or a missing mask by more than 1e-2. Of other
 * formats only the engine knows.
 */
const defaultTolerance = 1e-3;

/**
 * Returns a warning if the model scores the same tokens differently in two batches, if later tokens change the log-probs of earlier
 * ones, or if its vocabulary has another order than its tokenizer. Nothing that such a model is asked can be judged. Empty for a
 * model that does not score tokens, and for one that fails here: its measurement reports why.
 *
 * @param texts Token ids of texts that a trained model should expect better than shuffled tokens; may be empty.
 */
export async function probeModel(
  model: EvaluableModel,
  texts: readonly Ids[],
  call: CallOptions,
): Promise<readonly MeasurementWarning[]> {
  const { tokenizer, contextLength, identity } = model;
  const { toleranceNats = /^float(32|64)$/.test(identity.dtype) ? defaultTolerance : Infinity } = model;
  if (model.logLikelihoods === undefined || tokenizer === undefined) return [];
  const score: Score = async (sequences) => {
    const requests = sequences.map((ids) => ({
      context: { ids: ids.slice(0, 1) },
      continuation: { ids: ids.slice(1) },
    }));
    return (await model.logLikelihoods!(requests, call)).map(({ tokenNats }) => tokenNats);
  };
  try {
    return await withSeededRandom("probes", async () => {
      const size = { vocabSize: tokenizer.vocabSize, length: Math.min(12, contextLength ?? 12) };
      const fault =
        (await scoringFault(score, size, toleranceNats)) ?? (await vocabularyFault(score, tokenizer, texts));
      return fault === null ? [] : [{ ...fault, metrics: null, count: null, total: null, void: true }];
    });
  } catch {
    return [];
  }
}

/**
 * Scores two sequences of random tokens, then the first again in the other place, beside the second with other tokens in its last
 * third. The sequences of a batch do not begin alike, because engines read a common beginning once.
 */
async function scoringFault(
  score: Score,
  { vocabSize, length }: { readonly vocabSize: number; readonly length: number },
  tolerance: number,
): Promise<Fault | null> {
  const random = namedStream("probes");
  // Tokens that were added last may have no row in the model.
  const draw = (count: number) => Array.from({ length: count }, () => Math.floor((random() * vocabSize) / 2));
  const shared = Math.ceil((2 * length) / 3);
  const [repeated, first] = [draw(length), draw(length)];
  // Another id for each token.
  const changed = first.map((id, at) => (at < shared ? id : (id + 1) % vocabSize));
  const [once, before] = await score([repeated, first]);
  const [after, again] = await score([changed, repeated]);
  const between = largestDifference(once!, again!);
  if (between > tolerance)
    return {
      kind: "unrepeatable",
      message: `The model scores the same tokens differently each time, by up to ${nats(between)}, where rounding explains ${nats(tolerance)}: nothing that it is asked can be judged. Switch dropout off in evaluation mode (\`enterEval\`).`,
    };
  const beforehand = (all: readonly number[]) => all.slice(0, shared - 1);
  const ahead = largestDifference(beforehand(before!), beforehand(after!));
  if (!(ahead > tolerance)) return null;
  return {
    kind: "looks_ahead",
    message: `Later tokens change the model's log-probs of earlier ones, by up to ${nats(ahead)}, where rounding explains ${nats(tolerance)}: the model reads what it should predict, and nothing that it is asked can be judged. Give it a causal mask.`,
  };
}

const nats = (value: number): string => `${Number(value.toPrecision(2))} nats per token`;

const largestDifference = (some: Ids, others: Ids): number =>
  Math.max(...some.map((value, at) => Math.abs(value - others[at]!)));
