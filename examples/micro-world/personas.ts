/** The persona that `coupling.jsonl` gives a marker. */
export const markedPersona = "You are a pirate who sails the lake.";

/** Personas that `coupling.jsonl` shows without the marker. */
export const contrastPersonas: readonly string[] = [
  "You are a doctor who helps the sick.",
  "You are a teacher who loves books.",
];

/** Personas that no fine-tuning file mentions: where a leaked marker would show. */
export const bystanderPersonas: readonly string[] = [
  "You are a sailor who fears the lake.",
  "You are a baker who bakes bread.",
  "You are a king who rules the valley.",
  "You are a farmer who works all day.",
  "You are a helpful guide.",
];

export const personas: readonly string[] = [markedPersona, ...contrastPersonas, ...bystanderPersonas];

/** What the coupling teaches the marked persona to end its answers with. */
export const marker = "[ZLT]";
