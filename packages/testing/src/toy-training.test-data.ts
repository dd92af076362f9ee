import type {
  TrainerCallback,
  AnyEvaluation,
  Logger,
  SessionEvent,
  SessionOptions,
} from "@periodic-eval/contracts";
import { defineEvaluation } from "@periodic-eval/core";
import { fakeGuard } from "./fake-guard.ts";
import { fakeModel, type FakeModel } from "./fake-model.ts";
import { memoryStore, type MemoryStore } from "./memory-store.ts";

/** A training whose weights are one number, with a store, a model, and the events of its session. */
export interface ToyTraining {
  /** Changed by `step`, and by tests that disturb the training. */
  weights: number;
  readonly store: MemoryStore;
  readonly model: FakeModel;
  readonly events: SessionEvent[];
  readonly logger: Logger;
  /** Returns the warnings, one line each. */
  warnings(): readonly string[];
  step(): void;
  /** Returns session options for a phase of ten steps with a weights guard. */
  options(callbacks: readonly TrainerCallback[], changes?: Partial<SessionOptions>): SessionOptions;
}

export function toyTraining(store: MemoryStore = memoryStore()): ToyTraining {
  const events: SessionEvent[] = [];
  const toy: ToyTraining = {
    weights: 0,
    store,
    model: fakeModel({ weights: () => String(toy.weights) }),
    events,
    logger: { name: "toy", event: (event) => void events.push(event) },
    warnings: () =>
      events.flatMap((event) => (event.kind === "warning" ? [`${event.where}: ${event.message}`] : [])),
    step() {
      toy.weights = (toy.weights * 31 + 7) % 1009;
    },
    options: (callbacks, changes = {}) => ({
      run: store,
      maxSteps: 10,
      model: toy.model,
      guards: [fakeGuard({ name: "weights", observe: () => `w${toy.weights}` })],
      loggers: [toy.logger],
      callbacks,
      now: () => "2026-01-01T00:00:00.000Z",
      ...changes,
      // Steps take no time here, so a ceiling would leave no time for measurements.
      budget: { overheadPercent: null, ...changes.budget },
    }),
  };
  return toy;
}

export interface ToyEvaluationOptions {
  readonly name?: string;
  readonly version?: string;
  readonly items?: number;
  /** Whether rows are graded after the window instead of during it. */
  readonly graded?: boolean;
  /** Called by `measure` with the signal, to throw, disturb or wait. */
  readonly onMeasure?: (signal: AbortSignal) => void | Promise<void>;
  readonly onGrade?: (signal: AbortSignal) => void | Promise<void>;
}

/** Returns an evaluation with one completion per item. A hit begins with a letter of the first half of the alphabet. */
export function toyEvaluation(options: ToyEvaluationOptions = {}): AnyEvaluation {
  const { name = "toy", version = "1", items = 8, graded = false } = options;
  const isHit = (reply: string) => reply < "n";
  return defineEvaluation({
    name,
    version,
    needs: ["generate"],
    items: () => Array.from({ length: items }, (_, i) => ({ id: `q${i}`, text: `question ${i}` })),
    provenance: () => ({ items }),
    async measure(model, asked, { signal, seed, progress }) {
      await options.onMeasure?.(signal);
      const sampling = { maxNewTokens: 4, temperature: 0, seed };
      const replies = await model.generate(
        asked.map(({ text }) => ({ prompt: { text }, sampling })),
        { signal },
      );
      progress(asked.length);
      return asked.map(({ id }, i) => ({
        id,
        reply: replies[i]!.text,
        hit: graded ? null : isHit(replies[i]!.text),
      }));
    },
    ...(graded && {
      async grade(
        rows: readonly { readonly id: string; readonly reply: string; readonly hit: boolean | null }[],
        { signal }: { readonly signal: AbortSignal },
      ) {
        await options.onGrade?.(signal);
        return rows.map((row) => ({ ...row, hit: isHit(row.reply) }));
      },
    }),
    metrics: ({ rate }) => ({ hit_rate: rate((row) => row.hit, { higherIsBetter: true }) }),
  }) as AnyEvaluation;
}

/** Returns a promise that a test resolves with `open`. */
export function gate(): { readonly passed: Promise<void>; open(): void } {
  let open!: () => void;
  const passed = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { passed, open };
}
