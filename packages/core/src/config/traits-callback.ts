import type { AnyEvaluation, CallbackContext, Json, Snapshot } from "@periodic-eval/contracts";
import { configError, errorMessage } from "@periodic-eval/contracts/options";
import { PeriodicCallback, type PeriodicOptions } from "../callback/periodic-callback.ts";
import type { TraitDirections } from "../evaluations/traits/directions.ts";
import { traitsEvaluation, traitsShape, type TraitsOptions } from "../evaluations/traits/evaluation.ts";
import { atEnd, atStart, isEdge } from "../schedule/triggers.ts";
import { callbackParts, type CallbackBlockOptions, type CallbackForm } from "./callback-form.ts";
import { scheduleOfEntry } from "./from-block.ts";
import { entryOf, splitSchedule } from "./schema-parts.ts";
import type { ParsedBlock, PeriodicEvalInput } from "./parse-config.ts";

/** The options of `traitsEvaluation` and a schedule; by default every 5 % of the phase, at its start and at its end. */
export type PeriodicTraitsOptions = TraitsOptions & Partial<PeriodicOptions>;

const traits: CallbackForm<PeriodicTraitsOptions> = {
  name: "PeriodicTraitsCallback",
  id: "traits",
  everyPercent: 5,
  shape: traitsShape,
  keys: { on: "traits", options: {} },
  evaluation: traitsEvaluation,
  fromBlock: optionsOf,
};

/**
 * Experimental. Measures during training how far the hidden states of neutral prompts move along the directions of traits:
 * `new PeriodicTraitsCallback()`. A second measurement, `<id>-directions`, stores the directions at the start, and at the end says
 * whether they are stale. A resumed run continues with the stored ones.
 */
export class PeriodicTraitsCallback extends PeriodicCallback {
  override readonly asks: readonly AnyEvaluation[];
  readonly #directions: TraitDirections | null;
  /** Whether the measurement that stores the directions is requested, and traits wait for it. */
  #isStarting = false;

  /**
   * @param options The callback's own options, or a `periodic_eval` block as in PeriodicCapabilityCallback. Without `traits` in the
   *   block the callback measures nothing.
   * @throws PeriodicEvalError `config` for a wrong option, an object that mixes both forms, or `atStart: false`: the
   *   directions are those of the start. A model without the ability `hiddenStates` is an error before step 1.
   */
  constructor(
    options: PeriodicTraitsOptions | PeriodicEvalInput = {},
    block: Pick<CallbackBlockOptions, "phase"> = {},
  ) {
    const [evaluation, periodic] = callbackParts(traits, options, block);
    super(evaluation, periodic);
    this.#directions = (evaluation as { readonly directions?: TraitDirections } | null)?.directions ?? null;
    this.asks = this.#directions === null ? [] : [evaluation!, this.#directions.evaluation];
    if (evaluation !== null && !this.triggers.some((trigger) => isEdge(trigger, "start")))
      throw configError({
        where: "PeriodicTraitsCallback options",
        path: ["atStart"],
        value: false,
        expected: "true: directions are extracted from the untrained model",
        fix: "Leave `atStart` out.",
      });
  }

  override async onTrainBegin(context: CallbackContext): Promise<void> {
    const directions = this.#directions;
    if (directions === null) return;
    if (context.previous !== null) {
      await this.#load(directions, context, 0);
      return super.onTrainBegin(context);
    }
    directions.forget();
    this.#isStarting = true;
    this.#requestDirections(context, "start");
  }

  /** Requests the start of traits when the directions are stored: their provenance names them. */
  async onSnapshot(context: CallbackContext, { id, step, phase }: Snapshot): Promise<void> {
    if (!this.#isStarting || id !== `${this.id}-directions` || phase !== context.phase) return;
    this.#isStarting = false;
    await this.#load(this.#directions!, context, step);
    await super.onTrainBegin({ ...context, previous: null });
  }

  override onTrainEnd(context: CallbackContext): void {
    if (this.#directions !== null && context.progress.ended) this.#requestDirections(context, "end");
    super.onTrainEnd(context);
  }

  /** Returns the directions, so that a resumed run has them before its first check. */
  state(): Json {
    return this.#directions?.toJson() ?? null;
  }

  restore(state: Json): void {
    this.#directions?.load(state);
  }

  #requestDirections({ measure }: CallbackContext, edge: "start" | "end"): void {
    const { evaluation } = this.#directions!;
    const crossed = [edge === "start" ? { trigger: atStart(), at: 0 } : { trigger: atEnd(), at: null }];
    measure({ id: `${this.id}-directions`, evaluation, crossed, on: this.on });
  }

  /** Loads the directions from the rows of the measurement that stored them, unless the checkpoint had them. */
  async #load(directions: TraitDirections, { rows, phase }: CallbackContext, step: number): Promise<void> {
    directions.refuseTrained("they were not stored");
    if (directions.areKnown) return;
    try {
      directions.loadRows(await rows({ phase, id: `${this.id}-directions`, step }));
    } catch (error) {
      directions.refuseTrained(errorMessage(error));
    }
  }
}

/** Returns the options of traits that a block sets, by default every 5 %; null if the block does not measure them. */
function optionsOf({ config }: ParsedBlock): PeriodicTraitsOptions | null {
  if (config.traits === false) return null;
  const {
    options: { layer },
    when,
  } = splitSchedule(entryOf(config.traits));
  const { every_percent: percent, schedule } = when;
  const isUsual =
    percent === undefined && schedule === undefined && Object.keys(config.schedule).length === 0;
  const written = isUsual ? { every_percent: 5 } : when;
  return { ...(layer !== undefined && { layer }), schedule: scheduleOfEntry(config, written) };
}
