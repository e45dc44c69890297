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

export function KeysList() {
  return (
    <dl class="keys">
      <Row words="keys.send" keys={["Enter"]} />
      <Row words="keys.line" keys={["Shift", "Enter"]} />
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

function keysOf({ key, mod, shift, alt }: Chord): string[] {
  return [
    ...(mod ? [isMac() ? "⌘" : "Ctrl"] : []),
    ...(alt ? [isMac() ? "⌥" : "Alt"] : []),
    ...(shift ? ["Shift"] : []),
    names[key] ?? key.toUpperCase(),
  ];
}
