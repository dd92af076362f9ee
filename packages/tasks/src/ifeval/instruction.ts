import type { KwargsReader } from "./kwargs.ts";

/** Whether a response, not blank, does what it was told to. */
export type Check = (response: string) => boolean;

/**
 * Reads what an instruction was given and returns its check.
 *
 * @throws PeriodicEvalError `data` for kwargs that are wrong.
 */
export type InstructionKind = (kwargs: KwargsReader) => Check;
