/** A run on a page of your own, also in a browser: `renderRun` in the page or in a worker, `showRun` and `pageStyle` in the page. */
export { renderRun } from "./render-run.ts";
export { showRun } from "./render-run.ts";
export { style as pageStyle } from "../html/style.ts";
