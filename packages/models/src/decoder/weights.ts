import type { DecoderDescription } from "./description.ts";

/** A linear map. */
export interface Linear<W> {
  /** In the checkpoint, without `.weight`. */
  readonly name: string;
  readonly weight: W;
  /** Null where it has none. */
  readonly bias: W | null;
  readonly adapter?: Adapter<W>;
}

export interface Norm<W> {
  readonly weight: W;
  readonly bias: W | null;
}

/** What is null is not there: see the description. */
export interface Layer<W> {
  readonly attentionNorm: Norm<W> | null;
  /** Query, key and value; or one map that gives all three. */
  readonly queryKeyValue: readonly Linear<W>[];
  readonly queryNorm: Norm<W> | null;
  readonly keyNorm: Norm<W> | null;
  readonly output: Linear<W>;
  readonly attentionOutputNorm: Norm<W> | null;
  readonly mlpNorm: Norm<W> | null;
  /** Gate and up; or one map that gives both; or up alone. */
  readonly up: readonly Linear<W>[];
  readonly down: Linear<W>;
  readonly mlpOutputNorm: Norm<W> | null;
}

/** What LoRA adds to the output of a linear map: scale · (x·a·b + bias). */
export interface Adapter<W> {
  /** Of the linear map, as PEFT calls it. */
  readonly name: string;
  /** [in, rank]. */
  readonly a: W;
  /** [rank, out]. */
  readonly b: W;
  /** [out]; null where it has none. */
  readonly bias: W | null;
  readonly scale: number;
}

/** A decoder's weights, or something for each of them. */
export interface Decoder<W> {
  readonly embedding: W;
  /** Learned positions, [context, hidden]. */
  readonly positions: W | null;
  readonly layers: readonly Layer<W>[];
  readonly finalNorm: Norm<W>;
  /** Null where it is tied to the embedding. */
  readonly head: Linear<W> | null;
  /** Of the head, tied or not. */
  readonly headAdapter?: Adapter<W>;
}

/** How a checkpoint names things. All but the two embeddings are followed by `.weight` and `.bias`. */
export interface WeightNames {
  readonly embedding: string;
  readonly positions?: string;
  readonly finalNorm: string;
  readonly head: string;
  /** How matrices of layers are stored: rows are outputs, or inputs. */
  readonly matrices: "outIn" | "inOut";
  layer(index: number): LayerNames;
}

/** Those that the family's description asks for. */
export interface LayerNames {
  readonly attentionNorm?: string;
  /** One name or three, as `Layer.queryKeyValue`. */
  readonly queryKeyValue: readonly string[];
  readonly queryNorm?: string;
  readonly keyNorm?: string;
  readonly output: string;
  readonly attentionOutputNorm?: string;
  readonly mlpNorm?: string;
  /** One name or two, as `Layer.up`. */
  readonly up: readonly string[];
  readonly down: string;
  readonly mlpOutputNorm?: string;
}

export interface WeightSpec {
  readonly name: string;
  /** As in the checkpoint. */
  readonly shape: readonly number[];
  /**
   * Whether the variable is the checkpoint's tensor transposed: most checkpoints hold linear maps as [out, in], and they
   * are [in, out] here, where a product needs no transposition.
   */
  readonly transposed: boolean;
  /** What a model that is made anew holds: draws from a normal distribution, or this number. */
  readonly initial: "normal" | 0 | 1;
}

/** The weights that a decoder of this description has, in the order of the model. */
export function weightSpecs(description: DecoderDescription, names: WeightNames): Decoder<WeightSpec> {
  const { vocabSize, contextLength, hiddenSize, embedding, attention, block, mlp, head } = description;
  const { before, after } = block.norms;
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
  const neutral = description.norm.kind === "rms" && description.norm.offset === 1 ? 0 : 1;
  const normOf = (stem: string | undefined, size = hiddenSize): Norm<WeightSpec> => ({
    weight: { name: `${present(stem)}.weight`, shape: [size], transposed: false, initial: neutral },
    bias:
      description.norm.kind === "layer"
        ? { name: `${present(stem)}.bias`, shape: [size], transposed: false, initial: 0 }
        : null,
  });
  const linear = (name: string, out: number, into: number, hasBias: boolean): Linear<WeightSpec> => {
    const transposed = names.matrices === "outIn";
    const shape = transposed ? [out, into] : [into, out];
    return {
      name,
      weight: { name: `${name}.weight`, shape, transposed, initial: "normal" },
      bias: hasBias ? { name: `${name}.bias`, shape: [out], transposed: false, initial: 0 } : null,
    };
  };
  return {
    embedding: table(names.embedding, vocabSize),
    positions: embedding.learnedPositions ? table(names.positions, contextLength) : null,
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
        mlpNorm: before ? normOf(at.mlpNorm) : null,
        up: widened.map((size, i) => linear(present(at.up[i]), size, hiddenSize, mlp.bias)),
        down: linear(at.down, hiddenSize, mlp.size, mlp.bias),
        mlpOutputNorm: after ? normOf(at.mlpOutputNorm) : null,
      };
    }),
    finalNorm: normOf(names.finalNorm),
    // [out, in] in every family.
    head: head.tied
      ? null
      : {
          name: names.head,
          weight: {
            name: `${names.head}.weight`,
            shape: [vocabSize, hiddenSize],
            transposed: true,
            initial: "normal",
          },
          bias: null,
        },
  };
}

function present(name: string | undefined): string {
  if (name === undefined) throw new Error("a family describes a weight that it has no name for");
  return name;
}

/** The same tree with other adapters: those of layers' linear maps by their names in the checkpoint, and the head's. */
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

/** The linear maps of a layer, in the order of the model. */
export const linearsOf = <W>({ queryKeyValue, output, up, down }: Layer<W>): readonly Linear<W>[] => [
  ...queryKeyValue,
  output,
  ...up,
  down,
];

/** The same tree with `convert` of everything in it. */
export function mapWeights<A, B>(decoder: Decoder<A>, convert: (weight: A) => B): Decoder<B> {
  const { embedding, positions, layers, finalNorm, head, headAdapter } = decoder;
  return {
    embedding: convert(embedding),
    positions: positions === null ? null : convert(positions),
    layers: layers.map((layer) => mapLayer(layer, convert)),
    finalNorm: mapNorm(finalNorm, convert),
    head: head === null ? null : mapLinear(head, convert),
    ...(headAdapter && { headAdapter: mapAdapter(headAdapter, convert) }),
  };
}

function mapLayer<A, B>(layer: Layer<A>, convert: (weight: A) => B): Layer<B> {
  const linear = (it: Linear<A>) => mapLinear(it, convert);
  const norm = (it: Norm<A> | null) => (it === null ? null : mapNorm(it, convert));
  return {
    attentionNorm: norm(layer.attentionNorm),
    queryKeyValue: layer.queryKeyValue.map(linear),
    queryNorm: norm(layer.queryNorm),
    keyNorm: norm(layer.keyNorm),
    output: linear(layer.output),
    attentionOutputNorm: norm(layer.attentionOutputNorm),
    mlpNorm: norm(layer.mlpNorm),
    up: layer.up.map(linear),
    down: linear(layer.down),
    mlpOutputNorm: norm(layer.mlpOutputNorm),
  };
}

function mapLinear<A, B>({ name, weight, bias, adapter }: Linear<A>, convert: (weight: A) => B): Linear<B> {
  return {
    name,
    weight: convert(weight),
    bias: bias === null ? null : convert(bias),
    ...(adapter && { adapter: mapAdapter(adapter, convert) }),
  };
}

const mapNorm = <A, B>({ weight, bias }: Norm<A>, convert: (weight: A) => B): Norm<B> => ({
  weight: convert(weight),
  bias: bias === null ? null : convert(bias),
});

const mapAdapter = <A, B>(adapter: Adapter<A>, convert: (weight: A) => B): Adapter<B> => ({
  ...adapter,
  a: convert(adapter.a),
  b: convert(adapter.b),
  bias: adapter.bias === null ? null : convert(adapter.bias),
});

/** Everything in the tree, in the order of the model. */
export function listWeights<W>(decoder: Decoder<W>): readonly W[] {
  const list: W[] = [];
  mapWeights(decoder, (weight) => list.push(weight));
  return list;
}

/** Everything in a layer, in the order of the model. */
export function listLayer<W>(layer: Layer<W>): readonly W[] {
  const list: W[] = [];
  mapLayer(layer, (weight) => list.push(weight));
  return list;
}
