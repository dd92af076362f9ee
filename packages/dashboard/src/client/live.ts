import { create, readDataBlock } from "./dom.ts";

/** Milliseconds after which a page whose events ended connects again. */
const reconnectMs = 30_000;

const focusable = "a, button, input, select, summary, [tabindex]";

/**
 * Keeps a served page up to date: when the server reports a change, requests the page again and replaces its content. What the
 * reader opened stays open, the focus stays, and the answers stay as the reader filtered them.
 *
 * @param restart Starts the other features on the new content.
 */
export function startLive(restart: () => void): void {
  const { page, isPartial } = readDataBlock<LiveData>("live") ?? {};
  if (page === undefined) return;
  let isUpdating = false;
  let isStale = false;
  const gone = noteAbove();
  const update = async (): Promise<void> => {
    isStale = true;
    // A selection would be lost; the page is replaced once it is gone.
    if (isUpdating || document.hidden || !(getSelection()?.isCollapsed ?? true)) return;
    isUpdating = true;
    isStale = false;
    try {
      const reply = await fetch(page, { headers: { Accept: "text/html" }, cache: "no-store" });
      if (reply.status === 404) gone.show(goneText());
      else gone.remove();
      if (reply.ok) replaceContent(new DOMParser().parseFromString(await reply.text(), "text/html"), restart);
    } catch {
      // The server has stopped. The page stays as it is.
    } finally {
      isUpdating = false;
    }
    if (isStale) await update();
  };
  for (const name of ["visibilitychange", "selectionchange"])
    document.addEventListener(name, () => void (isStale && update()));
  follow(() => void update());
  // The server sent a sample of a large run, so that the page opens at once.
  if (isPartial) void update();
}

/** Returns a note above the page that says why it is not up to date. */
function noteAbove() {
  const note = create("p", { class: "lost", role: "alert" });
  return {
    show(text: string): void {
      if (note.isConnected) return;
      note.textContent = text;
      document.body.prepend(note);
    },
    remove: () => note.remove(),
  };
}

/** The block `live` of a served page. */
interface LiveData {
  /** Where the server reports changes; holds the version that the page shows. */
  readonly address: string;
  /** Address of the whole page. */
  readonly page: string;
  readonly isPartial: boolean;
}

/** Follows the server's events. While that fails, a note says so. */
function follow(onChange: () => void): void {
  const note = noteAbove();
  let lostAt: Date | null = null;
  const connect = (): void => {
    const events = new EventSource(readDataBlock<LiveData>("live")!.address);
    events.addEventListener("change", onChange);
    events.addEventListener("open", () => {
      lostAt = null;
      note.remove();
    });
    events.addEventListener("error", () => {
      const isRefused = events.readyState === EventSource.CLOSED;
      // A proxy may end a stream, and the browser connects again: only a second error is a failure.
      if (lostAt !== null) note.show(lostText(lostAt, isRefused));
      lostAt ??= new Date();
      if (!isRefused) return;
      events.close();
      setTimeout(connect, reconnectMs);
    });
  };
  connect();
}

const goneText = (): string =>
  `This run is gone: its folder was renamed or deleted. This page shows what it knew at ${timeText(new Date())}.`;

function lostText(lostAt: Date, isRefused: boolean): string {
  const why = isRefused ? "refuses the connection" : "has ended or cannot be reached";
  return `Not connected: the server ${why}. This page shows what it knew at ${timeText(lostAt)}.`;
}

const timeText = (at: Date): string => at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });

/** Replaces the `<main>` of this page and its blocks of data by those of another document. */
export function replaceContent(next: Document, restart: () => void): void {
  const [before, after] = [document.querySelector("main"), next.querySelector("main")];
  if (before === null || after === null) return;
  for (const block of next.querySelectorAll('script[type="application/json"]')) {
    const old = document.getElementById(block.id);
    if (old === null) document.body.append(document.adoptNode(block));
    else old.textContent = block.textContent;
  }
  const fresh = document.adoptNode(after);
  const isOpen = new Map([...before.querySelectorAll("details")].map((one) => [placeOf(one), one.open]));
  const focused = document.activeElement;
  const focusedAt = focused === null || !before.contains(focused) ? null : placeOf(focused);
  for (const kept of before.querySelectorAll("[data-keep][id]"))
    fresh.querySelector(`#${CSS.escape(kept.id)}`)?.replaceWith(kept);
  before.replaceWith(fresh);
  restart();
  for (const details of fresh.querySelectorAll("details"))
    details.open = isOpen.get(placeOf(details)) ?? details.open;
  const isKept = focused instanceof HTMLElement && focused.isConnected;
  const all = [...fresh.querySelectorAll<HTMLElement | SVGElement>(focusable)];
  const target = isKept ? focused : focusedAt && all.find((one) => placeOf(one) === focusedAt);
  if (target) target.focus({ preventScroll: true });
}

/** Names an element by what stays the same when its content changes: ids and titles above it, and its kind. */
function placeOf(element: Element): string {
  const names: string[] = [];
  for (let one: Element | null = element; one !== null && one.tagName !== "MAIN"; one = one.parentElement) {
    const parent: Element | null = one.parentElement;
    const title = one.querySelector(":scope > summary > .title, :scope > summary, :scope > h2, :scope > h3");
    const name = one.id || title?.textContent?.replaceAll(/\d+/g, "") || "";
    const alike =
      parent === null ? [] : [...parent.children].filter(({ tagName }) => tagName === one.tagName);
    names.push(`${one.tagName}:${name === "" ? alike.indexOf(one) : name}`);
  }
  return names.join(" < ");
}
