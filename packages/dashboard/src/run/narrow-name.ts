import { humanizeName } from "../html/format.ts";
import { html, type Html } from "../html/html.ts";

/** Renders the callback and the step below the phase on narrow screens, where the first column alone stays in view. */
export const narrowName = (id: string, step: number): Html =>
  html`<small class="narrow">${humanizeName(id)}, <span class="unbroken">step ${step}</span></small>`;
