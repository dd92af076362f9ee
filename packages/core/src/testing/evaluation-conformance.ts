import { metricKit, primaryMetric, summarize } from "../evaluations/kit/metric-kit.ts";
import type { AnyEvaluation, MeasureContext, Row } from "../contracts/evaluation.ts";
import type { Awaitable } from "../contracts/json.ts";
import { errorMessage } from "../internal/error-message.ts";
import type { Ability, EvaluableModel } from "../contracts/model.ts";
import { countTokens } from "../session/window/count-tokens.ts";
import { deadlineAt } from "../session/window/deadline.ts";
import { expectEqual, expectJson, expectRejects, expectThat, type Check } from "./check.ts";
import { fakeTokenizer } from "./fake-tokenizer.ts";
import { withoutMathRandom } from "./math-random.ts";

const abilities: readonly Ability[] = ["tokenizer", "logLikelihoods", "nextToken", "generate"];

/**
 * What every evaluation must do, on a model that answers the same whatever stands beside a request (`fakeModel` does).
 * `make` gives a fresh pair each time; a handful of items suffices.
 *
 *     const make = () => ({ evaluation: politeness, model: fakeModel() });
 *     for (const check of evaluationConformance(make)) it(check.name, check.run);
 */
export function evaluationConformance(
  make: () => Awaitable<{ readonly evaluation: AnyEvaluation; readonly model: EvaluableModel }>,
): readonly Check[] {
  const check = (
    name: string,
    run: (evaluation: AnyEvaluation, model: EvaluableModel, unguarded: EvaluableModel) => Promise<void>,
  ): Check => ({
    name,
    async run() {
      const { evaluation, model } = await make();
      await run(evaluation, seeingOnly(evaluation, model), model);
    },
  });
  return [
    check("has a name, a version and needs that exist", async ({ name, version, needs, wants = [] }) => {
      expectThat(name !== "" && version !== "", "name and version are not empty");
      expectThat(
        needs.length > 0 && needs.every((need) => abilities.includes(need)),
        `needs are among ${abilities.join(", ")}`,
      );
      expectThat(
        wants.every((want) => abilities.includes(want) && !needs.includes(want)),
        `wants are among ${abilities.join(", ")}, and not needed anyway`,
      );
    }),
    check("gives items of distinct ids, the same each time", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      expectThat(items.length > 0, "there are items");
      expectDistinct(items, "items");
      expectEqual(await itemsOf(evaluation, model), items, "items asked again");
    }),
    check("tells a prompt of each item, the same each time", async (evaluation, model) => {
      if (evaluation.prompts === undefined) return;
      const items = await itemsOf(evaluation, model);
      const prompts = evaluation.prompts(model, items);
      expectEqual(prompts.length, items.length, "prompts, one an item");
      for (const prompt of prompts) fakeTokenizer().render(prompt);
      expectEqual(
        evaluation.prompts(model, items.slice(1)),
        prompts.slice(1),
        "prompts of all items but one",
      );
    }),
    check("gives provenance that JSON holds, the same for the same items", async (evaluation, model) => {
      await itemsOf(evaluation, model);
      const provenance = evaluation.provenance?.();
      expectJson({ provenance }, "what holds the provenance");
      const other = await make();
      await itemsOf(other.evaluation, seeingOnly(other.evaluation, other.model));
      expectEqual(other.evaluation.provenance?.(), provenance, "provenance of another one");
    }),
    check("measures the same again, with nothing from Math.random", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      const rows = await withoutMathRandom(async () => measured(evaluation, model, items));
      expectDistinct(rows, "rows");
      expectEqual(
        rows.length,
        (evaluation.samplesPerItem ?? 1) * items.length,
        "rows, samplesPerItem for each item",
      );
      expectEqual(await measured(evaluation, model, items), rows, "rows measured again");
      expectJson(rows, "rows");
    }),
    check("measures an item alike with fewer beside it: a budget may cut them", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      const whole = new Map((await measured(evaluation, model, items)).map((row) => [row.id, row]));
      for (const row of await measured(evaluation, model, items.slice(0, Math.ceil(items.length / 2)))) {
        expectEqual(row, whole.get(row.id), `row "${row.id}" of half the items`);
      }
      expectEqual(await measured(evaluation, model, []), [], "rows of no items");
    }),
    check("tells how far it is, never backwards and never too far", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      const told: number[] = [];
      await evaluation.measure(model, items, context({ progress: (done) => told.push(done) }));
      expectThat(
        told.every((done, at) => done >= (told[at - 1] ?? 0) && done <= items.length),
        `progress ${told.join(", ")} of ${items.length}`,
      );
    }),
    check("stops at an aborted signal", async (evaluation, model) => {
      const items = await itemsOf(evaluation, model);
      await expectRejects(
        async () => evaluation.measure(model, items, context({ signal: AbortSignal.abort() })),
        "measuring under an aborted signal rejects",
      );
    }),
    check(
      "keeps, at a deadline, the first rows as they are without one",
      async (evaluation, model, unguarded) => {
        const items = await itemsOf(evaluation, model);
        const { samplesPerItem = 1 } = evaluation;
        const uncut = timed(unguarded);
        const whole = await measured(evaluation, seeingOnly(evaluation, uncut.model), items);
        const calls = uncut.calls();
        /** Time is up in that call of the model; where null, as soon as an item is said to be done. */
        const measureUntil = async (call: number | null) => {
          const { model: cut, signal, end } = timed(unguarded, call);
          let told = 0;
          const progress = (done: number) => {
            told = done;
            if (call === null && done > 0) end();
          };
          let rows: readonly Row[] = [];
          try {
            const seen = seeingOnly(evaluation, cut);
            rows = (await evaluation.measure(seen, items, context({ signal, progress }))) as readonly Row[];
          } catch (error) {
            const isFine = error === signal.reason && told === 0;
            expectThat(
              isFine,
              `at a deadline the rows of ${told} items are returned (${errorMessage(error)})`,
            );
          }
          const when = call === null ? `time up after ${told} items` : `time up in call ${call} of ${calls}`;
          expectThat(rows.length >= samplesPerItem * told, `${when}: rows of ${told} items or more are kept`);
          expectEqual(rows, whole.slice(0, rows.length), `${when}: rows kept`);
        };
        await measureUntil(null);
        for (const call of new Set([1, 2, calls])) if (call <= calls) await measureUntil(call);
      },
    ),
    check("grades a row to the row and more, and again the same", async (evaluation, model) => {
      if (evaluation.grade === undefined) return;
      const rows = await measured(evaluation, model, await itemsOf(evaluation, model));
      const graded = await withoutMathRandom(async () => gradedOf(evaluation, rows));
      expectEqual(
        graded.slice(0, rows.length).map(({ id }) => id),
        rows.map(({ id }) => id),
        "ids of graded rows, before those that grading adds",
      );
      expectDistinct(graded, "graded rows");
      for (const [at, row] of rows.entries()) {
        const kept = Object.fromEntries(
          Object.keys(row).map((name) => [name, (graded[at] as unknown as Record<string, unknown>)[name]]),
        );
        expectEqual(kept, row, `what was measured in row "${row.id}", after grading`);
      }
      expectJson(graded, "graded rows");
      expectEqual(await gradedOf(evaluation, graded), graded, "graded rows graded again");
    }),
    check("has metrics that stand on rows as JSON gives them back", async (evaluation, model) => {
      const rows = await gradedOf(
        evaluation,
        await measured(evaluation, model, await itemsOf(evaluation, model)),
      );
      const metrics = evaluation.metrics(metricKit<Row>());
      expectThat(primaryMetric(metrics) !== null, "there is a metric");
      const values = await withoutMathRandom(() => summarize(metrics, rows));
      expectEqual(
        summarize(metrics, JSON.parse(JSON.stringify(rows)) as readonly Row[]),
        values,
        "metrics of rows read back",
      );
      expectThat(
        Object.values(values).some(({ n }) => n > 0),
        "a metric observes some row",
      );
      const nothing = summarize(metrics, []);
      for (const [name, { value, n }] of Object.entries(nothing)) {
        expectEqual([value, n], [null, 0], `${name} of no rows`);
      }
      expectJson({ keys: await withoutMathRandom(() => evaluation.plainKeys?.(values, rows)) }, "plain");
      expectJson({ keys: evaluation.plainKeys?.(nothing, []) }, "of no rows, plain");
    }),
  ];
}

/** The model with no more than what the evaluation needs and wants: reaching for anything else throws. */
function seeingOnly({ needs, wants = [], name }: AnyEvaluation, model: EvaluableModel): EvaluableModel {
  return new Proxy(model, {
    get(target, property) {
      if (
        abilities.includes(property as Ability) &&
        ![...(needs as readonly Ability[]), ...wants].includes(property as Ability)
      ) {
        throw new Error(
          `not so: "${name}" uses only what it needs or wants; it reached for ${String(property)}`,
        );
      }
      return Reflect.get(target, property) as unknown;
    },
  });
}

/** A model and a deadline that falls in that call of it or of its base. */
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
