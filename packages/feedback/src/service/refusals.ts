import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";
import { describeZodIssue, quoteValue } from "@periodic-eval/core/internal";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type { z } from "zod";

/** A refusal with a status of its own, and the word that programs tell it by. */
export function refused(
  status: ContentfulStatusCode,
  code: string,
  details: Omit<ErrorDetails, "code" | "cause">,
): HTTPException {
  const error = new PeriodicEvalError({ code: status === 503 ? "aborted" : "config", ...details });
  return new HTTPException(status, { message: code, cause: error });
}

/** @throws HTTPException 400 that says what is wrong where. */
export function parsed<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  const result = schema.safeParse(body);
  if (result.success) return result.data;
  const { path, value, expected } = describeZodIssue(result.error, body);
  throw refused(400, "invalid_value", {
    where: path.length === 0 ? "the body" : path.join("."),
    got: value === undefined ? "nothing" : cut(quoteValue(value)),
    expected,
    fix: "Correct the request.",
  });
}

const cut = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** What went wrong is wrong with the request (400), stands in the way of it (422), or may pass (5xx). */
const statuses: Readonly<Record<PeriodicEvalError["code"], ContentfulStatusCode>> = {
  config: 400,
  data: 400,
  model: 422,
  judge: 422,
  receipt: 422,
  store: 500,
  deadline: 503,
  aborted: 503,
};

/** An error as OpenAI's servers give one. What is no error of ours is not told: it may name what is nobody's business. */
export function errorReply(error: Error, context: Context): Response {
  const status =
    error instanceof HTTPException ? error.status : PeriodicEvalError.is(error) ? statuses[error.code] : 500;
  const known = error instanceof HTTPException ? error.cause : error;
  const message = PeriodicEvalError.is(known) ? known.message : "[periodic-eval] the service failed";
  const code =
    error instanceof HTTPException ? error.message : PeriodicEvalError.is(error) ? error.code : null;
  const type =
    status === 401 ? "authentication_error" : status < 500 ? "invalid_request_error" : "server_error";
  return context.json({ error: { message, type, param: null, code } }, status);
}
