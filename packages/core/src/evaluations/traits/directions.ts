import {
  hashJson,
  type CallOptions,
  type HiddenStatesRequest,
  type Json,
  type MetricKit,
  type ModelWith,
  type Prompt,
  type Row,
} from "@periodic-eval/contracts";
import { configError, isRecord, modelError } from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { renderItems, type CompletionItem } from "../prompting/completions.ts";
import { promptedTraits, refusal, traitNames, type PromptedTrait } from "./prompts.ts";

/** A model with the parts that extracting directions needs. */
type Readable = ModelWith<"generate" | "tokenizer" | "hiddenStates">;

/** A direction [width] for each trait, in the hidden states of one layer. */
interface Directions {
  readonly layer: number;
  readonly vectors: Readonly<Record<string, readonly number[]>>;
}

/** Tokens of an answer whose hidden states are averaged. */
const answerTokens = 24;

/**
 * The default layer, as a share of the depth: between the layers that Chen et al. (arXiv:2507.21509) found to work best, 16 of 32 in
 * Llama 3.1 8B and 20 of 28 in Qwen 2.5 7B.
 */
const depth = 0.6;

/**
 * Below this cosine with the direction extracted again, less than half of that direction's squared length (0.7² = 0.49) lies along
 * the stored one, so that most of a drift in the trait is not seen.
 */
const staleBelow = 0.7;

/**
 * The directions of a training. They are extracted once, from the model without its adapter, or from the whole model if it has no
 * base; all measurements of a run use the same ones.
 */
export class TraitDirections {
  readonly #layer: number | undefined;
  #stored: Directions | null = null;
  /** Names the step at which they were extracted; null if they were loaded. */
  #extractedAt: string | null = null;
  /** Why they must not be extracted from a model without a base; null if they may. */
  #refusal: string | null = null;

  constructor(layer: number | undefined) {
    this.#layer = layer;
  }

  /** Returns the directions as JSON, to load them again; null before they are extracted. */
  toJson(): Json {
    return this.#stored as unknown as Json;
  }

  /** Loads directions that `toJson` returned. Others, and those of another layer than the option, are ignored. */
  load(json: Json): void {
    if (!isRecord(json) || !isRecord(json["vectors"])) return;
    const stored = json as unknown as Directions;
    if (this.#layer !== undefined && stored.layer !== this.#layer) return;
    if (!traitNames.every((name) => Array.isArray(stored.vectors[name]))) return;
    this.#stored = stored;
    this.#extractedAt = null;
  }

  /** Loads the directions that an earlier measurement of `evaluation` stored. */
  loadRows(rows: readonly Row[]): void {
    const read = rows as readonly DirectionRow[];
    const vectors = Object.fromEntries(read.map(({ id, vector }) => [id, vector]));
    this.load({ layer: read[0]?.layer ?? null, vectors });
  }

  get areKnown(): boolean {
    return this.#stored !== null;
  }

  /** A new training begins: its first measurement extracts new directions. */
  forget(): void {
    [this.#stored, this.#extractedAt, this.#refusal] = [null, null, null];
  }

  /** From now on a model without a base is trained: directions extracted from it would be others. */
  refuseTrained(reason: string): void {
    this.#refusal = reason;
  }

  /** @throws PeriodicEvalError `config` for an option `layer` that the model does not have. */
  checkLayer({ layerCount = Infinity }: Pick<Readable, "layerCount">): void {
    if (this.#layer === undefined || this.#layer <= layerCount) return;
    throw configError({
      where: "traits options",
      path: ["layer"],
      value: this.#layer,
      expected: `a layer of the model, 0 to ${layerCount}`,
      fix: "Leave `layer` out for the layer at 60 % of the depth.",
    });
  }

  /**
   * Returns the directions, and extracts them if this has not been done.
   *
   * @param at Names the step.
   * @throws PeriodicEvalError `model` for a trained model without a base, or one that answers opposite prompts alike.
   */
  async of(model: Readable, at: string, options: CallOptions): Promise<Directions> {
    if (this.#stored !== null) return this.#stored;
    const { base } = model;
    if (base === undefined && this.#refusal !== null)
      throw modelError(
        "traits",
        `no directions of the untrained model (${this.#refusal})`,
        "the measurement `directions` of the start",
        "Start the training in a new folder, or train an adapter: its base gives the directions at any step.",
      );
    const untrained = (base as Readable | undefined) ?? model;
    const layer = this.#layer ?? (await middleLayer(untrained, options));
    this.#stored = { layer, vectors: await extract(untrained, layer, traitNames, options) };
    this.#extractedAt = at;
    return this.#stored;
  }

  /** Returns what names the directions in a provenance. */
  provenance(): Json {
    const stored = this.#stored;
    return {
      layer: stored?.layer ?? this.#layer ?? null,
      directions: stored && hashJson(stored as unknown as Json),
    };
  }

  /**
   * Stores the directions in rows, and measures whether they are stale: `cosine/<trait>` is the cosine of the stored direction with
   * the one extracted again from the model, null in the measurement that extracted them. `norm/<trait>` is the length of the stored
   * one, ‖d‖: a drift of that size is the whole distance between opposite prompts.
   */
  readonly evaluation = defineEvaluation({
    name: "directions",
    version: "directions-1",
    needs: ["generate", "tokenizer", "hiddenStates"],
    items: async (model): Promise<readonly Row[]> => {
      await renderItems(model, promptedTraits.flatMap(itemsOf), "directions");
      return traitNames.map((id) => ({ id }));
    },
    provenance: () => ({ layer: this.#layer ?? null, tokens: answerTokens }),
    measure: async (model, items, { seed, signal, progress }): Promise<readonly DirectionRow[]> => {
      const { layer, vectors } = await this.of(model, seed, { signal });
      const names = items.map(({ id }) => id);
      const isNew = this.#extractedAt === seed;
      const now = isNew ? null : await extract(model, layer, names, { signal });
      progress(items.length);
      return names.map((id) => {
        const vector = vectors[id]!;
        const cosine = now && dot(vector, now[id]!) / (normOf(vector) * normOf(now[id]!));
        return { id, layer, norm: normOf(vector), cosine, vector };
      });
    },
    answers: { question: "id" },
    metrics({ mean }: MetricKit<DirectionRow>) {
      const by = ({ id }: DirectionRow) => id;
      return {
        cosine: mean(({ cosine }) => cosine, { by, higherIsBetter: true, range: [-1, 1] }),
        norm: mean(({ norm }) => norm, { by, range: [0, Infinity] }),
      };
    },
    warnings: (rows: readonly DirectionRow[]) => {
      const stale = rows.filter(({ cosine }) => cosine !== null && cosine < staleBelow);
      const names = stale.map(({ id, cosine }) => `${id} (cosine ${cosine!.toFixed(2)})`).join(", ");
      const message = `stale directions: ${names}; below ${staleBelow} traits misses most of a drift in them.`;
      const metrics = stale.map(({ id }) => `cosine/${id}`);
      const counts = { count: stale.length, total: rows.length, void: false };
      return stale.length === 0 ? [] : [{ kind: "stale_directions", metrics, ...counts, message }];
    },
  });
}

/** One trait. */
export interface DirectionRow extends Row {
  readonly layer: number;
  /** ‖d‖: how far apart the hidden states under opposite prompts are. */
  readonly norm: number;
  readonly cosine: number | null;
  /** The stored direction, not normalized. */
  readonly vector: readonly number[];
}

/** Returns the layer at 60 % of the model's depth. */
async function middleLayer(model: Readable, options: CallOptions): Promise<number> {
  const [all] = await model.hiddenStates([{ prompt: { text: "." } }], options);
  return Math.round(depth * (all!.length - 1));
}

/** A hidden state to read, on one side of the direction of a trait. */
interface Reading {
  readonly trait: string;
  readonly shows: boolean;
  readonly request: HiddenStatesRequest;
}

/** Returns the differences of the mean hidden states under opposite prompts, with one call of each ability. */
async function extract(
  model: Readable,
  layer: number,
  names: readonly string[],
  options: CallOptions,
): Promise<Directions["vectors"]> {
  const prompted = promptedTraits.filter(({ name }) => names.includes(name)).flatMap(itemsOf);
  const requests = names.includes(refusal.name) ? readingsOfRequests(layer) : [];
  const readings = [...(await readingsOfAnswers(model, layer, prompted, options)), ...requests];
  const states = await model.hiddenStates(
    readings.map(({ request }) => request),
    options,
  );
  const meanOf = (name: string, side: boolean) => {
    const of = states.filter((_, at) => readings[at]!.trait === name && readings[at]!.shows === side);
    if (of.length === 0) throw noDirection(name, "empty answers only");
    return Array.from(of[0]![0]!, (_, at) => of.reduce((sum, [state]) => sum + state![at]!, 0) / of.length);
  };
  const directionOf = (name: string) => {
    const opposes = meanOf(name, false);
    // Nine digits hold a float32.
    const vector = meanOf(name, true).map((value, at) => Number((value - opposes[at]!).toPrecision(9)));
    const norm = normOf(vector);
    if (!(norm > 0 && Number.isFinite(norm))) throw noDirection(name, `a difference of length ${norm}`);
    return vector;
  };
  return Object.fromEntries(names.map((name) => [name, directionOf(name)]));
}

/** Returns the readings of the model's greedy answers, averaged over their tokens. Empty answers have none. */
async function readingsOfAnswers(
  model: Readable,
  layer: number,
  items: readonly PromptedItem[],
  options: CallOptions,
): Promise<readonly Reading[]> {
  if (items.length === 0) return [];
  const prompts = items.map(({ prompt }) => prompt);
  const sampling = { maxNewTokens: answerTokens, temperature: 0, seed: "" };
  const completions = await model.generate(
    prompts.map((prompt) => ({ prompt, sampling })),
    options,
  );
  const texts = completions.map(({ text }) => text);
  const answers = await model.tokenizer.encode(texts, { specialTokens: false });
  const rendered = await model.tokenizer.render(prompts);
  return items.flatMap(({ trait, shows }, at) => {
    const [{ ids }, answer] = [rendered[at]!, answers[at]!];
    const request = { prompt: { ids: [...ids, ...answer] }, layers: [layer], from: ids.length };
    return answer.length === 0 ? [] : [{ trait, shows, request }];
  });
}

/** Returns the readings at the last token of requests that models refuse, and of those that they answer. */
const readingsOfRequests = (layer: number): readonly Reading[] =>
  [refusal.refused, refusal.answered].flatMap((texts, side) =>
    texts.map((text) => ({
      trait: refusal.name,
      shows: side === 0,
      request: { prompt: userTurn(text), layers: [layer] },
    })),
  );

export const userTurn = (content: string): Prompt => ({ messages: [{ role: "user", content }] });

interface PromptedItem extends CompletionItem {
  readonly trait: string;
  /** Whether the system prompt asks for the trait. */
  readonly shows: boolean;
}

/** Returns the questions of a trait under each of its system prompts. */
const itemsOf = ({ name, systems, questions }: PromptedTrait): readonly PromptedItem[] =>
  systems.flat().flatMap((text, system) =>
    questions.map((question, at) => ({
      id: `${name}-${system}-${at}`,
      trait: name,
      shows: system % 2 === 0,
      question,
      persona: null,
      prompt: { messages: [{ role: "user", content: question }], system: { text } },
    })),
  );

const noDirection = (trait: string, got: string) =>
  modelError(
    `the direction of "${trait}"`,
    got,
    "answers whose hidden states differ between opposite prompts",
    "Choose another `layer`, or a model whose chat template shows system prompts, and check that its weights are finite.",
  );

/** Returns Σ a·b. */
export const dot = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((sum, value, at) => sum + value * b[at]!, 0);

export const normOf = (vector: ArrayLike<number>): number => Math.sqrt(dot(vector, vector));
