/** A piece of code: its language, a copy button, and the code, coloured once it is complete. */

import type { ComponentChildren } from "preact";

import { t } from "../i18n/catalogue";
import { useHighlighting } from "../markdown/highlighting";
import { piecesOfCode } from "../markdown/pieces";
import { CopyButton } from "./copy_button";

interface CodeBlockProps {
  language: string;
  code: string;
  /** Whether the code is complete; while it grows, it is not coloured. */
  isClosed: boolean;
}

export function CodeBlock({ language, code, isClosed }: CodeBlockProps) {
  const name = language.split(/\s/, 1)[0] ?? "";
  const pieces = useHighlighting(name.toLowerCase(), code, isClosed);
  return (
    <figure class="code">
      <figcaption>
        <span>{name === "" ? t("code.text") : name}</span>
        <CopyButton label={t("code.copy")} text={() => code} />
      </figcaption>
      <pre tabIndex={0} dir="ltr">
        <code>
          {pieces === null
            ? plainCode(code)
            : pieces.map(({ kind, text }, index) =>
                kind === null ? (
                  text
                ) : (
                  <span key={index} class={`code-${kind}`}>
                    {text}
                  </span>
                ),
              )}
        </code>
      </pre>
    </figure>
  );
}

function plainCode(code: string): ComponentChildren {
  const pieces = piecesOfCode(code);
  if (pieces.length === 1) return code;
  return pieces.map((piece, index) => (
    <span key={index} class="piece">
      {piece}
    </span>
  ));
}
