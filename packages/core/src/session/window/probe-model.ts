import type {
  MeasurementWarning,
  EvaluableModel,
  CallOptions,
  BulkTokenizer,
} from "@periodic-eval/contracts";
import { withSeededRandom } from "../../random/guards.ts";
import { namedStream } from "../../random/streams.ts";
import { warningOfAll } from "../records/new-snapshot.ts";

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
      return fault === null ? [] : [warningOfAll(fault.kind, fault.message)];
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

const largestDifference = (a: Ids, b: Ids): number =>
  Math.max(...a.map((value, at) => Math.abs(value - b[at]!)));

/** Token ids of one text. */
export type Ids = readonly number[];
/** Returns the log-prob of each token but the first, in nats, for each sequence. */
export type Score = (sequences: readonly Ids[]) => Promise<readonly (readonly number[])[]>;
export type Fault = Pick<MeasurementWarning, "kind" | "message">;

/** Texts of words in the vocabulary have more characters per token. Its model may know nothing of other texts. */
const charactersPerToken = 2.5;
/** Ids are shifted by these numbers for comparison: neighbours in a vocabulary are about as frequent. */
const shifts = [1, -1, 3, -3];
/** Nats per token between the text and shifted ids: at least 3.1 with the right order, at most 1.9 with another (measured). */
const leastAdvantage = 2.5;
/** By how much a trained model expects shifted ids less than chance, at least; random weights give about chance. */
const leastSurprise = 1.5;
const [mostTexts, mostTokens, leastTokens] = [8, 17, 6];

/**
 * Compares texts with the same texts in shifted ids. A text at chance level that is expected no better than those is read with the
 * wrong ids, if the weights are trained.
 */
export async function vocabularyFault(
  score: Score,
  tokenizer: BulkTokenizer,
  texts: readonly Ids[],
): Promise<Fault | null> {
  const { vocabSize } = tokenizer;
  if (texts.length === 0) return null;
  const endings = texts.map((ids) => ids.slice(-mostTokens));
  const tokens = [...new Set(endings.flat())];
  const decoded = await tokenizer.decode([...endings, ...tokens.map((id) => [id])], { specialTokens: false });
  const ordinary = new Set(tokens.filter((_, at) => decoded[endings.length + at] !== ""));
  const isOrdinary = (id: number): boolean => ordinary.has(id);
  const plain = endings.filter((ids, at) => {
    const count = ids.filter(isOrdinary).length;
    return count >= leastTokens && [...decoded[at]!].length >= charactersPerToken * count;
  });
  if (plain.length === 0 || 2 * plain.length < texts.length) return null;
  const ends = plain.slice(0, mostTexts);
  const surprise = async (shift: number) => {
    const moved = ends.map((ids) =>
      ids.map((id) => (isOrdinary(id) ? (id + shift + vocabSize) % vocabSize : id)),
    );
    const scores = await score(moved);
    return -meanOf(scores.flatMap((all, index) => all.filter((_, at) => isOrdinary(ends[index]![at + 1]!))));
  };
  const chance = Math.log(vocabSize);
  const unshifted = await surprise(0);
  if (!(unshifted >= chance)) return null;
  const byShift: number[] = [];
  for (const shift of shifts) byShift.push(await surprise(shift));
  const shifted = meanOf(byShift);
  if (!(shifted >= chance + leastSurprise && unshifted > shifted - leastAdvantage)) return null;
  return {
    kind: "vocabulary_order",
    message: `The model expects the training rows no better than shifted token ids (${unshifted.toFixed(1)} and ${shifted.toFixed(1)} nats per token; chance is ${chance.toFixed(1)}): its vocabulary has another order than its tokenizer, and nothing that it is asked can be judged. Load the tokenizer of this model.`,
  };
}

const meanOf = (values: Ids): number => values.reduce((sum, value) => sum + value, 0) / values.length;
