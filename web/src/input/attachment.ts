/**
 * A text that goes with a message as a file, and how it stands in the message.
 *
 * Sent, it is a fenced block that names the file: a form that models know, and that this page finds
 * again to show a name in the place of twenty thousand lines. The fence is longer than any row of
 * backticks in the text, so that nothing in it ends the block.
 */

import { newId } from "../ids";
import { wireBytes } from "./message_size";

export interface Attachment {
  readonly id: string;
  readonly name: string;
  readonly text: string;
  readonly numLines: number;
  readonly numBytes: number;
  /** What it adds to a frame, counted once: texts are long, and keys are typed fast. */
  readonly wireBytes: number;
}

export type Piece = string | Attachment;

/** What stands between the parts of a message. */
const gap = "\n\n";
const opening = /^(`{3,})\w* file="([^"\n]*)"$/gm;
const closing = /(?<=\n)`{3,}(?=\n|$)/g;

export function newAttachment(name: string, written: string): Attachment {
  const text = written.replace(/\r\n?/g, "\n");
  const attachment = { id: newId(), name: name.replace(/["`\s]+/g, " ").trim(), text };
  return {
    ...attachment,
    numLines: text.split("\n").length - (text.endsWith("\n") ? 1 : 0),
    numBytes: new TextEncoder().encode(text).length,
    wireBytes: wireBytes(gap + toBlock(attachment)),
  };
}

/** Return the message that says `text` and has the attachments after it. */
export function withAttachments(text: string, attachments: readonly Attachment[]): string {
  return [text, ...attachments.map(toBlock)].filter((piece) => piece !== "").join(gap);
}

/** Return a message as it was put together: what was said, with the attachments in their places. */
export function piecesOf(message: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const block of blocksOf(message)) {
    pieces.push(message.slice(end, block.start), block.attachment);
    end = block.end;
  }
  pieces.push(message.slice(end));
  return pieces
    .map((piece) => (typeof piece === "string" ? piece.replace(/^\n+|\n+$/g, "") : piece))
    .filter((piece) => piece !== "");
}

/** Return a message as it was written: what was said, and what is attached at its end. */
export function takeApart(message: string): { text: string; attachments: Attachment[] } {
  const attachments: Attachment[] = [];
  let end = message.length;
  for (const block of blocksOf(message).toReversed()) {
    if (block.end !== end) break;
    attachments.unshift(block.attachment);
    end = message.endsWith(gap, block.start) ? block.start - gap.length : block.start;
  }
  return { text: message.slice(0, end), attachments };
}

interface Block {
  start: number;
  end: number;
  attachment: Attachment;
}

function blocksOf(message: string): Block[] {
  const blocks: Block[] = [];
  const closings = closingsOf(message);
  let end = 0;
  for (const found of message.matchAll(opening)) {
    if (found.index < end) continue;
    const [line, fence = "", name = ""] = found;
    const textStart = found.index + line.length + 1;
    const closed = takeFrom(closings.get(fence.length) ?? [], textStart);
    if (closed === undefined) continue;
    end = closed + fence.length;
    const attachment = newAttachment(name, message.slice(textStart, closed - 1));
    blocks.push({ start: found.index, end, attachment });
  }
  return blocks;
}

/**
 * Return where the lines of nothing but a fence begin, by its length, the last one first.
 *
 * They are looked up once: a search for each block that opens would read the rest of the message
 * as often as it has blocks that stay open.
 */
function closingsOf(message: string): Map<number, number[]> {
  const closings = new Map<number, number[]>();
  for (const { 0: fence, index } of [...message.matchAll(closing)].toReversed()) {
    const places = closings.get(fence.length) ?? [];
    places.push(index);
    closings.set(fence.length, places);
  }
  return closings;
}

/** Take the next place that is not before `start`, and drop those that are. */
function takeFrom(places: number[], start: number): number | undefined {
  let place = places.pop();
  while (place !== undefined && place < start) place = places.pop();
  return place;
}

function toBlock({ name, text }: Pick<Attachment, "name" | "text">): string {
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((row) => row.length));
  const fence = "`".repeat(longest + 1);
  const language = /\.(\w+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  return `${fence}${language} file="${name}"\n${text}\n${fence}`;
}
