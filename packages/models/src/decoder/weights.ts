import type { DecoderDescription } from "./description.ts";

export interface Linear<W> {
  /** Its name in the checkpoint, without `.weight`. */
  readonly name: string;
  readonly weight: W;
  /** Null for none. */
  readonly bias: W | null;
  readonly adapter?: Adapter<W>;
}

export interface Norm<W> {
  readonly weight: W;
  readonly bias: W | null;
}

/** A layer. Parts that the description does not include are null. */
export interface Layer<W> {
  readonly attentionNorm: Norm<W> | null;
  /** Three maps for query, key and value, or one map for all three. */
  readonly queryKeyValue: readonly Linear<W>[];
  readonly queryNorm: Norm<W> | null;
  readonly keyNorm: Norm<W> | null;
  readonly output: Linear<W>;
  readonly attentionOutputNorm: Norm<W> | null;
  readonly mlpNorm: Norm<W> | null;
  /** Two maps for gate and up, one map for both, or only up. */
  readonly up: readonly Linear<W>[];
  readonly down: Linear<W>;
  readonly mlpOutputNorm: Norm<W> | null;
}

/** A LoRA adapter, which adds scale · x·a·b to the output of a linear map. */
export interface Adapter<W> {
  /** The name of the linear map in PEFT. */
  readonly name: string;
  /** [in, rank]. */
  readonly a: W;
  /** [rank, out]. */
  readonly b: W;
  readonly scale: number;
}

/** The weights of a decoder. W is the type of each leaf: a tensor, or something that stands for one. */
export interface Decoder<W> {
  readonly embedding: W;
  /** The embeddings of learned positions, [context, hidden]; null for none. */
  readonly positions: W | null;
  readonly layers: readonly Layer<W>[];
  readonly finalNorm: Norm<W>;
  /** Null if it is tied to the embedding. */
  readonly head: Linear<W> | null;
  /** The adapter of the head, tied or not. */
  readonly headAdapter?: Adapter<W>;
}

/** The names in a checkpoint. All except the two embeddings are stems, followed by `.weight` and `.bias`. */
export interface WeightNames {
  readonly embedding: string;
  readonly positions?: string;
  readonly finalNorm: string;
  readonly head: string;
  /** The layout of the layers' matrices: [out, in] or [in, out]. */
  readonly matrices: "outIn" | "inOut";
  layer(index: number): LayerNames;
}

/** The names in a layer; a family gives those that its description needs. */
export interface LayerNames {
  readonly attentionNorm?: string;
  /** One name or three, like `Layer.queryKeyValue`. */
  readonly queryKeyValue: readonly string[];
  readonly queryNorm?: string;
  readonly keyNorm?: string;
  readonly output: string;
  readonly attentionOutputNorm?: string;
  readonly mlpNorm?: string;
  /** One name or two, like `Layer.up`. */
  readonly up: readonly string[];
  readonly down: string;
  readonly mlpOutputNorm?: string;
}

export interface WeightSpec {
  readonly name: string;
  /** The shape in the checkpoint. */
  readonly shape: readonly number[];
  /**
   * Whether the variable is the transposed tensor of the checkpoint. Most checkpoints hold linear maps as [out, in]; the
   * variables are [in, out], so that products need no transposition.
   */
  readonly transposed: boolean;
  /** The initial value in a created model: draws from a normal distribution, or a constant. */
  readonly initial: "normal" | 0 | 1;
}

/** Returns the specifications of a decoder's weights, in the order of the model. */
export function weightSpecs(description: DecoderDescription, names: WeightNames): Decoder<WeightSpec> {
  const { vocabSize, contextLength, hiddenSize, embedding, attention, block, mlp, head } = description;
  const { before, after } = block.norms;
  const { norm } = description;
  const { heads, keyValueHeads, headDim, bias } = attention;
  const [querySize, keySize] = [heads * headDim, keyValueHeads * headDim];
  const projected =
    attention.projection === "separate" ? [querySize, keySize, keySize] : [querySize + 2 * keySize];
  const widened = { gated: [mlp.size, mlp.size], gatedFused: [2 * mlp.size], plain: [mlp.size] }[mlp.kind];
  const ofHead = attention.queryKeyNorm === "head";
  const normed = attention.queryKeyNorm !== null;

  const table = (name: string | undefined, rows: number): WeightSpec => {
    return { name: present(name), shape: [rows, hiddenSize], transposed: false, initial: "normal" };
  };
  const neutral = norm.offset === 1 ? 0 : 1;
  const normOf = (stem: string | undefined, size = hiddenSize): Norm<WeightSpec> => ({
    weight: { name: `${present(stem)}.weight`, shape: [size], transposed: false, initial: neutral },
    bias:
      norm.kind === "layer" && norm.hasBias
        ? { name: `${present(stem)}.bias`, shape: [size], transposed: false, initial: 0 }
        : null,
  });
  const linear = (
    name: string,
    out: number,
    into: number,
    hasBias: boolean,
    transposed = names.matrices === "outIn",
  ): Linear<WeightSpec> => {
    const shape = transposed ? [out, into] : [into, out];
    return {
      name,
      weight: { name: `${name}.weight`, shape, transposed, initial: "normal" },
      bias: hasBias ? { name: `${name}.bias`, shape: [out], transposed: false, initial: 0 } : null,
    };
  };
  return {
    embedding: table(names.embedding, vocabSize),
    positions:
      embedding.learnedPositions && table(names.positions, contextLength + embedding.learnedPositions.offset),
    layers: description.layers.map((_, index) => {
      const at = names.layer(index);
      return {
        attentionNorm: before ? normOf(at.attentionNorm) : null,
        queryKeyValue: projected.map((size, i) =>
          linear(present(at.queryKeyValue[i]), size, hiddenSize, bias.queryKeyValue),
        ),
        queryNorm: normed ? normOf(at.queryNorm, ofHead ? headDim : querySize) : null,
        keyNorm: normed ? normOf(at.keyNorm, ofHead ? headDim : keySize) : null,
        output: linear(at.output, hiddenSize, querySize, bias.output),
        attentionOutputNorm: after ? normOf(at.attentionOutputNorm) : null,
        mlpNorm: before && block.residual !== "parallelOneNorm" ? normOf(at.mlpNorm) : null,
        up: widened.map((size, i) => linear(present(at.up[i]), size, hiddenSize, mlp.bias)),
        down: linear(at.down, hiddenSize, mlp.size, mlp.bias),
        mlpOutputNorm: after ? normOf(at.mlpOutputNorm) : null,
      };
    }),
    finalNorm: normOf(names.finalNorm),
    // The head is [out, in] in every family.
    head: head.tied ? null : linear(names.head, vocabSize, hiddenSize, head.bias, true),
  };
}

function present(name: string | undefined): string {
  if (name === undefined) throw new Error("a family has no name for a weight of its description");
  return name;
}

/** Replaces all adapters: those of the layers' linear maps, by their names in the checkpoint, and the head's. */
export function withAdapters<W>(
  decoder: Decoder<W>,
  adapters: ReadonlyMap<string, Adapter<W>>,
  headAdapter: Adapter<W> | null,
): Decoder<W> {
  const linear = ({ name, weight, bias }: Linear<W>): Linear<W> => {
    const adapter = adapters.get(name);
    return { name, weight, bias, ...(adapter && { adapter }) };
  };
  const { headAdapter: _, ...rest } = decoder;
  return {
    ...rest,
    layers: decoder.layers.map((layer) => ({
      ...layer,
      queryKeyValue: layer.queryKeyValue.map(linear),
      output: linear(layer.output),
      up: layer.up.map(linear),
      down: linear(layer.down),
    })),
    ...(headAdapter && { headAdapter }),
  };
}

/** Lists the linear maps of a layer, in the order of the model. */
export const linearsOf = <W>({ queryKeyValue, output, up, down }: Layer<W>): readonly Linear<W>[] => [
  ...queryKeyValue,
  output,
  ...up,
  down,
];

/** The fields of a decoder and its parts that are weights. */
const leaves = new Set(["embedding", "positions", "weight", "bias", "a", "b"]);

/** Applies `convert` to every weight of a decoder or a part of it, in the order of its fields, which is that of the model. */
function mapTree(tree: object, convert: (weight: never) => unknown): object {
  const mapped = Object.entries(tree).map(([key, part]: [string, unknown]) => {
    if (typeof part !== "object" || part === null) return [key, part];
    if (leaves.has(key)) return [key, convert(part as never)];
    return [
      key,
      Array.isArray(part) ? part.map((each: object) => mapTree(each, convert)) : mapTree(part, convert),
    ];
  });
  return Object.fromEntries(mapped) as object;
}

/** Applies `convert` to every weight. */
export const mapWeights = <A, B>(decoder: Decoder<A>, convert: (weight: A) => B): Decoder<B> =>
  mapTree(decoder, convert) as Decoder<B>;

/** Lists the weights of a decoder or a layer in the order of the model. */
export function listWeights<W>(tree: Decoder<W> | Layer<W>): readonly W[] {
  const list: W[] = [];
  mapTree(tree, (weight: W) => list.push(weight));
  return list;
}
