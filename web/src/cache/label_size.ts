/**
 * What a label of the tree has room for, by the scale of the picture.
 *
 * Pure. Words have the same size on the screen at every scale, so that they can be read; what there
 * is no room for is left off, the figures first. The tooltip has all of it.
 */

/** Of a fitted picture to its box, in units of the screen. */
export const margin = 20;
/** Rows are then as far apart as a line is high. */
export const minNamedScale = 0.4;
const minScaleWithFigures = 0.8;
/** What a Latin character takes on average. */
const characterWidth = 6.9;

export interface LabelSize {
  hasFigures: boolean;
  /** Units of the picture in one of the screen. */
  unit: number;
  /** Where the box ends while the picture is at its left, so that no more words are out of sight. */
  end: number;
}

export function labelSizeAt(scale: number, boxWidth: number): LabelSize {
  const hasFigures = scale >= minScaleWithFigures;
  return { hasFigures, unit: Math.max(1, 1 / scale), end: (boxWidth - 2 * margin) / scale };
}

/** Return how many Latin characters there is room for. */
export function charactersIn(room: number, { unit }: LabelSize): number {
  return Math.max(0, Math.floor(room / (characterWidth * unit)));
}
