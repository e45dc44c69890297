/** The system prompt a session began with: one line, the whole of it on demand. */

interface StoredSystemPromptProps {
  text: string;
  onToggle?: () => void;
}

export function StoredSystemPrompt({ text, onToggle }: StoredSystemPromptProps) {
  if (text === "") return null;
  return (
    <details class="system-prompt">
      <summary onClick={onToggle}>
        System prompt <span dir="auto">{text}</span>
      </summary>
      <div class="system-prompt-text" dir="auto">
        {text}
      </div>
    </details>
  );
}
