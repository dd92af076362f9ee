import type { Json } from "@periodic-eval/core";
import { checkKeys } from "@periodic-eval/core/internal";
import { at } from "@periodic-eval/remote";
import { walkJson } from "@periodic-eval/core/internal";
import { Hono, type Context } from "hono";
import { bodyLimit } from "hono/body-limit";
import type pLimit from "p-limit";
import { trainingNames } from "../config/schema.ts";
import { admission, type Admission } from "./admission.ts";
import { answer } from "./answers.ts";
import { initAdapter, learn, type Learning } from "./learning.ts";
import { errorReply, parsed, refused } from "./refusals.ts";
import { entropies, score } from "./scores.ts";
import { waitingBodies } from "./waiting-bodies.ts";
import {
  chatBatchSchema,
  chatSchema,
  entropiesSchema,
  feedbackSchema,
  initSchema,
  scoreBatchSchema,
  scoreSchema,
} from "./wire.ts";

export interface AppOptions extends Learning, Admission {
  /** For health: which engine. */
  readonly engine: Json;
  readonly maxBodyBytes: number;
  /** One model: one request at a time. */
  readonly queue: ReturnType<typeof pLimit>;
  isClosing(): boolean;
  /** For what answers say of themselves; nothing is decided by it. */
  now(): Date;
  /** Told of what is no refusal: the caller is told nothing of it. */
  onFailure(error: Error): void;
}

/** What of ours a client may use that other services lack. */
export const extensions = ["batch", "named_seeds", "entropies"] as const;

/** The routes. Each answers when it is its turn, and not at all to who has gone. */
export function feedbackApp(options: AppOptions): Hono {
  const { adapters, resident, baseName, engine, queue, isClosing } = options;
  const app = new Hono();

  const inTurn = (context: Context, work: (signal: AbortSignal) => Promise<Json>): Promise<Response> =>
    queue(async () => {
      if (isClosing()) throw closing();
      const signal = whileThere(context);
      signal.throwIfAborted();
      return context.json(await work(signal));
    });

  app.use(admission(options));
  app.use(waitingBodies(options.maxBodyBytes));
  app.use(
    bodyLimit({
      maxSize: options.maxBodyBytes,
      onError() {
        throw refused(413, "body_too_large", {
          where: "the body",
          got: `more than ${options.maxBodyBytes} bytes`,
          expected: "no more",
          fix: "Ask for less at a time.",
        });
      },
    }),
  );
  app.use(async (context, next) => {
    await next();
    if (isClosing()) context.header("connection", "close");
  });

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

  app.post("/v1/lora/init", async (context) => {
    const given = await bodyOf(context);
    const training = at(given, "training");
    // The words of its schema name no key.
    if (training !== undefined) checkKeys("training", training as object, trainingNames);
    const body = parsed(initSchema, given);
    return inTurn(context, () => initAdapter(body, options));
  });

  app.post("/v1/chat/completions", async (context) => {
    const body = parsed(chatSchema, await bodyOf(context));
    return inTurn(context, async (signal) =>
      answer(await resident.evaluable(body.model), body, { signal, now: options.now() }),
    );
  });

  app.post("/v1/chat/completions/batch", async (context) => {
    const body = parsed(chatBatchSchema, await bodyOf(context));
    return inTurn(context, async (signal) =>
      answer(await resident.evaluable(body.model), body, { signal, now: options.now() }),
    );
  });

  app.post("/v1/score", async (context) => {
    const body = await bodyOf(context);
    const has = (name: string) => typeof body === "object" && body !== null && name in body;
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

  app.post("/v1/feedback", async (context) => {
    const body = parsed(feedbackSchema, await bodyOf(context));
    return inTurn(context, (signal) => learn(body, options, signal));
  });

  app.notFound((context) =>
    errorReply(
      refused(404, "no_such_path", {
        where: `${context.req.method} ${context.req.path}`,
        got: "no such path",
        expected: "GET /v1/health, or POST /v1/lora/init, /v1/chat/completions, /v1/score or /v1/feedback",
        fix: "Correct the path.",
      }),
      context,
    ),
  );
  app.onError((error, context) => {
    const reply = errorReply(error, context);
    // Who has gone is told nothing, and no failure.
    if (reply.status === 500 && !context.req.raw.signal.aborted) options.onFailure(error);
    return reply;
  });
  return app;
}

/** Lists in lists, or objects: more than any request needs, and far from what exhausts the stack of who looks at it. */
const deepest = 64;

async function bodyOf(context: Context): Promise<unknown> {
  const text = await context.req.text();
  let isDeep = false;
  walkJson(text, (_, level) => !(isDeep ||= level > deepest));
  try {
    if (!isDeep) return JSON.parse(text) as unknown;
  } catch {
    // Said below.
  }
  throw refused(400, "invalid_json", {
    where: "the body",
    got: isDeep ? `what nests more than ${deepest} deep` : "what is no JSON",
    expected: "JSON",
    fix: "Correct the request.",
  });
}

/** Aborted when the caller hangs up: by an error, for the server's own signal gives a text as its reason. */
function whileThere(context: Context): AbortSignal {
  const { signal } = context.req.raw;
  const gone = new AbortController();
  const abort = () => gone.abort(new Error("the caller has gone"));
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return gone.signal;
}

const closing = () =>
  refused(503, "closing", {
    where: "the service",
    got: "a request while it ends",
    expected: "none",
    fix: "Ask again when it is up.",
  });
