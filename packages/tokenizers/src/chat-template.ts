import type { Json, TemplateKwargs, TemplateMessage } from "@periodic-eval/contracts";

export interface TemplateRendering {
  readonly text: string;
  /** Half-open ranges of UTF-16 units inside `{% generation %}`; null if the template has no such tag. */
  readonly generated: readonly (readonly [start: number, end: number])[] | null;
}

export interface TemplateInput {
  readonly messages: readonly TemplateMessage[];
  readonly addGenerationPrompt: boolean;
  /** Default: null, as in `apply_chat_template`. */
  readonly tools?: readonly Json[] | null;
  readonly kwargs?: TemplateKwargs;
}

/** Renders a chat. Throws the template's own errors unchanged. */
export type ChatTemplate = (input: TemplateInput) => TemplateRendering;
