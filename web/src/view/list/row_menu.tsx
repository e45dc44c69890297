/**
 * A button that opens a small menu beside it.
 *
 * The menu is a popover, so that no scroll box cuts it off and the browser closes it: by Esc, by a
 * click elsewhere, and when something in it was chosen.
 */

import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

import { MoreIcon } from "../icons";

interface RowMenuProps {
  label: string;
  children: ComponentChildren;
}

const gapPx = 4;

export function RowMenu({ label, children }: RowMenuProps) {
  const id = useId();
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const place = ({ newState }: { newState: string }) => {
    if (newState !== "open" || menu.current === null || button.current === null) return;
    const { bottom, top, right } = button.current.getBoundingClientRect();
    const { height, width } = menu.current.getBoundingClientRect();
    const hasRoomBelow = bottom + gapPx + height <= innerHeight;
    menu.current.style.top = `${hasRoomBelow ? bottom + gapPx : Math.max(0, top - gapPx - height)}px`;
    menu.current.style.left = `${Math.max(gapPx, Math.min(right - width, innerWidth - width - gapPx))}px`;
    menu.current.querySelector<HTMLElement>("button, a")?.focus();
  };
  return (
    <>
      <button
        type="button"
        class="quiet row-menu-button"
        ref={button}
        aria-label={label}
        popovertarget={id}
      >
        <MoreIcon />
      </button>
      <div
        id={id}
        class="row-menu"
        popover="auto"
        ref={menu}
        onToggle={place}
        onClick={() => menu.current?.hidePopover()}
      >
        {children}
      </div>
    </>
  );
}
