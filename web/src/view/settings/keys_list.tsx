/** All keys that do something, as the reader's board names them. */

import "./keys_list.css";

import { t, type Key } from "../../i18n/catalogue";
import { isMac } from "../../keys/commands";
import { chords, type Chord } from "../../keys/keymap";

const names: Readonly<Record<string, string>> = {
  Escape: "Esc",
  ArrowUp: "↑",
  ArrowLeft: "←",
  ArrowRight: "→",
};

export function KeysList({ enterSends }: { enterSends: boolean }) {
  return (
    <dl class="keys">
      {enterSends && <Row words="keys.send" keys={["Enter"]} />}
      <Row words="keys.line" keys={enterSends ? ["Shift", "Enter"] : ["Enter"]} />
      <Row words={enterSends ? "keys.sendEdited" : "keys.sendAny"} keys={[modKey(), "Enter"]} />
      {chords.map((chord) => (
        <Row key={chord.command} words={`keys.${chord.command}`} keys={keysOf(chord)} />
      ))}
      <Row words="keys.help" keys={["?"]} />
    </dl>
  );
}

function Row({ words, keys }: { words: Key; keys: readonly string[] }) {
  return (
    <div>
      <dt>{t(words)}</dt>
      <dd>
        {keys.map((key) => (
          <kbd key={key}>{key}</kbd>
        ))}
      </dd>
    </div>
  );
}

function modKey(): string {
  return isMac() ? "⌘" : "Ctrl";
}

function keysOf({ key, mod, shift, alt }: Chord): string[] {
  return [
    ...(mod ? [modKey()] : []),
    ...(alt ? [isMac() ? "⌥" : "Alt"] : []),
    ...(shift ? ["Shift"] : []),
    names[key] ?? key.toUpperCase(),
  ];
}
