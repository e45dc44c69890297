/**
 * What the reader has chosen for every conversation: language, colours, what Enter does.
 *
 * Owns these choices and where they are kept, the browser's storage. A browser that keeps nothing
 * makes them last as long as the page. Keys and conversations are never among them.
 */

import { effect, signal, type Signal } from "@preact/signals";

import { languages, preferred, speak, type Language } from "./i18n/catalogue";
import { readJson } from "./kept";
import { isObject } from "./shape";

const storageName = "chatserve:settings";

export const themes = ["system", "light", "dark"] as const;
export type Theme = (typeof themes)[number];

export class Settings {
  /** Null: that of the browser. */
  readonly language: Signal<Language | null>;
  readonly theme: Signal<Theme>;
  /** Whether Enter alone sends a message, where there are keys. */
  readonly enterSends: Signal<boolean>;

  constructor() {
    const kept = read();
    this.language = signal(oneOf(Object.keys(languages) as Language[], kept["language"]));
    this.theme = signal(oneOf(themes, kept["theme"]) ?? "system");
    this.enterSends = signal(kept["enterSends"] !== false);
  }

  /** Let the choices take effect, now and with every change; return when the words are there. */
  async apply(): Promise<void> {
    effect(() => {
      document.documentElement.dataset["theme"] = this.theme.value;
    });
    effect(() => write(this.#choices()));
    const isFirst = new Promise<void>((resolve) => {
      effect(() => {
        const wanted = this.language.value ?? preferred(navigator.languages);
        void speak(wanted).then((isSpoken) => {
          document.documentElement.lang = isSpoken ? wanted : "en";
          resolve();
        });
      });
    });
    await isFirst;
  }

  #choices(): object {
    return {
      language: this.language.value,
      theme: this.theme.value,
      enterSends: this.enterSends.value,
    };
  }
}

function oneOf<T extends string>(known: readonly T[], value: unknown): T | null {
  return known.find((name) => name === value) ?? null;
}

function read(): Record<string, unknown> {
  const kept = readJson(() => localStorage, storageName);
  return isObject(kept) ? kept : {};
}

function write(choices: object): void {
  try {
    localStorage.setItem(storageName, JSON.stringify(choices));
  } catch {
    // Storage that is full or forbidden keeps nothing; the choice holds while the page is open.
  }
}
