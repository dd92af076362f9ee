import type { DecoderDescription } from "../decoder/description.ts";
import { linearsOf, type Decoder, type Linear } from "../decoder/weights.ts";
import type { HuggingFaceConfig } from "../families/config/config-reader.ts";
import { moduleName, type Family } from "../families/family.ts";

/** A linear map that can have an adapter. */
export interface LinearModule {
  /** Its name in transformers and PEFT; checkpoints of a model without its head use another. */
  readonly name: string;
  readonly inputs: number;
  readonly outputs: number;
  /** Its name in the checkpoint; null for the head. */
  readonly linear: string | null;
}

/** The modules of a model by PEFT's names. */
export interface Modules {
  /** In the order of the model, the head last. */
  readonly linears: readonly LinearModule[];
  readonly embedding: string;
  readonly head: string;
  /** Modules that are not linear maps: norms, embeddings, layers and other containers. */
  readonly others: ReadonlySet<string>;
}

/** The name and shape of a weight; matrices are [in, out]. */
export interface ShapedWeight {
  readonly name: string;
  readonly variable: { readonly shape: readonly number[] };
}

/** The facts about a model that an adapter depends on; its weights need not be loaded. */
export interface ModelShape {
  readonly description: DecoderDescription;
  readonly weights: Decoder<ShapedWeight>;
  readonly config: HuggingFaceConfig;
  /** The folder that it was loaded from; null for a created model. */
  readonly folder: string | null;
}

/**
 * Lists the modules of a model.
 *
 * @param head The name of the head, for families with two names for it.
 */
export function modulesOf(
  { hiddenSize, vocabSize }: DecoderDescription,
  weights: Decoder<ShapedWeight>,
  family: Family,
  head = family.otherHead ?? family.names.head,
): Modules {
  const whole = (name: string) => moduleName(family, name);
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

/** Returns the containers of a module: `a.b.c` → `a.b`, `a`. */
function ancestors(name: string): string[] {
  const parts = name.split(".");
  return parts.slice(1).map((_, i) => parts.slice(0, parts.length - 1 - i).join("."));
}
