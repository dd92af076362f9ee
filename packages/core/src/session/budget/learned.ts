import { LookCosts } from "./measurement-costs.ts";

/** What the governor learnt, by snapshot id. */
export interface Learned {
  readonly costs: LookCosts;
  /** Items of a whole look. */
  readonly sizes: Map<string, number>;
  /** Looks asked for between start and end. */
  readonly asked: Map<string, number>;
  /** Looks skipped since the last that was not. */
  readonly skipped: Map<string, number>;
  /** Ids measured in this session: what a first call compiles is compiled. */
  readonly warm: Set<string>;
  /** What the first step of this session took, which is no measure of the others. */
  firstStep: { readonly steps: number; readonly seconds: number } | null;
}

export function nothingLearned(): Learned {
  return {
    costs: new LookCosts(),
    sizes: new Map(),
    asked: new Map(),
    skipped: new Map(),
    warm: new Set(),
    firstStep: null,
  };
}
