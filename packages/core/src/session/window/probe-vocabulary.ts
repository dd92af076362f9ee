import type { Tokenizer, MeasurementWarning } from "@periodic-eval/contracts";

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
  tokenizer: Tokenizer,
  texts: readonly Ids[],
): Promise<Fault | null> {
  const { vocabSize } = tokenizer;
  const textOf = (ids: Ids) => tokenizer.decode(ids, { specialTokens: false });
  const ordinary = new Map<number, boolean>();
  const isOrdinary = (id: number): boolean => {
    const known = ordinary.get(id) ?? textOf([id]) !== "";
    ordinary.set(id, known);
    return known;
  };
  const isPlain = (ids: Ids) => {
    const count = ids.filter(isOrdinary).length;
    const characters = [...textOf(ids)].length;
    return count >= leastTokens && characters >= charactersPerToken * count;
  };
  const plain = texts.map((ids) => ids.slice(-mostTokens)).filter(isPlain);
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
  const own = await surprise(0);
  if (!(own >= chance)) return null;
  const others: number[] = [];
  for (const shift of shifts) others.push(await surprise(shift));
  const shifted = meanOf(others);
  if (!(shifted >= chance + leastSurprise && own > shifted - leastAdvantage)) return null;
  return {
    kind: "vocabulary_order",
    message: `The model expects the training rows no better than shifted token ids (${own.toFixed(1)} and ${shifted.toFixed(1)} nats per token; chance is ${chance.toFixed(1)}): its vocabulary has another order than its tokenizer, and nothing that it is asked can be judged. Load the tokenizer of this model.`,
  };
}

const meanOf = (values: Ids): number => values.reduce((sum, value) => sum + value, 0) / values.length;
