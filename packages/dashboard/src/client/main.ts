import { startFeatures } from "./features.ts";
import { startLive } from "./live.ts";

/** Opens folded parts while the page is printed, for browsers that do not know `::details-content`. */
function startPrinting(): void {
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
