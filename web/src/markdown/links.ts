/** Which addresses written by a model may become links. */

const allowed = /^(?:https?:\/\/|mailto:)/i;
// Browsers ignore these inside a scheme, so that "java\tscript:" would be one.
const ignored = /[\u0000-\u0020\u007f-\u009f\u200b-\u200f\u2028\u2029\ufeff]/g;

/** Return the address to link to, or null when the text is to stay text. */
export function safeHref(href: string): string | null {
  const stripped = href.replace(ignored, "");
  return allowed.test(stripped) ? stripped : null;
}
