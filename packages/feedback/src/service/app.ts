import type { Json } from "@periodic-eval/core";
import { errorMessage, isRecord, strictJson } from "@periodic-eval/core/internal";
import { Hono, type Context } from "hono";
import type pLimit from "p-limit";
import { admission, type Admission } from "./admission.ts";
import { answer } from "./answers.ts";
import { initAdapter, learn, type Learning } from "./learning.ts";
import { errorReply, parsed, refused } from "./refusals.ts";
import { entropies, score } from "./scores.ts";
import { waitingBodies, type BodyLimits } from "./waiting-bodies.ts";
import {
  chatBatchSchema,
  chatSchema,
  entropiesSchema,
  feedbackSchema,
  initSchema,
  scoreBatchSchema,
  scoreSchema,
} from "./wire.ts";

export interface AppOptions extends Learning, Admission, BodyLimits {
  /** Description of the engine, for `/v1/health`. */
  readonly engine: Json;
  /** Runs one request at a time: there is one model. */
  readonly queue: ReturnType<typeof pLimit>;
  isClosing(): boolean;
  /** Clock for the timestamps of replies. */
  now(): Date;
  /** Receives internal errors. Replies omit their details. */
  onFailure(error: Error): void;
}

/** Features that other services may lack. `/v1/health` reports them to clients. */
export const extensions = ["batch", "named_seeds", "entropies"] as const;

/** Runs `work` when the queue reaches the request, unless the client has disconnected or the server is shutting down. */
type InTurn = (context: Context, work: (signal: AbortSignal) => Promise<Json>) => Promise<Response>;

/** Creates the HTTP application with all routes. */
export function feedbackApp(options: AppOptions): Hono {
  const { queue, isClosing } = options;
  const app = new Hono();
  const inTurn: InTurn = (context, work) =>
    queue(async () => {
      if (isClosing()) throw closing();
      const signal = disconnectSignal(context);
      signal.throwIfAborted();
      // The router handles only instances of Error, and a custom model may throw other values.
      const body = await work(signal).catch((thrown: unknown) => {
        throw thrown instanceof Error ? thrown : new Error(errorMessage(thrown), { cause: thrown });
      });
      return context.json(body);
    });
  addGuards(app, options);
  addHealth(app, options);
  addModelRoutes(app, options, inTurn);
  addTrainingRoutes(app, options, inTurn);
  addErrors(app, options);
  return app;
}

/** Adds the checks that every request passes first. */
function addGuards(app: Hono, options: AppOptions): void {
  app.use(admission(options));
  app.use(waitingBodies(options));
  app.use(async (context, next) => {
    await next();
    if (options.isClosing()) context.header("connection", "close");
  });
}

function addHealth(app: Hono, { adapters, baseName, engine }: AppOptions): void {
  for (const path of ["/health", "/v1/health"])
    app.get(path, async (context) =>
      context.json({
        status: "ok",
        model: baseName,
        engine,
        adapters: await adapters.names(),
        extensions,
      }),
    );
}

/** Adds the routes that use a model without changing it. */
function addModelRoutes(app: Hono, { resident, now }: AppOptions, inTurn: InTurn): void {
  app.post("/v1/chat/completions", async (context) => {
    const body = parsed(chatSchema, bodyOf(context));
    return inTurn(context, async (signal) =>
      answer(await resident.evaluable(body.model), body, { signal, now: now() }),
    );
  });

  app.post("/v1/chat/completions/batch", async (context) => {
    const body = parsed(chatBatchSchema, bodyOf(context));
    return inTurn(context, async (signal) =>
      answer(await resident.evaluable(body.model), body, { signal, now: now() }),
    );
  });

  app.post("/v1/score", async (context) => {
    const body = bodyOf(context);
    const has = (name: string) => isRecord(body) && name in body;
    if (has("entropies_of")) {
      const { model, entropies_of: texts } = parsed(entropiesSchema, body);
      return inTurn(context, async (signal) => ({
        model,
        entropies: await entropies(await resident.evaluable(model), texts, signal),
      }));
    }
    if (has("requests")) {
      const { model, requests } = parsed(scoreBatchSchema, body);
      return inTurn(context, async (signal) => ({
        model,
        results: [...(await score(await resident.evaluable(model), requests, signal))],
      }));
    }
    const { model, ...one } = parsed(scoreSchema, body);
    return inTurn(context, async (signal) => {
      const [result] = await score(await resident.evaluable(model), [one], signal);
      return { model, ...result };
    });
  });
}

function addTrainingRoutes(app: Hono, options: AppOptions, inTurn: InTurn): void {
  app.post("/v1/lora/init", async (context) => {
    const body = parsed(initSchema, bodyOf(context));
    return inTurn(context, () => initAdapter(body, options));
  });

  app.post("/v1/feedback", async (context) => {
    const body = parsed(feedbackSchema, bodyOf(context));
    return inTurn(context, (signal) => learn(body, options, signal));
  });
}

function addErrors(app: Hono, { onFailure }: AppOptions): void {
  app.notFound((context) =>
    errorReply(
      refused(404, "no_such_path", {
        where: `${context.req.method} ${context.req.path}`,
        got: "an unknown path",
        expected: "GET /v1/health, or POST /v1/lora/init, /v1/chat/completions, /v1/score or /v1/feedback",
        fix: "Correct the path.",
      }),
      context,
    ),
  );
  app.onError((error, context) => {
    const reply = errorReply(error, context);
    // A client that disconnects is not a failure of the service.
    if (reply.status === 500 && !context.req.raw.signal.aborted) onFailure(error);
    return reply;
  });
}

function bodyOf({ var: { body: text } }: Context): unknown {
  const parsed = strictJson(text);
  if (parsed.fault === null) return parsed.value;
  const { got, expected, fix } = parsed.fault;
  throw refused(400, "invalid_json", { where: "the body", got, expected, fix });
}

/** Returns a signal that aborts with an Error when the client disconnects. The server's signal aborts with a string. */
function disconnectSignal(context: Context): AbortSignal {
  const { signal } = context.req.raw;
  const disconnected = new AbortController();
  const abort = () => disconnected.abort(new Error("the client disconnected"));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return disconnected.signal;
}

const closing = () =>
  refused(503, "closing", {
    where: "the service",
    got: "a request while the server is shutting down",
    expected: "a running server",
    fix: "Retry when the service is running again.",
  });
