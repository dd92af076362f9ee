import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/core";
import { parseOptions } from "@periodic-eval/core/internal";
import type { Context } from "hono";
import { HTTPException } from "hono/http-exception";
import type { ContentfulStatusCode } from "hono/utils/http-status";
import type * as z from "zod";

/** Creates an error reply with an HTTP status and a code that programs can read. */
export function refused(
  status: ContentfulStatusCode,
  code: string,
  details: Omit<ErrorDetails, "code" | "cause">,
): HTTPException {
  const error = new PeriodicEvalError({ code: status === 503 ? "aborted" : "config", ...details });
  return new HTTPException(status, { message: code, cause: error });
}

/**
 * Checks a request's body against a schema.
 *
 * @throws HTTPException 400 that names the wrong field.
 */
export function parsed<S extends z.ZodType>(schema: S, body: unknown): z.output<S> {
  try {
    return parseOptions("the body", schema, body);
  } catch (error) {
    if (!PeriodicEvalError.is(error)) throw error;
    throw new HTTPException(400, { message: "invalid_value", cause: error });
  }
}

/** 400 for a wrong request, 422 if the model cannot answer it, 5xx for failures that may be temporary. */
const statuses: Readonly<Record<PeriodicEvalError["code"], ContentfulStatusCode>> = {
  config: 400,
  data: 400,
  model: 422,
  judge: 422,
  receipt: 422,
  store: 500,
  memory: 503,
  deadline: 503,
  aborted: 503,
};

/** Replaces absolute paths by the name of the file, except addresses such as `http://host/path` and `/v1/health`. */
const withoutFolders = (text: string): string =>
  text
    .replaceAll(/file:\/\//gi, "")
    .replaceAll(
      /(?<![\w./:\\…-])\/(?!v1\/|health\b)(?:[^\s"'`<>|,;:()[\]{}/]+\/)*([^\s"'`<>|,;:()[\]{}/]+)/g,
      "…/$1",
    )
    .replaceAll(
      /(?<!\w)[a-z]:[\\/](?:[^\s"'`<>|,;:()[\]{}\\/]+[\\/])*([^\s"'`<>|,;:()[\]{}\\/]+)/gi,
      "…\\$1",
    );

/** Returns an error in OpenAI's format. Omits the message of an internal error, which may contain private data. */
export function errorReply(error: Error, context: Context): Response {
  const status =
    error instanceof HTTPException ? error.status : PeriodicEvalError.is(error) ? statuses[error.code] : 500;
  const known = error instanceof HTTPException ? error.cause : error;
  const given = PeriodicEvalError.is(known) ? known.message : "[periodic-eval] the service failed";
  // A refusal quotes the request; any other error may name files of the service.
  const message = error instanceof HTTPException ? given : withoutFolders(given);
  const code =
    error instanceof HTTPException ? error.message : PeriodicEvalError.is(error) ? error.code : null;
  const type =
    status === 401 ? "authentication_error" : status < 500 ? "invalid_request_error" : "server_error";
  return context.json({ error: { message, type, param: null, code } }, status);
}
