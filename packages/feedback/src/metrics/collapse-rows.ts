import type { Abilities, CallOptions, MeasureContext, Prompt, Row, ModelWith } from "@periodic-eval/core";
import { seedOf } from "@periodic-eval/core/random";
import type { SamplingOptions } from "@periodic-eval/core/evaluations";
import {
  baseOf,
  entropyOf,
  perToken,
  scoreAnswers,
  unknown,
  type CollapseReference,
  type Known,
  type ReferenceAnswer,
  type ScoredText,
} from "./collapse-reference.ts";
import { selfRougeL } from "./rouge-l.ts";

export interface TextItem extends Row {
  readonly kind: "text";
  readonly text: string;
}

export interface ProbeItem extends Row {
  readonly kind: "probe";
  readonly content: string;
  readonly prompt: Prompt;
}

/** The fixed text's row, or a probe's. What is null is unknown, for the reason that `reasons` has by sign. */
export interface CollapseRow extends Row {
  /** What was asked; empty for the text. */
  readonly prompt: string;
  readonly entropyNats: number | null;
  readonly referenceEntropyNats: number | null;
  /** Of a probe; empty for the text. */
  readonly answers: readonly {
    readonly text: string;
    readonly nats: number | null;
    readonly tokens: number | null;
  }[];
  readonly selfRougeL: number | null;
  /** Mean log p by token of the model's own answers minus that of the baseline's own, each by who said it. */
  readonly ownDrift: number | null;
  /** Mean log p by token of the baseline's answers, by the model minus by the baseline. */
  readonly baselineDrift: number | null;
  readonly reasons: Readonly<Record<string, string>>;
}

export interface CollapseReading {
  /** Of each probe. */
  readonly samples: number;
  readonly sampling: SamplingOptions;
  /** Null: the model without its adapter, where it has one. */
  readonly reference: CollapseReference | null;
}

/** What reads a model's row of the fixed text, and of a probe. */
export function collapseReader({ samples, sampling, reference }: CollapseReading) {
  /** Independent answers, each from a stream of its own; the baseline's are drawn from others than the model's. */
  async function answer(
    model: Pick<Abilities, "generate">,
    item: ProbeItem,
    who: string,
    { seed, signal }: MeasureContext,
  ) {
    const requests = Array.from({ length: samples }, (_, sample) => ({
      prompt: item.prompt,
      sampling: { ...sampling, seed: seedOf(seed, "collapse", who, item.id, sample) },
    }));
    return (await model.generate(requests, { signal })).map(({ text }) => text);
  }

  async function referenceOf(
    model: ModelWith<"generate">,
    item: ProbeItem,
    context: MeasureContext,
  ): Promise<Known<readonly ReferenceAnswer[]>> {
    if (reference !== null) {
      const answers = reference.answers?.[item.id];
      return answers === undefined ? unknown("the baseline has no answers of it") : { value: answers };
    }
    const base = baseOf(model);
    if (base === null) return noBaseline;
    const texts = await answer(base, item, "base", context);
    const scored = await scoreAnswers(base, item.prompt, texts, context);
    if (scored.value === null) return scored;
    return {
      value: texts.flatMap((text, at) => (scored.value[at] == null ? [] : [{ text, ...scored.value[at] }])),
    };
  }

  async function readText(
    model: ModelWith<"generate">,
    item: TextItem,
    call: CallOptions,
  ): Promise<CollapseRow> {
    const now = await entropyOf(model, item.text, call);
    const base = reference === null ? baseOf(model) : null;
    const before =
      reference !== null
        ? reference.entropyNats === null
          ? unknown("the baseline's entropy is not known")
          : { value: reference.entropyNats }
        : base === null
          ? noBaseline
          : await entropyOf(base, item.text, call);
    return {
      id: item.id,
      ...blank,
      entropyNats: now.value,
      referenceEntropyNats: before.value,
      reasons: { ...why("entropy_nats", now), ...why("entropy_ratio", now), ...why("entropy_ratio", before) },
    };
  }

  async function readProbe(
    model: ModelWith<"generate">,
    item: ProbeItem,
    context: MeasureContext,
  ): Promise<CollapseRow> {
    const texts = await answer(model, item, "model", context);
    const own = await scoreAnswers(model, item.prompt, texts, context);
    const before = await referenceOf(model, item, context);
    const again =
      before.value === null
        ? before
        : await scoreAnswers(
            model,
            item.prompt,
            before.value.map(({ text }) => text),
            context,
          );
    const drift = (now: Known<readonly (ScoredText | null)[]>): Known<number> => {
      if (now.value === null) return now;
      if (before.value === null) return before;
      const [level, earlier] = [perToken(now.value), perToken(before.value)];
      return level === null || earlier === null
        ? unknown("no answer has a word")
        : { value: level - earlier };
    };
    const [ownDrift, baselineDrift] = [drift(own), drift(again)];
    return {
      id: item.id,
      ...blank,
      prompt: item.content,
      answers: texts.map((text, at) => ({
        text,
        nats: own.value?.[at]?.nats ?? null,
        tokens: own.value?.[at]?.tokens ?? null,
      })),
      selfRougeL: selfRougeL(texts),
      ownDrift: ownDrift.value,
      baselineDrift: baselineDrift.value,
      reasons: { ...why("own_drift", ownDrift), ...why("baseline_drift", baselineDrift) },
    };
  }

  return { readText, readProbe };
}

const noBaseline = unknown("there is no baseline: neither a reference nor a model without its adapter");

const blank = {
  prompt: "",
  entropyNats: null,
  referenceEntropyNats: null,
  answers: [],
  selfRougeL: null,
  ownDrift: null,
  baselineDrift: null,
} as const;

const why = (sign: string, known: Known<unknown>): Readonly<Record<string, string>> =>
  known.value === null && "reason" in known ? { [sign]: known.reason } : {};
