/** A fenced piece of code: its language, a copy button, and the code as it is. */

import { CopyButton } from "./copy_button";

export function CodeBlock({ language, code }: { language: string; code: string }) {
  const name = language.split(/\s/, 1)[0] ?? "";
  return (
    <figure class="code">
      <figcaption>
        <span>{name === "" ? "text" : name}</span>
        <CopyButton label="Copy code" text={() => code} />
      </figcaption>
      <pre tabIndex={0} dir="ltr">
        <code>{code}</code>
      </pre>
    </figure>
  );
}
