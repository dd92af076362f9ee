import { spawn } from "node:child_process";
import { printable } from "@periodic-eval/contracts/options";
import { escapeMarkup, type Message } from "./messages.ts";

/** Reads both texts from the environment, where they are data. */
const toast = `
[void][Windows.UI.Notifications.ToastNotificationManager, Windows.UI.Notifications, ContentType = WindowsRuntime]
$toast = [Windows.UI.Notifications.ToastNotificationManager]::GetTemplateContent('ToastText02')
$texts = $toast.GetElementsByTagName('text')
$texts[0].InnerText = $env:PERIODIC_EVAL_TITLE
$texts[1].InnerText = $env:PERIODIC_EVAL_TEXT
[Windows.UI.Notifications.ToastNotificationManager]::CreateToastNotifier('periodic-eval').Show($toast)
`;

const appleScript = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run";

/** Returns the program of a platform that shows a notification, and its arguments. */
export function desktopCommand(
  title: string,
  text: string,
  platform: NodeJS.Platform = process.platform,
): readonly [program: string, args: readonly string[]] {
  if (platform === "darwin") return ["osascript", ["-e", appleScript, "--", title, text]];
  if (platform === "win32") return ["powershell.exe", ["-NoProfile", "-NonInteractive", "-Command", toast]];
  // The text is markup, the title is not.
  return ["notify-send", ["--app-name=periodic-eval", "--", title, escapeMarkup(text)]];
}

/** Shows a message on the desktop, in the background. Where no program can, nothing happens. */
export function showOnDesktop({ run, phase, step, text }: Message): void {
  const title = printable(run);
  const shown = printable(`${phase} step ${step}: ${text}`);
  const [program, args] = desktopCommand(title, shown);
  const env = { ...process.env, PERIODIC_EVAL_TITLE: title, PERIODIC_EVAL_TEXT: shown };
  try {
    spawn(program, args, { env, stdio: "ignore", detached: true, windowsHide: true })
      .on("error", () => undefined)
      .unref();
  } catch {
    // A text with a NUL, for example; the webhook and the page have it.
  }
}
