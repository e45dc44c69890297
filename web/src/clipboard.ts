/** Copying text, also where the page has no secure context (plain HTTP in a local network). */

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text: string): boolean {
  const carrier = document.createElement("textarea");
  const focused = document.activeElement;
  carrier.value = text;
  carrier.readOnly = true;
  carrier.className = "visually-hidden";
  document.body.append(carrier);
  carrier.select();
  const isCopied = document.execCommand("copy");
  carrier.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
