/** The evaluation mode of a model that has a training mode: entered by view within view, each of which must be left. */
export interface EvaluationMode {
  /** Whether a view is open. */
  isOn(): boolean;
  /** Opens a view: what `CausalLM.enterEval` gives. Leaving it closes it and all that were opened since and not left. */
  enter(): () => void;
  /** For `CausalLM.modes`: which mode it is, and how many views are open where it is more than one. */
  told(): string;
}

/** Begins in training mode. */
export function evaluationMode(): EvaluationMode {
  let open = 0;
  return {
    isOn: () => open > 0,
    enter() {
      const before = open;
      open += 1;
      // Left late, after one around it, it has nothing left to close.
      return () => void (open = Math.min(open, before));
    },
    told: () => (open > 1 ? `evaluation (entered ${open} times)` : open === 1 ? "evaluation" : "training"),
  };
}
