/** A piece of code: its language, a copy button, and the code, coloured once it is complete. */

import { t } from "../i18n/catalogue";
import { useHighlighting } from "../markdown/highlighting";
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
            ? code
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
