import { PeriodicEvalError, type ErrorDetails } from "@periodic-eval/contracts";
import type { HubRepo } from "./hub-id.ts";

/**
 * Returns the error for a repository, with the code `model` or `data`. Names and values in it may come from the hub, so long
 * ones are cut.
 */
export const hubError = ({ type }: HubRepo, { where, got, ...rest }: Omit<ErrorDetails, "code">) =>
  new PeriodicEvalError({
    code: type === "model" ? "model" : "data",
    where: cut(where, 500),
    got: cut(got, 300),
    ...rest,
  });

export const cut = (text: string, length: number): string =>
  text.length > length ? `${text.slice(0, length)}…` : text;
