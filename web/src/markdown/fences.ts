/** Whether a fenced piece of code has its closing line. */

const openingMarks = /^ {0,3}(`{3,}|~{3,})/;
const closingLine = /\n {0,3}(`{3,}|~{3,}) *\n*$/;

/** Return whether the text of a code block ends with a line that closes the fence it began with. */
export function isClosedFence(raw: string): boolean {
  const opening = openingMarks.exec(raw)?.[1];
  const closing = closingLine.exec(raw)?.[1];
  return opening !== undefined && closing !== undefined && closing.startsWith(opening);
}
