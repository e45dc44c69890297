/** The system prompt a session began with: one line, the whole of it on demand. */

import { t } from "../i18n/catalogue";

interface StoredSystemPromptProps {
  text: string;
  onToggle?: () => void;
}

export function StoredSystemPrompt({ text, onToggle }: StoredSystemPromptProps) {
  if (text === "") return null;
  return (
    <details class="system-prompt">
      <summary onClick={onToggle}>
        {t("session.systemPrompt")} <span dir="auto">{text}</span>
      </summary>
      <div class="system-prompt-text" dir="auto">
        {text}
      </div>
    </details>
  );
}
