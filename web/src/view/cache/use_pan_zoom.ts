/**
 * Moving a picture by pointers and keys, and zooming it by Ctrl and wheel, or two fingers.
 *
 * Owns the viewport that the viewer made; until then the picture is fitted to its box, and again
 * when the viewer asks for it. The wheel alone, and one finger up or down, scroll the page.
 */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";

import { bounded, fit, panBy, zoomAt, type Box, type Point, type Viewport } from "../../cache/viewport";

const keyZoom = 1.25;
const keyPan = 60;
const wheelZoom = 0.0015;

const pans: Record<string, Point> = {
  ArrowLeft: { x: keyPan, y: 0 },
  ArrowRight: { x: -keyPan, y: 0 },
  ArrowUp: { x: 0, y: keyPan },
  ArrowDown: { x: 0, y: -keyPan },
};

export interface PanZoom {
  view: Viewport;
  show(view: Viewport): void;
  zoom(factor: number): void;
  fitAgain(): void;
  /** Return whether the key means something here. */
  onKey(key: string): boolean;
  handlers: {
    onWheel(event: WheelEvent): void;
    onPointerDown(event: PointerEvent): void;
    onPointerMove(event: PointerEvent): void;
    onPointerUp(event: PointerEvent): void;
    onPointerCancel(event: PointerEvent): void;
  };
}

export const zoomFactor = keyZoom;

export function usePanZoom(picture: Box, box: Box): PanZoom {
  const chosen = useSignal<Viewport | null>(null);
  const pointers = useRef(new Map<number, Point>()).current;
  const fitted = fit(picture, box);
  const view = chosen.value === null ? fitted : bounded(chosen.value, picture, box);
  const now = () => bounded(chosen.peek() ?? fitted, picture, box);
  const show = (next: Viewport) => (chosen.value = bounded(next, picture, box));
  const zoom = (factor: number, at = { x: box.width / 2, y: box.height / 2 }) =>
    show(zoomAt(now(), factor, at, fitted.scale));
  const fitAgain = () => (chosen.value = null);
  const onKey = (key: string) => {
    const pan = pans[key];
    if (pan !== undefined) show(panBy(now(), pan.x, pan.y));
    else if (key === "+" || key === "=") zoom(keyZoom);
    else if (key === "-") zoom(1 / keyZoom);
    else if (key === "0") fitAgain();
    else return false;
    return true;
  };
  const onPointerUp = (event: PointerEvent) => void pointers.delete(event.pointerId);
  const handlers = {
    onWheel: (event: WheelEvent) => {
      // A touchpad's pinch comes as a wheel with Ctrl.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY * wheelZoom), pointOf(event));
    },
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      pointers.set(event.pointerId, pointOf(event));
    },
    onPointerMove: (event: PointerEvent) => {
      const before = pointers.get(event.pointerId);
      if (before === undefined) return;
      const point = pointOf(event);
      // Not before it moves: a captured pointer would not click what it is on.
      (event.currentTarget as Element).setPointerCapture(event.pointerId);
      const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
      pointers.set(event.pointerId, point);
      const [x, y] = [point.x - before.x, point.y - before.y];
      if (other === undefined) {
        show(panBy(now(), x, y));
        return;
      }
      // Each of two fingers moves the point between them half as far.
      const moved = panBy(now(), x / 2, y / 2);
      const factor = distance(point, other) / Math.max(1, distance(before, other));
      show(zoomAt(moved, factor, between(point, other), fitted.scale));
    },
    onPointerUp,
    onPointerCancel: onPointerUp,
  };
  return { view, show, zoom, fitAgain, onKey, handlers };
}

function pointOf(event: MouseEvent): Point {
  const { left, top } = (event.currentTarget as Element).getBoundingClientRect();
  return { x: event.clientX - left, y: event.clientY - top };
}

function between(a: Point, b: Point): Point {
  return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
}

function distance(a: Point, b: Point): number {
  return Math.hypot(a.x - b.x, a.y - b.y);
}
