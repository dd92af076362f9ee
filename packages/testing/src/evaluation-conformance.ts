import type {
  AnyEvaluation,
  MeasureContext,
  Row,
  Awaitable,
  Ability,
  BulkTokenizer,
  EvaluableModel,
} from "@periodic-eval/contracts";
import { metricKit, primaryMetric, summarize } from "@periodic-eval/core/evaluations";
import { errorMessage } from "@periodic-eval/contracts/options";
import { countTokens, deadlineAt } from "@periodic-eval/core/session";
import {
  expectEqual,
  expectJson,
  expectRejects,
  expectThat,
  type Check,
  withoutMathRandom,
} from "./check.ts";
import { fakeTokenizer } from "./fake-tokenizer.ts";

const abilities: readonly Ability[] = [
  "tokenizer",
  "logLikelihoods",
  "nextToken",
  "generate",
  "hiddenStates",
];

/**
 * Returns the checks that every evaluation must pass, on a model whose answers do not depend on the other requests of a batch,
 * such as `fakeModel`.
 *
 * @param make Returns a new evaluation and model each time. A handful of items is enough.
 *
 *     const make = () => ({ evaluation: politeness, model: fakeModel() });
 *     for (const check of evaluationConformance(make)) it(check.name, check.run);
 */
export function evaluationConformance(make: MakePair): readonly Check[] {
  const check: MakeCheck = (name, run) => ({
    name,
    async run() {
      const { evaluation, model } = await make();
      await run(evaluation, withNeeds(evaluation, model), model);
    },
  });
  return [...itemChecks(check, make), ...measureChecks(check), deadlineCheck(check), ...gradeChecks(check)];
}

type MakePair = () => Awaitable<{ readonly evaluation: AnyEvaluation; readonly model: EvaluableModel }>;

type MakeCheck = (
  name: string,
  run: (evaluation: AnyEvaluation, model: EvaluableModel, unguarded: EvaluableModel) => Promise<void>,
) => Check;

function itemChecks(check: MakeCheck, make: MakePair): readonly Check[] {
  return [
    check("has a name, a version, and abilities that exist", async ({ name, version, needs, wants = [] }) => {
      expectThat(name !== "" && version !== "", "name and version are not empty");
      expectThat(
        needs.length > 0 && needs.every((need) => abilities.includes(need)),
        `needs are among ${abilities.join(", ")}`,
      );
      expectThat(
        wants.every((want) => abilities.includes(want) && !needs.includes(want)),
        `wants are among ${abilities.join(", ")} and not in needs`,
      );
    }),
    check("returns the same items each time, with distinct ids", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      expectThat(items.length > 0, "there are items");
      expectDistinct(items, "items");
      expectEqual(await itemsOf(evaluation, model), items, "items returned again");
    }),
    check("returns one prompt per item, whatever the other items are", async (evaluation, model) => {
      if (evaluation.prompts === undefined) return;
      const items = await itemsOf(evaluation, model);
      const prompts = await evaluation.prompts(model, items);
      expectEqual(prompts.length, items.length, "prompts, one per item");
      for (const prompt of prompts) fakeTokenizer().render(prompt);
      expectEqual(
        await evaluation.prompts(model, items.slice(1)),
        prompts.slice(1),
        "prompts of all items except the first",
      );
    }),
    check("returns JSON provenance, the same for the same items", async (evaluation, model) => {
      await itemsOf(evaluation, model);
      const provenance = evaluation.provenance?.();
      expectJson({ provenance }, "an object with the provenance");
      const other = await make();
      await itemsOf(other.evaluation, withNeeds(other.evaluation, other.model));
      expectEqual(other.evaluation.provenance?.(), provenance, "provenance of a second evaluation");
    }),
  ];
}

function measureChecks(check: MakeCheck): readonly Check[] {
  return [
    check("repeats its measurement, without drawing from Math.random", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      const rows = await withoutMathRandom(async () => measured(evaluation, model, items));
      expectDistinct(rows, "rows");
      expectEqual(
        rows.length,
        (evaluation.samplesPerItem ?? 1) * items.length,
        "rows, samplesPerItem per item",
      );
      expectEqual(await measured(evaluation, model, items), rows, "rows measured again");
      expectJson(rows, "rows");
    }),
    check(
      "measures an item the same with fewer other items, as a budget may require",
      async (evaluation, model) => {
        const items = await itemsOf(evaluation, model);
        const whole = new Map((await measured(evaluation, model, items)).map((row) => [row.id, row]));
        for (const row of await measured(evaluation, model, items.slice(0, Math.ceil(items.length / 2)))) {
          expectEqual(row, whole.get(row.id), `row "${row.id}" of half the items`);
        }
        expectEqual(await measured(evaluation, model, []), [], "rows of no items");
      },
    ),
    check("asks the tokenizer for all items at once", async (evaluation, _, model) => {
      if (model.tokenizer === undefined) return;
      const items = await itemsOf(evaluation, withNeeds(evaluation, model));
      const callsFor = async (some: readonly Row[]) => {
        const { tokenizer, calls } = countedTokenizer(model.tokenizer!);
        await measured(evaluation, withNeeds(evaluation, { ...model, tokenizer }), some);
        return calls.length;
      };
      const [first, all] = [await callsFor(items.slice(0, 1)), await callsFor(items)];
      // Prompts of one item may have another ending or another kind than the first one's.
      expectThat(
        all <= first + 2,
        `at most ${first + 2} calls of the tokenizer for ${items.length} items; there were ${all}, one is a message to another process`,
      );
    }),
    check("measures a sample the same without the other samples of its item", async (evaluation, model) => {
      const { samplesPerItem = 1, canReduceSamples = false } = evaluation;
      if (!canReduceSamples) return;
      const items = await itemsOf(evaluation, model);
      const whole = new Map((await measured(evaluation, model, items)).map((row) => [row.id, row]));
      const parts: Row[] = [];
      for (let first = 0; first < samplesPerItem; first += 1) {
        const samples = { first, end: first + 1 };
        parts.push(...(await evaluation.measure(model, items, context({ samples }))));
        expectEqual(parts.length, (first + 1) * items.length, "rows, one per item and sample");
      }
      expectEqual(new Map(parts.map((row) => [row.id, row])).size, whole.size, "distinct rows");
      for (const row of parts) expectEqual(row, whole.get(row.id), `row "${row.id}" of one sample`);
    }),
    check("reports progress that never decreases or exceeds the items", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      const reports: number[] = [];
      await evaluation.measure(model, items, context({ progress: (done) => reports.push(done) }));
      expectThat(
        reports.every((done, at) => done >= (reports[at - 1] ?? 0) && done <= items.length),
        `progress ${reports.join(", ")} of ${items.length}`,
      );
    }),
    check("rejects for an aborted signal", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      await expectRejects(
        async () => evaluation.measure(model, items, context({ signal: AbortSignal.abort() })),
        "measure rejects under an aborted signal",
      );
    }),
  ];
}

function deadlineCheck(check: MakeCheck): Check {
  return check("returns the unchanged first rows at a deadline", async (evaluation, model, unguarded) => {
    const items = await itemsOf(evaluation, model);
    const { samplesPerItem = 1 } = evaluation;
    const uncut = timed(unguarded);
    const whole = await measured(evaluation, withNeeds(evaluation, uncut.model), items);
    const calls = uncut.calls();
    /** Measures until the deadline, which falls in a call of the model or, for null, when the first item is reported done. */
    const measureUntil = async (call: number | null) => {
      const { model: cut, signal, end } = timed(unguarded, call);
      let reported = 0;
      const progress = (done: number) => {
        reported = done;
        if (call === null && done > 0) end();
      };
      let rows: readonly Row[] = [];
      try {
        const seen = withNeeds(evaluation, cut);
        rows = (await evaluation.measure(seen, items, context({ signal, progress }))) as readonly Row[];
      } catch (error) {
        const isFine = error === signal.reason && reported === 0;
        expectThat(
          isFine,
          `measure returns the rows of ${reported} items at a deadline (${errorMessage(error)})`,
        );
      }
      const when =
        call === null ? `deadline after ${reported} items` : `deadline in call ${call} of ${calls}`;
      expectThat(
        rows.length >= samplesPerItem * reported,
        `${when}: at least the rows of ${reported} items are returned`,
      );
      expectEqual(rows, whole.slice(0, rows.length), `${when}: rows`);
    };
    await measureUntil(null);
    for (const call of new Set([1, 2, calls])) if (call <= calls) await measureUntil(call);
  });
}

function gradeChecks(check: MakeCheck): readonly Check[] {
  return [
    check("adds fields when it grades, and grades the same again", async (evaluation, model) => {
      if (evaluation.grade === undefined) return;
      const rows = await measured(evaluation, model, await itemsOf(evaluation, model));
      const graded = await withoutMathRandom(async () => gradedOf(evaluation, rows));
      expectEqual(
        graded.slice(0, rows.length).map(({ id }) => id),
        rows.map(({ id }) => id),
        "ids of graded rows, without rows that grading adds",
      );
      expectDistinct(graded, "graded rows");
      for (const [at, row] of rows.entries()) {
        const fields = Object.fromEntries(
          Object.keys(row).map((name) => [name, (graded[at] as unknown as Record<string, unknown>)[name]]),
        );
        expectEqual(fields, row, `measured fields of row "${row.id}" after grading`);
      }
      expectJson(graded, "graded rows");
      expectEqual(await gradedOf(evaluation, graded), graded, "graded rows graded again");
    }),
    check("computes the same metrics from rows that JSON returns", async (evaluation, model) => {
      const rows = await gradedOf(
        evaluation,
        await measured(evaluation, model, await itemsOf(evaluation, model)),
      );
      const metrics = evaluation.metrics(metricKit<Row>());
      expectThat(primaryMetric(metrics) !== null, "the evaluation has a metric");
      const values = await withoutMathRandom(() => summarize(metrics, rows));
      expectEqual(
        summarize(metrics, JSON.parse(JSON.stringify(rows)) as readonly Row[]),
        values,
        "metrics of rows from JSON",
      );
      expectThat(
        Object.values(values).some(({ n }) => n > 0),
        "a metric observes at least one row",
      );
      const empty = summarize(metrics, []);
      for (const [name, { value, n }] of Object.entries(empty)) {
        expectEqual([value, n], [null, 0], `${name} of no rows`);
      }
      expectJson({ keys: await withoutMathRandom(() => evaluation.plainKeys?.(values, rows)) }, "plain keys");
      expectJson({ keys: evaluation.plainKeys?.(empty, []) }, "plain keys of no rows");
    }),
  ];
}

/** Returns the model without the abilities that the evaluation neither needs nor wants: using those throws. */
function withNeeds({ needs, wants = [], name }: AnyEvaluation, model: EvaluableModel): EvaluableModel {
  return new Proxy(model, {
    get(target, property) {
      if (
        abilities.includes(property as Ability) &&
        ![...(needs as readonly Ability[]), ...wants].includes(property as Ability)
      ) {
        throw new Error(
          `expected that "${name}" uses only abilities of needs and wants; it used ${String(property)}`,
        );
      }
      return Reflect.get(target, property) as unknown;
    },
  });
}

/** Returns a tokenizer that records the names of its calls. */
export function countedTokenizer(original: BulkTokenizer) {
  const calls: string[] = [];
  const counted = <A extends readonly unknown[], R>(name: string, call: (...args: A) => R) => {
    return (...args: A): R => {
      calls.push(name);
      return call(...args);
    };
  };
  const tokenizer: BulkTokenizer = {
    ...original,
    encode: counted("encode", original.encode),
    decode: counted("decode", original.decode),
    render: counted("render", original.render),
  };
  return { tokenizer, calls };
}

/** Returns the model, and the signal of a deadline that falls in the given call of it or of its base. */
function timed(model: EvaluableModel, lastCall: number | null = null) {
  let [isUp, calls] = [false, 0];
  const deadline = deadlineAt(
    () => (isUp ? 0 : null),
    () => 0,
  );
  const end = () => {
    isUp = true;
    deadline.check();
  };
  const counted = countTokens(model, () => void (++calls === lastCall && end()));
  return { model: counted.model, signal: deadline.signal, calls: () => calls, end };
}

function context(changes: Partial<MeasureContext> = {}): MeasureContext {
  return { signal: new AbortController().signal, seed: "conformance", progress: () => undefined, ...changes };
}

async function itemsOf(evaluation: AnyEvaluation, model: EvaluableModel): Promise<readonly Row[]> {
  return (await evaluation.items(model)) as readonly Row[];
}

async function measured(
  evaluation: AnyEvaluation,
  model: EvaluableModel,
  items: readonly Row[],
): Promise<readonly Row[]> {
  return (await evaluation.measure(model, items, context())) as readonly Row[];
}

async function gradedOf(evaluation: AnyEvaluation, rows: readonly Row[]): Promise<readonly Row[]> {
  return evaluation.grade === undefined
    ? rows
    : ((await evaluation.grade(rows, context())) as readonly Row[]);
}

function expectDistinct(rows: readonly Row[], what: string): void {
  const ids = rows.map(({ id }) => id);
  expectThat(
    ids.every((id) => typeof id === "string" && id !== ""),
    `${what} have ids`,
  );
  expectEqual(ids.length - new Set(ids).size, 0, `repeated ids among ${what}`);
}
