/** Character references that models write; others stay as they are written. */

const named: Record<string, string> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: "\u00a0",
  copy: "©",
  reg: "®",
  trade: "™",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  times: "×",
  deg: "°",
  rarr: "→",
  larr: "←",
};

const reference = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]+));/gi;
const maxCodePoint = 0x10ffff;

export function decodeEntities(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(reference, (whole: string, decimal?: string, hex?: string, name?: string) => {
    if (name !== undefined) return named[name] ?? whole;
    return characterOf(decimal === undefined ? parseInt(hex ?? "", 16) : Number(decimal));
  });
}

function characterOf(codePoint: number): string {
  const isSurrogate = codePoint >= 0xd800 && codePoint <= 0xdfff;
  if (codePoint === 0 || codePoint > maxCodePoint || isSurrogate) return "\ufffd";
  return String.fromCodePoint(codePoint);
}
