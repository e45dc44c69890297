/** How a text that goes with a message is named: with its size. */

import { formatBytes, plural } from "../i18n/catalogue";
import type { Attachment } from "../input/attachment";
import { FileIcon } from "./icons";

export function AttachmentName({ attachment }: { attachment: Attachment }) {
  const { name, numLines, numBytes } = attachment;
  return (
    <>
      <FileIcon />
      <bdi class="attachment-name">{name}</bdi>
      <small>{plural("attachment.size", numLines, { size: formatBytes(numBytes) })}</small>
    </>
  );
}
