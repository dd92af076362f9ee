import type { Completion, Json, Tokenizer } from "@periodic-eval/core";
import { isCount, modelError, fileError } from "@periodic-eval/contracts/options";
import { inMemory, type TrainableLM } from "@periodic-eval/tfjs";
import { SDPOTrainer, type SDPOExample } from "@periodic-eval/trainers";
import { teacherTurnOf } from "../preferences/preference.ts";
import type {
  FeedbackAnswer,
  FeedbackEngine,
  FeedbackExample,
  FeedbackModel,
  OpenRequest,
  TrainedState,
  UpdateRecord,
  UpdateReport,
} from "./types.ts";

/** A model with a new adapter. Training changes it in place. */
export interface AdaptedModel {
  readonly model: TrainableLM;
  readonly tokenizer: Tokenizer;
  dispose(): void;
}

export interface LocalEngineOptions {
  /** Opens the base model with a new adapter. The same seed gives the same weights. */
  readonly openModel: (adapter: { readonly seed: number }) => Promise<AdaptedModel>;
  /** Description of model and engine, for `metadata.json`. */
  readonly describe: Json;
}

const phase = "sdpo";

/** The data that the engine adds to a checkpoint. */
interface Note extends UpdateRecord {
  readonly loraId: string;
  readonly report: UpdateReport;
}

/** Data that `sample` keeps for `update`. */
interface Trace {
  readonly ids: readonly number[];
  readonly nats: readonly number[];
}

/** Creates an engine that trains in this process by self-distillation (`SDPOTrainer`), without network access. */
export function localEngine({ openModel, describe }: LocalEngineOptions): FeedbackEngine {
  return {
    describe: () => describe,
    async open({ loraId, training, stepsPerBatch, seed, folder }: OpenRequest): Promise<FeedbackModel> {
      const { model, tokenizer, dispose } = await openModel({ seed });
      const trainer = new SDPOTrainer({
        model,
        tokenizer,
        runDir: folder,
        phase,
        config: {
          learningRate: training.learning_rate,
          alpha: training.alpha,
          isClip: training.is_clip,
          maxGradNorm: training.max_grad_norm,
          klRegWeight: training.kl_reg_weight,
          teacherTopK: training.teacher_top_k,
          stepsPerBatch,
          seed,
        },
      });
      const end = () => {
        trainer.dispose();
        dispose();
      };
      let trained: TrainedState;
      try {
        const resumed = await trainer.resume();
        trained = stateOf(resumed?.state.note, trainer.updates, loraId);
      } catch (error) {
        end();
        throw error;
      }
      const evaluable = inMemory(model, tokenizer);
      return {
        evaluable,
        hindsight: trainer.config.hindsight,
        guards: trainer.guards,
        trained,
        async sample(requests, signal) {
          const drawn = await evaluable.generate(
            requests.map(({ prompt, maxNewTokens, seed: stream }) => ({
              prompt: turn(prompt),
              sampling: { maxNewTokens, temperature: 1, seed: stream },
            })),
            { signal },
          );
          return drawn.map((answer): FeedbackAnswer => {
            const { text, finish } = answer;
            return { text, finish, trace: { ...traceOf(answer) } };
          });
        },
        async update(batch, record) {
          const examples = batch.flatMap((example) =>
            exampleOf(example, {
              tokenizer,
              hindsight: trainer.config.hindsight,
              contextLength: evaluable.contextLength,
            }),
          );
          if (examples.length === 0)
            throw modelError(
              `step ${record.step}`,
              "a batch of empty answers",
              "at least one answer with a token",
              "Check the model: it ends each answer before the first token.",
            );
          const { metrics, steps } = await trainer.update(examples);
          const report: UpdateReport = { metrics: { ...metrics }, subSteps: steps.length };
          const note: Note = { ...record, loraId, report };
          await trainer.save({ note: JSON.parse(JSON.stringify(note)) as Json });
          return report;
        },
        dispose: end,
      };
    },
  };
}

/**
 * Returns the sampled tokens, including the one that ended the answer, with their log p at temperature 1.
 *
 * @throws PeriodicEvalError `model` for an answer without them, because the trainer needs both.
 */
export function traceOf({ ids, tokenNats }: Pick<Completion, "ids" | "tokenNats">): Trace {
  if (ids !== null && tokenNats !== null) return { ids, nats: tokenNats };
  throw modelError(
    "sampled answers",
    `an answer without ${ids === null ? "ids" : "tokenNats"}`,
    "the ids of the sampled tokens (ids) and their log p in nats (tokenNats)",
    "Use an engine that returns both, such as inMemory of @periodic-eval/tfjs.",
  );
}

const turn = (content: string) => ({ messages: [{ role: "user", content }] });

interface ExampleContext {
  readonly tokenizer: Tokenizer;
  readonly hindsight: string;
  /** Context length in tokens; null without a limit. */
  readonly contextLength: number | null;
}

/**
 * Returns the training example of an answer; an empty array for an empty answer. An answer that does not fit into the context
 * after the longer prompt is cut at its end, because each token is a separate training target.
 */
function exampleOf(
  { prompt, answer, feedback, teacherTurn }: FeedbackExample,
  { tokenizer, hindsight, contextLength }: ExampleContext,
): readonly SDPOExample[] {
  const { ids, nats } = answer.trace as unknown as Trace;
  const teacherText =
    teacherTurn ?? teacherTurnOf({ hindsight }, { prompt, response: answer.text, feedback });
  const prompts = { prompt: turn(prompt), teacherPrompt: turn(teacherText!) };
  const before = Math.max(...Object.values(prompts).map((chat) => tokenizer.render(chat).ids.length));
  const room = contextLength === null ? ids.length : Math.max(1, contextLength - before);
  if (ids.length === 0) return [];
  return [{ ...prompts, response: ids.slice(0, room), oldLogProbs: nats.slice(0, room) }];
}

function stateOf(note: Json | undefined, updates: number, loraId: string): TrainedState {
  if (note === undefined) return { updates, last: null };
  const { loraId: owner, ...last } = note as unknown as Note;
  if (owner === loraId && isCount(last.step) && last.step + 1 === updates) return { updates, last };
  throw fileError(
    `the checkpoint of ${loraId}`,
    `a checkpoint of ${owner} after step ${last.step}, with ${updates} updates`,
    "a checkpoint of this adapter",
    "Choose another output_dir, or remove this folder.",
  );
}
