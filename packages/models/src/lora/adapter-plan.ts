import { failure, shown } from "../folder/failure.ts";
import type { LoraConfig } from "./lora-config.ts";
import type { LinearModule, Modules } from "./modules.ts";

/** A tensor of an adapter's file. */
export interface AdapterTensor {
  readonly name: string;
  /** As in the file. */
  readonly shape: readonly number[];
}

export interface PlannedAdapter {
  readonly module: LinearModule;
  readonly rank: number;
  readonly scale: number;
  /** [rank, in]. */
  readonly a: AdapterTensor;
  /** [out, rank]. */
  readonly b: AdapterTensor;
  /** [out]; null where there is none. */
  readonly bias: AdapterTensor | null;
}

/** What a configuration puts on a model. */
export interface AdapterPlan {
  /** In the order of the model. */
  readonly adapters: readonly PlannedAdapter[];
  /** Those that are trained in the place of the model's own; null where they are not. */
  readonly embedding: AdapterTensor | null;
  readonly head: AdapterTensor | null;
  readonly dropout: number;
}

/** What PEFT's tensors are called by before a module's name. */
export const tensorPrefix = "base_model.model.";

/** Throws a `model` error where nothing is meant, or something that no adapter goes on. */
export function planAdapter(
  config: LoraConfig,
  modules: Modules,
  where: string,
  isHeadTied: boolean,
): AdapterPlan {
  const targets = modules.linears.filter(({ name }) => config.isTarget(name));
  const other = config.isAllLinear ? undefined : [...modules.others].find((name) => config.isTarget(name));
  const linears = `linear maps: ${kindsOf(modules)}`;
  if (other !== undefined) {
    const fix = "Name linear maps alone: adapters on embeddings and norms are not supported.";
    throw failure(`${where}, target_modules`, other, linears, fix);
  }
  if (targets.length === 0) {
    const fix = "Check that the adapter is of a model of this family, or name modules of this model.";
    throw failure(`${where}, target_modules`, "no module of this model", linears, fix);
  }
  const adapters = targets.map((module): PlannedAdapter => {
    const stem = `${tensorPrefix}${module.name}`;
    const rank = config.rankOf(module.name);
    return {
      module,
      rank,
      scale: config.scaleOf(module.name),
      a: { name: `${stem}.lora_A.weight`, shape: [rank, module.inputs] },
      b: { name: `${stem}.lora_B.weight`, shape: [module.outputs, rank] },
      bias: config.hasBias ? { name: `${stem}.lora_B.bias`, shape: [module.outputs] } : null,
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
  const place = `${where}, modules_to_save`;
  const means = (name: string, module: string) => module === name || module.endsWith(`.${name}`);
  for (const name of modulesToSave) {
    if (means(name, embedding) || means(name, head)) continue;
    const fix = "Use an adapter that trains no other modules whole.";
    throw failure(place, shown(name), `none but "${head}" and "${embedding}"`, fix);
  }
  const planned = (module: string): AdapterTensor | null => {
    if (!modulesToSave.some((name) => means(name, module))) return null;
    if (isHeadTied) {
      const fix = "Use an adapter without it, or a model with a head of its own.";
      throw failure(place, shown(modulesToSave), "none, as this model's head is tied to its embedding", fix);
    }
    return { name: `${tensorPrefix}${module}.weight`, shape: [outputs, inputs] };
  };
  return { embedding: planned(embedding), head: planned(head) };
}

/** Last parts of the names, each once: `q_proj, k_proj, …`. */
export const lastParts = (modules: Modules): readonly string[] => [
  ...new Set(modules.linears.slice(0, -1).map(({ name }) => name.slice(name.lastIndexOf(".") + 1))),
];

const kindsOf = (modules: Modules): string => [...lastParts(modules), modules.head].join(", ");
