/**
 * A dialog above the page, open for as long as it is rendered.
 *
 * The browser's own: it keeps the focus inside, closes with Esc, and gives the focus back to where it
 * was. A press beside it closes it, too.
 */

import "./dialog.css";

import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";

import { t } from "../i18n/catalogue";
import { CloseIcon } from "./icons";

interface DialogProps {
  label: string;
  class?: string;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({ label, class: name = "", onClose, children }: DialogProps) {
  const heading = useId();
  return (
    <Modal class={`dialog ${name}`} labelledBy={heading} onClose={onClose}>
      <header>
        <h2 id={heading} dir="auto">
          {label}
        </h2>
        <CloseButton onClose={onClose} />
      </header>
      {children}
    </Modal>
  );
}

interface SheetProps {
  label: string;
  /** The edge it comes from; a swipe towards it sends it back. */
  edge: "start" | "end";
  onClose: () => void;
  children: ComponentChildren;
}

/** A side panel on a screen that has no room beside the page. */
export function Sheet({ label, edge, onClose, children }: SheetProps) {
  const start = useRef<Touch | null>(null);
  return (
    <Modal
      class={`sheet ${edge}`}
      label={label}
      onClose={onClose}
      onTouchStart={(event) => (start.current = event.touches[0] ?? null)}
      onTouchEnd={(event) => {
        const end = event.changedTouches[0];
        if (start.current && end && isSwipeOut(start.current, end, edge, isRightToLeft())) onClose();
      }}
    >
      <CloseButton onClose={onClose} />
      {children}
    </Modal>
  );
}

interface Point {
  clientX: number;
  clientY: number;
}

const minSwipePx = 60;

/** Return whether a finger went far enough towards the edge, and not rather up or down. */
export function isSwipeOut(
  start: Point,
  end: Point,
  edge: SheetProps["edge"],
  rightToLeft: boolean,
): boolean {
  const isLeft = (edge === "start") !== rightToLeft;
  const outwards = (end.clientX - start.clientX) * (isLeft ? -1 : 1);
  return outwards > minSwipePx && outwards > 2 * Math.abs(end.clientY - start.clientY);
}

function isRightToLeft(): boolean {
  return getComputedStyle(document.documentElement).direction === "rtl";
}

function CloseButton({ onClose }: { onClose: () => void }) {
  return (
    <button type="button" class="quiet close" aria-label={t("common.close")} onClick={onClose}>
      <CloseIcon />
    </button>
  );
}

interface ModalProps {
  class: string;
  label?: string;
  labelledBy?: string;
  onClose: () => void;
  onTouchStart?: (event: TouchEvent) => void;
  onTouchEnd?: (event: TouchEvent) => void;
  children: ComponentChildren;
}

function Modal({ label, labelledBy, onClose, children, ...rest }: ModalProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    // Closed before it goes, so that the browser gives the focus back.
    return () => element?.close();
  }, []);
  return (
    <dialog
      {...rest}
      ref={dialog}
      aria-label={label}
      aria-labelledby={labelledBy}
      onClose={() => dialog.current !== null && onClose()}
      onPointerDown={(event) => isBeside(event, dialog.current) && onClose()}
    >
      {children}
    </dialog>
  );
}

/** Return whether the press was on what lies behind a dialog. */
function isBeside(event: PointerEvent, dialog: HTMLDialogElement | null): boolean {
  if (dialog === null || event.target !== dialog) return false;
  const { left, right, top, bottom } = dialog.getBoundingClientRect();
  const { clientX, clientY } = event;
  return clientX < left || clientX > right || clientY < top || clientY > bottom;
}
