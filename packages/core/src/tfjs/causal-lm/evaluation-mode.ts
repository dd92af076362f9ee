/** The evaluation mode of a model that also has a training mode. Entries nest, and each must be left. */
export interface EvaluationMode {
  /** Whether the model is in evaluation mode. */
  isOn(): boolean;
  /**
   * Enters evaluation mode, as `CausalLM.enterEval` does. The returned function leaves it, together with all later entries that
   * were not left.
   */
  enter(): () => void;
  /** Describes the mode for `CausalLM.modes`, with the number of entries if there are several. */
  describe(): string;
}

/** Returns a mode that begins in training mode. */
export function evaluationMode(): EvaluationMode {
  let open = 0;
  return {
    isOn: () => open > 0,
    enter() {
      const before = open;
      open += 1;
      // An entry that is left after the one around it has nothing left to close.
      return () => void (open = Math.min(open, before));
    },
    describe: () =>
      open > 1 ? `evaluation (entered ${open} times)` : open === 1 ? "evaluation" : "training",
  };
}
