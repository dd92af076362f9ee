import type { DecoderDescription } from "../decoder/description.ts";
import { linearsOf, type Decoder, type Linear } from "../decoder/weights.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import type { Family } from "../families/family.ts";

/** A linear map that an adapter can be put on. */
export interface LinearModule {
  /** As transformers' model, and so PEFT, calls it; checkpoints of a model without its head call it otherwise. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  /** In the checkpoint; null for the head. */
  readonly linear: string | null;
}

/** The parts of a model by PEFT's names. */
export interface Modules {
  /** In the order of the model, the head last. */
  readonly linears: readonly LinearModule[];
  readonly embedding: string;
  readonly head: string;
  /** Those that are no linear maps: norms, embeddings, layers and what else holds others. */
  readonly others: ReadonlySet<string>;
}

/** A weight as far as an adapter goes: matrices are [in, out]. */
export interface ShapedWeight {
  readonly name: string;
  readonly variable: { readonly shape: readonly number[] };
}

/** A model as far as an adapter goes, whose weights need not be there. */
export interface ModelShape {
  readonly description: DecoderDescription;
  readonly weights: Decoder<ShapedWeight>;
  readonly config: HuggingFaceConfig;
  /** Where it is from; null for one that was created. */
  readonly folder: string | null;
}

/** @param head what the head is called where a family has two names of it */
export function modulesOf(
  { hiddenSize, vocabSize }: DecoderDescription,
  weights: Decoder<ShapedWeight>,
  family: Family,
  head = family.otherHead ?? family.names.head,
): Modules {
  const { prefix } = family;
  const whole = (name: string) => (name.startsWith(prefix) ? name : `${prefix}${name}`);
  const moduleOf = ({ name, weight }: Linear<ShapedWeight>): LinearModule => {
    const [inputs, outputs] = weight.variable.shape as [number, number];
    return { name: whole(name), inputs, outputs, linear: name };
  };
  const linears = weights.layers.flatMap(linearsOf).map(moduleOf);
  const norms = weights.layers.flatMap((layer) =>
    [layer.attentionNorm, layer.attentionOutputNorm, layer.mlpNorm, layer.mlpOutputNorm].concat(
      layer.queryNorm,
      layer.keyNorm,
    ),
  );
  const named = [weights.embedding, weights.positions, weights.finalNorm.weight].concat(
    norms.map((norm) => norm?.weight ?? null),
  );
  const stems = named.flatMap((one) => (one === null ? [] : [whole(one.name.replace(/\.weight$/, ""))]));
  const holders = linears.flatMap(({ name }) => ancestors(name));
  return {
    linears: [...linears, { name: head, inputs: hiddenSize, outputs: vocabSize, linear: null }],
    embedding: stems[0]!,
    head,
    others: new Set([...stems, ...holders]),
  };
}

/** `a.b.c` → `a.b`, `a`. */
function ancestors(name: string): string[] {
  const parts = name.split(".");
  return parts.slice(1).map((_, i) => parts.slice(0, parts.length - 1 - i).join("."));
}
