import * as z from "zod";
import { configError, parseOptions } from "@periodic-eval/contracts/options";
import {
  judgeGrader,
  type EvaluableModel,
  type JudgeGrader,
  type JudgeOptions,
  type ModelIdentity,
  type CallOptions,
} from "@periodic-eval/core";
import { parseLocalJudge, type LocalJudgeName } from "@periodic-eval/contracts/options";
import { wrapModel, type Ask } from "@periodic-eval/core/model";
import { parseHubId } from "@periodic-eval/data";
import { stat } from "@periodic-eval/store/browser";
import { basename, resolve } from "@periodic-eval/store/platform";
import { onBackend } from "../backend/use-backend.ts";
import { openCheckpoint } from "../open-checkpoint.ts";
import { sharing, type Share } from "../sharing.ts";
import { openTransformers, openTransformersShape } from "../transformers/open-transformers.ts";

/** A judge that runs in this process. `dispose` frees its model once no other judge uses it. */
export type LocalJudge = JudgeGrader & { dispose(): Promise<void> };

interface LoadedModel {
  readonly model: EvaluableModel;
  dispose(): Promise<void>;
}

const sharedModel = sharing<LoadedModel>();

const where = "judge model";

/**
 * Opens a judge that needs no key and no server: it runs in this process.
 *
 * - `folder:PATH` and `hf:owner/name`: a model that this library runs (`loadCausalLM`), on the current backend,
 *   which is that of the last call of `useBackend`. Without one it starts the default backend.
 * - `transformers:SOURCE`: an ONNX model that `@huggingface/transformers` runs (`openTransformers`): a folder, or `owner/name` on the
 *   hub. `transformers:SOURCE?dtype=q4&device=webgpu` selects the dtype (default `fp32`) and the device (default `cpu`).
 *
 * Judges of one name, dtype and device share one copy of the model, which is loaded once and freed when the last of them is
 * disposed. A judge that grades after `dispose` loads it again.
 *
 * `describe` contains the engine, the dtype and a fingerprint of the weights. Answers that are judged concurrently are read as one
 * batch. A small model judges far worse than a large one: see docs/guides/judges.md before trusting its scores.
 *
 * @throws PeriodicEvalError `config` for another name or a wrong option, or if `@huggingface/transformers` is missing; `model` if the
 *   model cannot be loaded; `judge` if it lacks an ability of the method.
 */
export async function openLocalJudge(
  spec: string,
  options: Omit<JudgeOptions, "model"> = {},
): Promise<LocalJudge> {
  const name = parseLocalJudge(spec);
  if (name === null || name.source === "")
    throw configError({
      where,
      path: ["judge_model"],
      value: spec,
      expected: '"folder:PATH", "hf:owner/name" or "transformers:SOURCE"',
      fix: "Name a model that runs in this process; openJudge of @periodic-eval/remote opens those of servers.",
    });
  const { kind, source, query } = name;
  if (kind !== "transformers") await checkSource(kind, source);
  const location = (await isFolder(source)) ? resolve(source) : source;
  const shared = sharedModel(JSON.stringify([kind, location, query]), () =>
    kind === "transformers" ? openOnnx(name) : openOwn(name),
  );
  try {
    const { model: opened } = await (kind === "transformers" ? shared.open() : onBackend(shared.open));
    const model = reopening(opened, shared);
    return { ...(await judgeGrader({ ...options, model })), dispose: shared.close };
  } catch (error) {
    await shared.close();
    throw error;
  }
}

/** Returns the same model, which opens its part again if it is called after `close`. */
const reopening = (model: EvaluableModel, { open }: Share<LoadedModel>): EvaluableModel => ({
  ...model,
  ...(model.generate && { generate: async (...call) => (await open()).model.generate!(...call) }),
  ...(model.nextToken && { nextToken: async (...call) => (await open()).model.nextToken!(...call) }),
  ...(model.logLikelihoods && {
    logLikelihoods: async (...call) => (await open()).model.logLikelihoods!(...call),
  }),
});

const querySchema = z.strictObject({
  dtype: openTransformersShape.dtype,
  device: openTransformersShape.device,
});

async function openOnnx({ source, query }: LocalJudgeName): Promise<LoadedModel> {
  const options = parseOptions(`${where} transformers:${source}`, querySchema, query);
  const { model, dispose } = await openTransformers(source, {
    ...(options.dtype && { dtype: options.dtype }),
    ...(options.device && { device: options.device }),
  });
  return { model: joinCalls(await named(model, source, {})), dispose };
}

async function openOwn({ source }: LocalJudgeName): Promise<LoadedModel> {
  const { model, fingerprint, dispose } = await openCheckpoint(source);
  try {
    const { dtype } = model.identity;
    const weights = await fingerprint();
    return {
      model: joinCalls(
        await named(model, source, { weights, details: { ...(model.identity.details as object), dtype } }),
      ),
      dispose,
    };
  } catch (error) {
    await dispose();
    throw error;
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (stats) => stats.isDirectory(),
    () => false,
  );

async function checkSource(kind: LocalJudgeName["kind"], source: string): Promise<void> {
  if (kind === "folder" ? await isFolder(source) : parseHubId(source) !== null) return;
  throw configError({
    where,
    path: ["judge_model"],
    got: `"${kind}:${source}"${kind === "folder" ? `, and no folder ${resolve(source)}` : ""}`,
    expected:
      kind === "folder" ? "an existing folder of a model" : "hf:owner/name, or hf:owner/name@revision",
    fix:
      kind === "folder" ? "Correct the path; hf:owner/name opens a model of the hub." : "Correct the name.",
  });
}

/** Names a model without the machine's folders, so that verdicts are shared between machines. */
async function named(
  model: EvaluableModel,
  source: string,
  changes: Partial<ModelIdentity>,
): Promise<EvaluableModel> {
  const name = (await isFolder(source)) ? basename(resolve(source)) : source;
  return { ...model, identity: { ...model.identity, ...changes, name } };
}

/** A call that waits for the next batch. */
interface Waiting<Q, A> {
  readonly requests: readonly Q[];
  readonly options: CallOptions;
  resolve(answers: readonly A[]): void;
  reject(error: unknown): void;
}

/**
 * Returns the same model, which answers concurrent calls of one kind in one batch: a judge asks one answer per call. Batches run
 * one after the other. A batch that fails is repeated call by call, so that each call has its own error.
 */
export const joinCalls = (model: EvaluableModel): EvaluableModel => wrapModel(model, joined);

function joined<Q, A>(ask: Ask<Q, A>): Ask<Q, A> {
  let waiting: Waiting<Q, A>[] = [];
  let running: Promise<void> = Promise.resolve();
  const run = async () => {
    // Concurrent calls arrive within one turn of the event loop.
    await new Promise((resolve) => setTimeout(resolve, 0));
    const batch = waiting.filter(({ options }) => !options.signal.aborted);
    for (const { options, reject } of waiting) if (options.signal.aborted) reject(options.signal.reason);
    waiting = [];
    if (batch.length > 0) await answer(ask, batch);
  };
  return (requests, options) =>
    new Promise((resolve, reject) => {
      waiting.push({ requests, options, resolve, reject });
      running = running.then(run);
    });
}

async function answer<Q, A>(ask: Ask<Q, A>, batch: readonly Waiting<Q, A>[]): Promise<void> {
  const [first] = batch;
  const { signal, close } = whenAllAborted(batch.map(({ options }) => options.signal));
  const options = batch.length === 1 ? first!.options : { ...first!.options, signal };
  try {
    const answers = await ask(
      batch.flatMap(({ requests }) => requests),
      options,
    );
    let from = 0;
    for (const { requests, resolve } of batch) resolve(answers.slice(from, (from += requests.length)));
  } catch (error) {
    if (batch.length === 1) return first!.reject(error);
    for (const waiting of batch) await answer(ask, [waiting]);
  } finally {
    close();
  }
}

/** Returns a signal that aborts once all signals have. */
function whenAllAborted(signals: readonly AbortSignal[]) {
  const all = new AbortController();
  const check = () => {
    if (signals.every(({ aborted }) => aborted)) all.abort(signals[0]!.reason);
  };
  for (const signal of signals) signal.addEventListener("abort", check);
  check();
  return {
    signal: all.signal,
    close: () => signals.forEach((signal) => signal.removeEventListener("abort", check)),
  };
}
