import type { SystemPrompt } from "../model/types.ts";

/**
 * Whom the model is asked to be. One without a system prompt (`"omit"`) and one with an empty one (`{ text: "" }`) are
 * different personas: a template may put its own prompt in the place of the first.
 */
export interface Persona {
  /** Matches `[A-Za-z0-9][\w.-]*`: it names metrics (`leakage_rate/doctor`). */
  readonly id: string;
  readonly system: SystemPrompt;
}
