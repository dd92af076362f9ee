import { startFeatures } from "./features.ts";
import { startLive } from "./live.ts";

let isStarted = false;

/** Opens folded parts while the page is printed, for browsers that do not do so by the page's style. */
function startPrinting(): void {
  // A live page starts its features again after each update.
  if (isStarted) return;
  isStarted = true;
  let opened: HTMLDetailsElement[] = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll<HTMLDetailsElement>("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}

startFeatures();
startPrinting();
startLive(startFeatures);
