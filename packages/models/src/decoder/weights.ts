import type { DecoderDescription } from "./description.ts";

/** A linear map; `bias` null where it has none. */
export interface Linear<W> {
  readonly weight: W;
  readonly bias: W | null;
}

export interface Layer<W> {
  readonly attentionNorm: W;
  readonly query: Linear<W>;
  readonly key: Linear<W>;
  readonly value: Linear<W>;
  readonly output: Linear<W>;
  readonly mlpNorm: W;
  readonly gate: Linear<W>;
  readonly up: Linear<W>;
  readonly down: Linear<W>;
}

/** A decoder's weights, or something for each of them. */
export interface Decoder<W> {
  readonly embedding: W;
  readonly layers: readonly Layer<W>[];
  readonly finalNorm: W;
  /** Null where it is tied to the embedding. */
  readonly head: W | null;
}

/** How a checkpoint names things. A linear map's name is followed by `.weight` and `.bias`. */
export interface WeightNames {
  readonly embedding: string;
  readonly finalNorm: string;
  readonly head: string;
  layer(index: number): Readonly<Record<keyof Layer<unknown>, string>>;
}

export interface WeightSpec {
  readonly name: string;
  /** As in the checkpoint. */
  readonly shape: readonly number[];
  /**
   * Whether the variable is the checkpoint's tensor transposed: linear maps are [out, in] in checkpoints and [in, out]
   * here, where a product needs no transposition.
   */
  readonly transposed: boolean;
  readonly kind: "embedding" | "norm" | "weight" | "bias";
}

/** The weights that a decoder of this description has, in the order of the model. */
export function weightSpecs(description: DecoderDescription, names: WeightNames): Decoder<WeightSpec> {
  const { vocabSize, hiddenSize, layers, attention, mlp } = description;
  const { heads, keyValueHeads, headDim, bias } = attention;
  const norm = (name: string): WeightSpec => ({ name, shape: [hiddenSize], transposed: false, kind: "norm" });
  const matrix = (name: string, out: number, into: number): WeightSpec => {
    return { name, shape: [out, into], transposed: true, kind: "weight" };
  };
  const linear = (name: string, out: number, into: number, hasBias: boolean): Linear<WeightSpec> => ({
    weight: matrix(`${name}.weight`, out, into),
    bias: hasBias ? { name: `${name}.bias`, shape: [out], transposed: false, kind: "bias" } : null,
  });
  const shape = [vocabSize, hiddenSize];
  return {
    embedding: { name: names.embedding, shape, transposed: false, kind: "embedding" },
    layers: Array.from({ length: layers }, (_, index) => {
      const at = names.layer(index);
      return {
        attentionNorm: norm(at.attentionNorm),
        query: linear(at.query, heads * headDim, hiddenSize, bias.queryKeyValue),
        key: linear(at.key, keyValueHeads * headDim, hiddenSize, bias.queryKeyValue),
        value: linear(at.value, keyValueHeads * headDim, hiddenSize, bias.queryKeyValue),
        output: linear(at.output, hiddenSize, heads * headDim, bias.output),
        mlpNorm: norm(at.mlpNorm),
        gate: linear(at.gate, mlp.size, hiddenSize, mlp.bias),
        up: linear(at.up, mlp.size, hiddenSize, mlp.bias),
        down: linear(at.down, hiddenSize, mlp.size, mlp.bias),
      };
    }),
    finalNorm: norm(names.finalNorm),
    head: description.head === "tied" ? null : matrix(names.head, vocabSize, hiddenSize),
  };
}

/** The same tree with `convert` of everything in it. */
export function mapWeights<A, B>(decoder: Decoder<A>, convert: (weight: A) => B): Decoder<B> {
  const linear = ({ weight, bias }: Linear<A>): Linear<B> => ({
    weight: convert(weight),
    bias: bias === null ? null : convert(bias),
  });
  return {
    embedding: convert(decoder.embedding),
    layers: decoder.layers.map((layer) => ({
      attentionNorm: convert(layer.attentionNorm),
      query: linear(layer.query),
      key: linear(layer.key),
      value: linear(layer.value),
      output: linear(layer.output),
      mlpNorm: convert(layer.mlpNorm),
      gate: linear(layer.gate),
      up: linear(layer.up),
      down: linear(layer.down),
    })),
    finalNorm: convert(decoder.finalNorm),
    head: decoder.head === null ? null : convert(decoder.head),
  };
}

/** Everything in the tree, in the order of the model. */
export function listWeights<W>(decoder: Decoder<W>): readonly W[] {
  const list: W[] = [];
  mapWeights(decoder, (weight) => list.push(weight));
  return list;
}
