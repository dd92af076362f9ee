import { modelError, quoteShort } from "../folder/model-error.ts";
import type { LoraConfig } from "./lora-config.ts";
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
  const stems = named.flatMap((each) => (each === null ? [] : [whole(each.name.replace(/\.weight$/, ""))]));
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

/** A tensor of an adapter's file. */
export interface AdapterTensor {
  readonly name: string;
  /** The shape in the file. */
  readonly shape: readonly number[];
}

/** The adapter of one linear map. */
export interface PlannedAdapter {
  readonly module: LinearModule;
  readonly rank: number;
  /** The key of `rank_pattern` that sets the rank; null if it is the common rank. */
  readonly pattern: string | null;
  readonly scale: number;
  /** [rank, in]. */
  readonly a: AdapterTensor;
  /** [out, rank]. */
  readonly b: AdapterTensor;
}

/** The tensors that a configuration adds to a model. */
export interface AdapterPlan {
  /** In the order of the model. */
  readonly adapters: readonly PlannedAdapter[];
  /** The trained embedding that replaces the model's; null if it is not trained. */
  readonly embedding: AdapterTensor | null;
  /** The trained head that replaces the model's; null if it is not trained. */
  readonly head: AdapterTensor | null;
  readonly dropout: number;
}

/** The prefix of a module's name in PEFT's tensor names. */
export const tensorPrefix = "base_model.model.";

/**
 * Plans the tensors that a configuration adds to a model.
 *
 * @param where Names the configuration in errors.
 * @throws PeriodicEvalError `model` if no module matches, or a module that cannot have an adapter.
 */
export function planAdapter(
  config: LoraConfig,
  modules: Modules,
  where: string,
  isHeadTied: boolean,
): AdapterPlan {
  const targets = modules.linears.filter(({ name }) => config.isTarget(name));
  const other = config.isAllLinear ? undefined : [...modules.others].find((name) => config.isTarget(name));
  const details = {
    where: `${where}, target_modules`,
    path: ["target_modules"],
    expected: `linear maps: ${kindsOf(modules)}`,
  };
  if (other !== undefined) {
    const fix = "Name only linear maps: adapters on embeddings and norms are not supported.";
    throw modelError({ ...details, got: other, fix });
  }
  if (targets.length === 0) {
    const fix = "Check that the adapter belongs to a model of this family, or name modules of this model.";
    throw modelError({ ...details, got: "no module of this model", fix });
  }
  const adapters = targets.map((module): PlannedAdapter => {
    const stem = `${tensorPrefix}${module.name}`;
    const { rank, pattern } = config.rankOf(module.name);
    return {
      module,
      rank,
      pattern,
      scale: config.scaleOf(module.name),
      a: { name: `${stem}.lora_A.weight`, shape: [rank, module.inputs] },
      b: { name: `${stem}.lora_B.weight`, shape: [module.outputs, rank] },
    };
  });
  return { adapters, dropout: config.dropout, ...planSaved(config, modules, where, isHeadTied) };
}

function planSaved(
  { modulesToSave }: LoraConfig,
  { embedding, head, linears }: Modules,
  where: string,
  isHeadTied: boolean,
): Pick<AdapterPlan, "embedding" | "head"> {
  const { inputs, outputs } = linears.at(-1)!;
  const details = { where: `${where}, modules_to_save`, path: ["modules_to_save"] };
  const names = (name: string, module: string) => module === name || module.endsWith(`.${name}`);
  for (const name of modulesToSave) {
    if (names(name, embedding) || names(name, head)) continue;
    throw modelError({
      ...details,
      got: quoteShort(name),
      expected: `only "${head}" and "${embedding}"`,
      fix: "Use an adapter that trains no other whole modules.",
    });
  }
  const planned = (module: string): AdapterTensor | null => {
    if (!modulesToSave.some((name) => names(name, module))) return null;
    if (isHeadTied) {
      throw modelError({
        ...details,
        got: quoteShort(modulesToSave),
        expected: "no modules, because this model's head is tied to its embedding",
        fix: "Use an adapter without modules_to_save, or a model with a separate head.",
      });
    }
    return { name: `${tensorPrefix}${module}.weight`, shape: [outputs, inputs] };
  };
  return { embedding: planned(embedding), head: planned(head) };
}

/** Returns the distinct last parts of the names of the linear maps, without the head: `q_proj`, `k_proj`, … */
export const lastParts = (modules: Modules): readonly string[] => [
  ...new Set(modules.linears.slice(0, -1).map(({ name }) => name.slice(name.lastIndexOf(".") + 1))),
];

const kindsOf = (modules: Modules): string => [...lastParts(modules), modules.head].join(", ");
