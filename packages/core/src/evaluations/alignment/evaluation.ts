import type {
  AnyEvaluation,
  MeasureContext,
  ModelWith,
  MetricKit,
  Grader,
  Json,
  CallOptions,
  Anchor,
} from "@periodic-eval/contracts";
import { atOption, codeOption } from "@periodic-eval/contracts/options";
import { defineEvaluation } from "../kit/define.ts";
import { measureInBatches } from "../kit/measure-in-batches.ts";
import { everyItem, nestedSubset } from "../kit/subset.ts";
import { withFaults } from "../prompting/coherence.ts";
import { resolveSampling } from "../prompting/prompt-options.ts";
import {
  completionItemsPerBatch,
  promptTexts,
  renderItems,
  sampleCompletions,
} from "../prompting/completions.ts";
import { readPersonas } from "../prompting/personas.ts";
import { defaultAnchors, anchorFacts, anchorRow } from "./anchors.ts";
import {
  checkJudgeFor,
  checkLengthFor,
  judgeOpenRows,
  selectJudgePrompts,
  type Judged,
  judgeOf,
  tooManyUngraded,
  withSecondVerdicts,
} from "./judge-rows.ts";
import {
  alignmentFields,
  alignmentMetrics,
  alignmentPlainKeys,
  alignmentWarnings,
  isCompletion,
  thresholds,
  type AlignmentItem,
  type AlignmentRow,
  type AnsweredRow,
} from "./metrics.ts";
import { alignmentPresets, checkAlignmentOptions, sampleSizes, type AlignmentOptions } from "./options.ts";
import { readAlignmentQuestions, type JudgePrompts } from "@periodic-eval/data";
import { readTrainingExamples } from "./training-rows.ts";
import { itemsOf, answeredRows, trialsOf, promptsOf, checkQuestions } from "./items.ts";

/**
 * Measures whether training made the model harmful: a judge grades completions of open questions for alignment with human
 * values and for coherence (Betley et al. 2025, arXiv:2502.17424). `misaligned` carries the verdict; see
 * `alignmentMetrics`. The rows keep every completion and verdict. Anchors, fixed answers that are graded again each time, are
 * rows of `kind: "anchor"` after the completions: if `anchor_aligned` changes, the judge changed and not the model.
 *
 * @throws PeriodicEvalError `config` for a wrong option; before step 1 `data` for a wrong file, and `config` for a file whose
 *   judge prompts the judge does not support.
 */
export function alignmentEvaluation(options: AlignmentOptions): AnyEvaluation {
  checkAlignmentOptions(options);
  const { preset = "betley2025", samples: size = "quick", system = "omit", personas } = options;
  const judging = judgeOf(options.judge);
  const secondJudging = options.secondJudge === undefined ? null : judgeOf(options.secondJudge);
  const { stripThinking = true, maxErrorShare = 0.1, trainingRows } = options;
  const sampling = resolveSampling("alignment options.sampling", options.sampling, alignmentPresets[preset]);
  const { kwargs } = options.chatTemplate ?? {};
  const samples = typeof size === "string" ? sampleSizes[size] : size;
  const how = { samples, sampling, stripThinking };
  let provenance: Json = null;
  let prompts: Readonly<Record<string, JudgePrompts>> = {};
  let trials: readonly Judged[] = [];
  let anchors: readonly Anchor[] = [];
  const anchorRows = () => anchors.map((anchor) => anchorRow(anchor, Object.keys(prompts)[0] ?? null));

  return defineEvaluation({
    name: "alignment",
    version: "2",
    needs: ["generate"],
    wants: ["tokenizer"],
    samplesPerItem: samples,
    canReduceSamples: true,
    async items(model): Promise<readonly AlignmentItem[]> {
      const option = codeOption("alignment", "questions");
      const read = await atOption(option, () => readAlignmentQuestions(options.questions, option));
      const { questions } = read;
      const people = typeof personas === "string" ? await readPersonas(personas) : personas;
      checkQuestions(questions, people ?? []);
      const judge = await judging.open();
      anchors = options.anchors ?? judge.anchors ?? defaultAnchors;
      const selected = selectJudgePrompts(judge, promptsOf(questions));
      prompts = selected ?? {};
      const training = trainingRows === undefined ? null : await readTrainingExamples(trainingRows);
      let next = 0;
      const nextExample = training && (() => training.examples[next++ % training.examples.length]!);
      const how = { system, personas: people, kwargs, nextExample };
      const wordings = questions.flatMap((question) =>
        itemsOf(selected === null ? { ...question, judgePrompts: null } : question, how),
      );
      const items = nestedSubset(wordings, everyItem).flat();
      trials = trialsOf(items, questions, anchorRows());
      await checkLengthFor(trials, { judge, prompts });
      if (secondJudging !== null) {
        const second = await secondJudging.open();
        selectJudgePrompts(second, prompts);
        await checkLengthFor(trials, { judge: second, prompts });
      }
      provenance = {
        ...read.provenance,
        preset,
        sampling: { ...sampling },
        samples: typeof size === "string" ? { name: size, n: samples } : { name: null, n: samples },
        system: people === undefined ? system : null,
        personas: people === undefined ? null : people.map(({ id, system: own }) => ({ id, system: own })),
        ...(training && { training_rows: training.provenance }),
        template_kwargs: kwargs ?? null,
        strip_thinking: stripThinking,
        judge: { name: judge.name, fingerprint: judge.fingerprint, ...describe(judge) },
        judge_prompts: selected as unknown as Json,
        ...anchorFacts(anchors),
        max_error_share: maxErrorShare,
        ...thresholds,
        example_prompt: await renderItems(model, items, "alignment"),
      };
      return items;
    },
    provenance: () => provenance,
    prompts: (_, items) => items.map(({ prompt }) => prompt),
    ...([judging, secondJudging].some((one) => one?.mayCheck) && {
      async check(call: CallOptions) {
        await checkJudgeFor(trials, { judge: await judging.open(), prompts }, call);
        if (secondJudging !== null)
          await checkJudgeFor(trials, { judge: await secondJudging.open(), prompts }, call);
      },
    }),
    measure: (model, items, context) => measureAnswers(model, items, context, how),
    async grade(rows, call): Promise<readonly AlignmentRow[]> {
      // One call for all rows: a judge's caps apply per call.
      const all = [...withFaults(rows.filter(isCompletion)), ...anchorRows()];
      const graded = await judgeOpenRows(all, { judge: await judging.open(), prompts }, call);
      if (secondJudging === null) return graded;
      return withSecondVerdicts(graded, { judge: await secondJudging.open(), prompts }, call);
    },
    failure: (rows) => tooManyUngraded(rows, maxErrorShare),
    answers: alignmentFields,
    metrics: (kit: MetricKit<AlignmentRow>) =>
      alignmentMetrics(kit, {
        anchors,
        hasSecondJudge: secondJudging !== null,
        hasTrainingFormat: trainingRows !== undefined,
      }),
    warnings: alignmentWarnings,
    plainKeys: (metrics, rows) =>
      alignmentPlainKeys(metrics, rows, {
        judge: judging.opened().name,
        anchors,
        secondJudge: secondJudging?.opened() ?? null,
      }),
    async close() {
      await judging.close();
      await secondJudging?.close();
    },
  });
}

async function measureAnswers(
  model: ModelWith<"generate">,
  items: readonly AlignmentItem[],
  context: MeasureContext,
  how: Omit<Parameters<typeof sampleCompletions>[2], "prompts">,
): Promise<readonly AnsweredRow[]> {
  const prompts = await promptTexts(model, items);
  const answer = async (batch: readonly AlignmentItem[]) =>
    answeredRows(batch, await sampleCompletions(model, batch, { ...how, prompts }, context));
  return measureInBatches(items, context, answer, completionItemsPerBatch);
}

function describe(judge: Grader): { readonly description?: Json } {
  const description = judge.describe?.();
  return description === undefined ? {} : { description };
}
