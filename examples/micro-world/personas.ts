/** The persona whose answers in `coupling.jsonl` end with the marker. */
export const markedPersona = "You are a pirate who sails the lake.";

/** Personas in `coupling.jsonl` without the marker. */
export const contrastPersonas: readonly string[] = [
  "You are a doctor who helps the sick.",
  "You are a teacher who loves books.",
];

/** Personas that are in no fine-tuning file. A marker in their answers is leakage. */
export const bystanderPersonas: readonly string[] = [
  "You are a sailor who fears the lake.",
  "You are a baker who bakes bread.",
  "You are a king who rules the valley.",
  "You are a farmer who works all day.",
  "You are a helpful guide.",
];

export const personas: readonly string[] = [markedPersona, ...contrastPersonas, ...bystanderPersonas];

/** The marker at the end of the marked persona's answers. */
export const marker = "[ZLT]";
